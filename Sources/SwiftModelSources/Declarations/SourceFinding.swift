internal import Platform
internal import SystemPackage

/// A part of the sources that is unresolved or uncertain and affects the model.
public struct SourceFinding: Sendable, Hashable, Encodable {
  /// The kind of a finding; raw values belong to the command line's contract.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Undeclared or unsupported.
    case unresolvedType = "unresolved-type"

    /// The initial value of an untyped property does not determine its type.
    case unresolvedInitialValue = "unresolved-initial-value"

    case ambiguousType = "ambiguous-type"

    /// It is no relationship back.
    case unresolvedInverse = "unresolved-inverse"

    /// Only a compiler could follow the list of types.
    case unresolvedRoots = "unresolved-roots"

    case ambiguousRoots = "ambiguous-roots"

    /// Two classes have one entity name.
    case duplicateEntity = "duplicate-entity"

    case unreadableSource = "unreadable-source"

    /// `#if` on an unknown flag, architecture or module.
    case undecidedCondition = "undecided-condition"

    /// No platform was chosen for `#if`.
    case platformDependent = "platform-dependent"

    /// SwiftData's rule is unknown; the likeliest applies.
    case unknownRule = "unknown-rule"

    /// A macro or wrapper that may add or change properties.
    case foreignMacro = "foreign-macro"

    /// A migration stage with app code.
    case customStage = "custom-stage"

    /// No list of types exists.
    case everyClassTaken = "every-class-taken"

    // Lint findings: the versions are complete, but would harm stores.

    /// A historical schema uses a current class.
    case liveClass = "live-class"

    /// A historical class is named like an alias of another one.
    case aliasName = "alias-name"

    case duplicateChecksum = "duplicate-checksum"

    /// A released version is in no plan.
    case unplannedRelease = "unplanned-release"

    /// A store matches no version.
    case unknownRelease = "unknown-release"

    case foreignVersionClass = "foreign-version-class"

    /// A historical schema uses the app's current type.
    case unfrozenType = "unfrozen-type"

    /// The next version neither lists nor reaches a declared class.
    case unlistedClass = "unlisted-class"
  }

  /// The severity of a finding.
  public enum Severity: String, Sendable, Hashable {
    /// The entity or version is incomplete.
    case error

    /// Complete, but possibly different from the app's.
    case warning
  }

  package static let nameTypes = "Name the types of the store in question."
  package static let giveFlags = "Give the flags that the app is built with."
  package static let givePlatform = "Give the platform that the store is from."

  /// The kind.
  public var kind: Kind

  /// The severity.
  public var severity: Severity

  /// The affected version; nil for all.
  public var versionName: String?

  /// The affected entity.
  public var entityName: String?

  /// The affected property.
  public var propertyName: String?

  /// The place in the sources, if any.
  public var place: SourcePlace?

  /// A sentence without period.
  public var detail: String

  /// The remedy, in full sentences.
  public var hint: String

  /// Creates a finding.
  public init(
    _ kind: Kind, _ severity: Severity, version: String? = nil, entity: String? = nil, property: String? = nil,
    place: SourcePlace?, detail: String, hint: String
  ) {
    self.kind = kind
    self.severity = severity
    versionName = version
    entityName = entity
    propertyName = property
    self.place = place
    self.detail = detail
    self.hint = hint
  }

  /// Encodes the finding with its place.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "kind": kind.rawValue, "severity": severity.rawValue, "version": versionName, "entity": entityName,
      "property": propertyName, "file": place.map { PathText(FilePath($0.file)) }, "line": place?.line,
      "column": place?.column, "detail": detail, "hint": hint,
    ])
  }
}

/// A place in a source file.
public struct SourcePlace: Sendable, Hashable {
  /// The file, as named or found.
  public var file: String

  /// The line, from 1.
  public var line: Int

  /// The byte within the line, from 1.
  public var column: Int
}

extension [SourceFinding] {
  mutating func add(
    _ kind: SourceFinding.Kind, _ severity: SourceFinding.Severity, version: String? = nil, at place: SourcePlace?,
    _ detail: String, _ hint: String
  ) {
    append(SourceFinding(kind, severity, version: version, place: place, detail: detail, hint: hint))
  }
}

extension SourceFinding {
  /// Whether it stands before another one in the sources; those without a place come first.
  func precedes(_ other: SourceFinding) -> Bool {
    switch (place, other.place) {
    case (let own?, let theirs?) where own != theirs: own < theirs
    case (nil, .some): true
    case (.some, nil): false
    default: detail < other.detail
    }
  }
}

extension SourcePlace: Comparable {
  /// Compares by file, line and column.
  public static func < (first: SourcePlace, second: SourcePlace) -> Bool {
    (first.file, first.line, first.column) < (second.file, second.line, second.column)
  }
}
