internal import Platform
internal import SystemPackage

/// Something in source files that decides what the model is, and cannot be told from the sources alone or is not certain.
public struct SourceFinding: Sendable, Hashable, Encodable {
  /// What was found; raw values are part of the command line's contract.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A type that no source file declares, or whose definition is beyond what is read.
    case unresolvedType = "unresolved-type"

    /// The type of a property that has none written, and whose initial value does not tell it.
    case unresolvedInitialValue = "unresolved-initial-value"

    /// A name that stands for several types.
    case ambiguousType = "ambiguous-type"

    /// A relationship's inverse that is no relationship leading back.
    case unresolvedInverse = "unresolved-inverse"

    /// A list of types that only a compiler could follow.
    case unresolvedRoots = "unresolved-roots"

    /// Several lists of types that lead to different models.
    case ambiguousRoots = "ambiguous-roots"

    /// Two classes of one model that would be one entity.
    case duplicateEntity = "duplicate-entity"

    /// A file, or a part of it, that is no Swift that can be read.
    case unreadableSource = "unreadable-source"

    /// A branch of `#if` on a flag, an architecture or a module that is not known.
    case undecidedCondition = "undecided-condition"

    /// A branch of `#if` on the platform, where none was named.
    case platformDependent = "platform-dependent"

    /// What SwiftData makes of it is not known; the likeliest is taken.
    case unknownRule = "unknown-rule"

    /// A macro or a property wrapper that may add or change properties.
    case foreignMacro = "foreign-macro"

    /// A stage of the migration plan that runs code of the app.
    case customStage = "custom-stage"

    /// No list of types was found, and every class is taken.
    case everyClassTaken = "every-class-taken"

    // What a lint finds; the versions are complete, and would hurt stores.

    /// A historical schema that lists or reaches a class of the current version.
    case liveClass = "live-class"

    /// A class of a historical schema that is called as an alias whose class has another name.
    case aliasName = "alias-name"

    /// Two schemas of a plan with one checksum.
    case duplicateChecksum = "duplicate-checksum"

    /// A version that was released, and is in no plan.
    case unplannedRelease = "unplanned-release"

    /// A store of none of the versions.
    case unknownRelease = "unknown-release"

    /// A relationship of one schema's class to another schema's.
    case foreignVersionClass = "foreign-version-class"

    /// An enumeration or a structure that is part of a historical schema, and is the app's present one.
    case unfrozenType = "unfrozen-type"

    /// A class that a version had, and the next one neither lists nor reaches though it is declared.
    case unlistedClass = "unlisted-class"
  }

  /// How much it matters.
  public enum Severity: String, Sendable, Hashable {
    /// The entity, or the version, is not complete.
    case error

    /// It is complete, and may not be what the app has.
    case warning
  }

  /// What was found.
  public var kind: Kind

  /// How much it matters.
  public var severity: Severity

  /// The version it was found in; nil for all.
  public var versionName: String?

  /// The entity it is about, where it is about one.
  public var entityName: String?

  /// The property it is about, where it is about one.
  public var propertyName: String?

  /// Where it stands; nil where it is about no file.
  public var place: SourcePlace?

  /// What was found, in a plain sentence without a full stop.
  public var detail: String

  /// What to do about it, in full sentences.
  public var hint: String

  /// A finding.
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

  /// Writes the finding with its place.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "kind": kind.rawValue, "severity": severity.rawValue, "version": versionName, "entity": entityName,
      "property": propertyName, "file": place.map { PathText(FilePath($0.file)) }, "line": place?.line,
      "column": place?.column, "detail": detail, "hint": hint,
    ])
  }
}
