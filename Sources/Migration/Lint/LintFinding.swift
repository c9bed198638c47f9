internal import StoreFiles

/// Something about a model's versions that would hurt the people who have stores of them.
public struct LintFinding: Sendable, Hashable {
  /// The rule that is broken; raw values are part of the command line's contract.
  public enum Rule: String, Sendable, Hashable, Codable, CaseIterable {
    /// A step between two versions deletes something.
    case dataLoss = "data-loss"

    /// Whether a step works, or what it keeps, depends on the records.
    case dependsOnData = "depends-on-data"

    /// No mapping can be inferred for a step.
    case notMigratable = "not-migratable"

    /// A removal and an addition that look like a rename without a renaming identifier.
    case possibleRename = "possible-rename"

    /// Something is in both versions under one name, and only its renaming identifiers disagree.
    case disagreeingIdentifiers = "disagreeing-identifiers"

    /// A renaming identifier that does not lead to what it seems meant for.
    case brokenRename = "broken-rename"

    /// Renaming identifiers move values, and the hashes of both versions are equal, so that no migration runs.
    case renameWithoutMigration = "rename-without-migration"

    /// An attribute's values are to be encrypted in the cloud from a version on, or no more.
    case cloudEncryptionChanged = "cloud-encryption-changed"

    /// A version was edited after its hashes had been locked.
    case editedAfterRelease = "edited-after-release"

    /// A version is locked and not in the bundle any more.
    case missingRelease = "missing-release"

    /// A version contradicts itself.
    case inconsistentModel = "inconsistent-model"

    /// A compiled bundle was put together from files of different versions.
    case mismatchedHashes = "mismatched-hashes"

    /// A version cannot be read.
    case unreadableVersion = "unreadable-version"
    case cloudKitUniqueness = "cloudkit-uniqueness"
    case cloudKitMandatoryAttribute = "cloudkit-mandatory-attribute"
    case cloudKitMandatoryRelationship = "cloudkit-mandatory-relationship"
    case cloudKitMissingInverse = "cloudkit-missing-inverse"
    case cloudKitOrdered = "cloudkit-ordered"
    case cloudKitDenyRule = "cloudkit-deny-rule"
    case cloudKitType = "cloudkit-type"

    /// A change that is no addition, which a deployed CloudKit schema does not allow.
    case cloudKitNotAdditive = "cloudkit-not-additive"
  }

  /// How much a finding matters.
  public enum Severity: String, Sendable, Hashable, Codable {
    /// Stores in the field cannot be migrated, or would lose what was not meant to be removed.
    case error

    /// It may be meant.
    case warning
  }

  /// The rule that is broken.
  public var rule: Rule

  /// How much it matters.
  public var severity: Severity { rule.severity }

  /// The version, or the step such as `V1 → V2`, that breaks it.
  public var place: String

  /// The entity it is about, where it is about one.
  public var entityName: String?

  /// The property it is about, where it is about one.
  public var propertyName: String?

  /// The source file it stands in, where it stands in one.
  public var file: String?

  /// The line of the file, from 1.
  public var line: Int?

  /// What was found, in a plain sentence without a full stop.
  public var detail: String

  /// What to do about it, in full sentences.
  public var hint: String

  /// A finding.
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
  /// How much a finding of this rule matters.
  public var severity: LintFinding.Severity {
    switch self {
    case .notMigratable, .disagreeingIdentifiers, .brokenRename, .renameWithoutMigration, .editedAfterRelease,
      .missingRelease, .inconsistentModel,
      .mismatchedHashes, .unreadableVersion:
      .error
    case .dataLoss, .dependsOnData, .possibleRename, .cloudEncryptionChanged, .cloudKitUniqueness,
      .cloudKitMandatoryAttribute,
      .cloudKitMandatoryRelationship, .cloudKitMissingInverse, .cloudKitOrdered, .cloudKitDenyRule, .cloudKitType,
      .cloudKitNotAdditive:
      .warning
    }
  }
}
