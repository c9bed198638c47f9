internal import Platform

/// A problem of a model's versions that would hurt users' stores.
public struct LintFinding: Sendable, Hashable {
  /// The broken rule; raw values are part of the command line's contract.
  public enum Rule: String, Sendable, Hashable, Codable, CaseIterable {
    case dataLoss = "data-loss"

    /// The records decide whether a step works, or what it keeps.
    case dependsOnData = "depends-on-data"

    case notMigratable = "not-migratable"

    /// A removal and an addition look like a rename without a renaming identifier.
    case possibleRename = "possible-rename"

    /// Only the renaming identifiers of equal names differ.
    case disagreeingIdentifiers = "disagreeing-identifiers"

    /// A renaming identifier misses its apparent target.
    case brokenRename = "broken-rename"

    /// Renaming identifiers move values, but equal hashes mean that no migration runs.
    case renameWithoutMigration = "rename-without-migration"

    case cloudEncryptionChanged = "cloud-encryption-changed"

    /// A version was edited after its hashes were locked.
    case editedAfterRelease = "edited-after-release"

    /// A locked version is not in the bundle.
    case missingRelease = "missing-release"

    case inconsistentModel = "inconsistent-model"

    /// A compiled bundle of several versions.
    case mismatchedHashes = "mismatched-hashes"

    case unreadableVersion = "unreadable-version"

    /// Swift sources are incomplete without a compiler.
    case unresolvedSource = "unresolved-source"

    /// SwiftData's reading of a Swift source is uncertain.
    case uncertainSource = "uncertain-source"

    /// A historical Swift schema lists or reaches a current class.
    case liveClass = "live-class"

    /// A historical class is named like an alias of another class.
    case aliasName = "alias-name"

    case duplicateChecksum = "duplicate-checksum"

    /// A renaming identifier was dropped between versions of equal hashes.
    case droppedIdentifier = "dropped-identifier"

    /// A released version is not in the migration plan.
    case unplannedRelease = "unplanned-release"

    /// A store matches no version.
    case unknownRelease = "unknown-release"

    case foreignVersionClass = "foreign-version-class"

    /// A historical schema uses the app's present enumeration or structure.
    case unfrozenType = "unfrozen-type"

    /// A declared class of the previous version is neither listed nor reached.
    case unlistedClass = "unlisted-class"

    case platformDependent = "platform-dependent"
    case cloudKitUniqueness = "cloudkit-uniqueness"
    case cloudKitMandatoryAttribute = "cloudkit-mandatory-attribute"
    case cloudKitMandatoryRelationship = "cloudkit-mandatory-relationship"
    case cloudKitMissingInverse = "cloudkit-missing-inverse"
    case cloudKitOrdered = "cloudkit-ordered"
    case cloudKitDenyRule = "cloudkit-deny-rule"
    case cloudKitType = "cloudkit-type"

    /// A non-additive change, which a deployed CloudKit schema forbids.
    case cloudKitNotAdditive = "cloudkit-not-additive"
  }

  /// The severity of a finding.
  public enum Severity: String, Sendable, Hashable, Codable {
    /// Users' stores can't be migrated or would lose data by accident.
    case error

    case warning
  }

  /// The broken rule.
  public var rule: Rule

  /// The severity.
  public var severity: Severity { rule.severity }

  /// The version, or the step such as `V1 → V2`.
  public var place: String

  /// The entity.
  public var entityName: String?

  /// The property.
  public var propertyName: String?

  /// The source file.
  public var file: String?

  /// The line, from 1.
  public var line: Int?

  /// The finding as a sentence without a full stop.
  public var detail: String

  /// The remedy, in full sentences.
  public var hint: String

  /// Makes a finding.
  public init(
    _ rule: Rule, in place: String, entity: String? = nil, property: String? = nil, detail: String, hint: String
  ) {
    self.rule = rule
    self.place = place
    entityName = entity
    propertyName = property
    self.detail = detail
    self.hint = hint
  }
}

extension LintFinding.Rule {
  /// The severity of the rule's findings.
  public var severity: LintFinding.Severity {
    switch self {
    case .notMigratable, .disagreeingIdentifiers, .brokenRename, .renameWithoutMigration, .editedAfterRelease,
      .missingRelease, .inconsistentModel, .mismatchedHashes, .unreadableVersion, .unresolvedSource, .liveClass,
      .duplicateChecksum, .unplannedRelease, .unknownRelease, .foreignVersionClass, .unfrozenType:
      .error
    case .dataLoss, .dependsOnData, .droppedIdentifier, .possibleRename, .cloudEncryptionChanged, .cloudKitUniqueness,
      .cloudKitMandatoryAttribute, .cloudKitMandatoryRelationship, .cloudKitMissingInverse, .cloudKitOrdered,
      .cloudKitDenyRule, .cloudKitType, .cloudKitNotAdditive, .uncertainSource, .aliasName, .unlistedClass,
      .platformDependent:
      .warning
    }
  }
}

/// The text output of `model lint`.
public struct LintListing: Sendable {
  /// The lines.
  public private(set) var lines: [String] = []

  package static let releasedSteps = "more between released versions, not listed here."

  /// Lists the findings by version and step.
  public init(_ lint: ModelLint, width: Int = 100) {
    var place: String?
    for finding in lint.findings {
      if finding.place != place {
        if place != nil { lines.append("") }
        lines.append(printable(finding.place))
        place = finding.place
      }
      if let file = finding.file { lines.append("  \(printable(file)):\(finding.line ?? 1):") }
      lines += MappingListing.wrapped(
        "\(finding.severity.rawValue): \(finding.detail) [\(finding.rule.rawValue)]", indent: "  ", hanging: "    ",
        width)
      lines += MappingListing.wrapped(finding.hint, indent: "      ", hanging: "        ", width)
    }
    if lint.findings.isEmpty {
      lines.append("nothing found")
    } else {
      let errors = lint.findings.count { $0.severity == .error }
      lines += [
        "",
        "\(lint.findings.count) \(lint.findings.count == 1 ? "finding" : "findings")"
          + (errors == 0 ? "" : ", \(errors) of them \(errors == 1 ? "an error" : "errors")"),
      ]
    }
    if lint.releasedFindingCount > 0 { lines.append("\(lint.releasedFindingCount) \(Self.releasedSteps)") }
  }

  /// The lines with line feeds.
  public var text: String { lines.map { $0 + "\n" }.joined() }
}
