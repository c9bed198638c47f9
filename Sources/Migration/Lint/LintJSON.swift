/// The findings about a model as JSON: what `model lint --json` prints.
///
/// Keys may be added, never changed.
public struct LintJSON: Codable, Sendable, Hashable {
  /// One finding.
  public struct Finding: Codable, Sendable, Hashable {
    /// The rule that is broken, such as `data-loss`.
    public var rule: String

    /// How much it matters: `error` or `warning`.
    public var severity: LintFinding.Severity

    /// The version, or the step such as `V1 → V2`.
    public var place: String

    /// The entity.
    public var entity: String?

    /// The property.
    public var property: String?

    /// The source file, where it stands in one.
    public var file: String?

    /// The line of the file, from 1.
    public var line: Int?

    /// What was found.
    public var detail: String

    /// What to do about it.
    public var hint: String
  }

  /// Whether nothing was found.
  public var clean: Bool

  /// What was found.
  public var findings: [Finding]

  /// How many findings of steps between released versions were left out.
  public var releasedFindings: Int

  /// The findings about a model.
  public init(_ lint: ModelLint) {
    clean = lint.findings.isEmpty
    findings = lint.findings.map {
      Finding(
        rule: $0.rule.rawValue, severity: $0.severity, place: $0.place, entity: $0.entityName,
        property: $0.propertyName, file: $0.file, line: $0.line, detail: $0.detail, hint: $0.hint)
    }
    releasedFindings = lint.releasedFindingCount
  }
}
