public import Platform
public import SystemPackage

/// A migration that cannot be planned, carried out or checked.
public typealias MigrationError = Failure<MigrationErrorKind>

/// Why a migration cannot be planned, carried out or checked.
public enum MigrationErrorKind: String, FailureKind, CaseIterable {
  /// The file system refused; the code is that of the file error.
  case file = "migration-file"

  /// The models differ in a way that no mapping can be inferred for.
  case notInferable = "mapping-not-inferable"

  /// The migration would delete what the version it leads to still has under the same name or identifier.
  case wouldLose = "migration-would-lose"

  /// The model that the store was written with is in neither the bundle nor the store.
  case sourceModelMissing = "source-model-missing"

  /// There is no such version in the bundle.
  case unknownVersion = "unknown-version"

  /// The store's model has something that the app's lacks: it is a newer one.
  case newerModel = "newer-model"

  /// The store's model has no entity in common with the app's.
  case otherModel = "other-model"

  /// The store's own pages are damaged.
  case sourceDamaged = "store-damaged"

  /// The store would have to go back to an older version.
  case backwards = "migration-backwards"

  /// No mapping model leads from the one model to the other.
  case mappingMissing = "mapping-missing"

  /// A mapping model was made for other versions of its models.
  case mappingStale = "mapping-stale"

  /// A mapping model cannot be read.
  case mappingInvalid = "mapping-invalid"

  /// A mapping model has an expression that cannot be carried out.
  case expressionUnsupported = "expression-unsupported"

  /// A mapping needs a policy or a function that the app has not provided.
  case policyMissing = "policy-missing"

  case policyFailed = "policy-failed"

  /// The app's code before or after a step failed.
  case stageHandlerFailed = "stage-handler-failed"

  /// The records do not fit the destination.
  case dataViolation = "migration-data-violation"

  /// The migrated records are not unique where they must be.
  case constraintViolation = "migration-constraint-violation"

  /// What the store lacks of its own model cannot be made good without guessing.
  case repairRefused = "repair-refused"

  /// The migrated or repaired store did not pass its checks.
  case verificationFailed = "migration-verification-failed"
  case cancelled = "migration-cancelled"
  case sqlite = "migration-sqlite"

  /// A lock file of version hashes cannot be read.
  case lockInvalid = "model-lock-invalid"

  /// Where in the migration it happened, and what more is known of it.
  public struct Details: FailureDetails {
    /// The step of the migration, such as `V1 → V2`, where it is about one.
    public var step: String?

    /// The entity that the error is about, where it is about one.
    public var entityName: String?

    /// The property that the error is about, where it is about one.
    public var propertyName: String?

    /// The reason in Core Data's words, where Core Data has any.
    public var reason: String?

    /// Everything that stands in the way of a mapping, inferred or read from a file, not only the first.
    public var refusals: [MigrationRefusal] = []

    /// The report that was written of the failure, where one was.
    public var reportPath: FilePath?

    /// Whether it was the repair that failed: of the store by itself, or before the steps of a migration.
    public var isOfRepair = false

    /// The code of the file system's error, where the failure was told anew as one of another kind.
    public var code: String?

    /// How many bytes must be free, where the disk is too full and the failure says so.
    var neededBytes: Int64?

    /// Nothing more is known.
    public init() {}
  }

  /// What was being done, where a failure does not say.
  public static let usualOperation = "migrate the store"

  /// What was being done, where a failure of a repair does not say.
  static let repairOperation = "repair the store"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .file: "Check the path and its permissions."
    case .notInferable: "Give a mapping for the step, or add a version between the two, so that two steps lead over."
    case .wouldLose: "Give a mapping for the step, or accept the loss; the store is as it was."
    case .sourceModelMissing: "Add the version that the store was written with to the model."
    case .unknownVersion: "Name a version that the model has."
    case .newerModel: "Update the app or its model; the store is left as it is."
    case .otherModel: "Check that it is the right store and the right model; the store is left as it is."
    case .sourceDamaged:
      "Have lazaret open or the app quarantine it; a migration would lose what cannot be read. It is left as it is."
    case .backwards: "Open the store with the newer app, or restore a backup from before the last migration."
    case .mappingMissing: "Give a mapping for the step."
    case .mappingStale: "Make the mapping again from the two versions as they are now."
    case .mappingInvalid: "Restore the mapping from version control, or make it again."
    case .expressionUnsupported: "Compute the value in a policy, or write the expression in another way."
    case .policyMissing: "Register the policy or the function before the migration starts."
    case .policyFailed: "Correct the custom step; the store is as it was."
    case .stageHandlerFailed: "Correct the handler of the stage; the store is as it was."
    case .dataViolation:
      "Correct the records, give the attribute a default, or give a mapping that fills it; the store is as it was."
    case .constraintViolation: "Remove the duplicates, or leave the constraint out; the store is as it was."
    case .repairRefused: "Salvage it with lazaret salvage, which makes a clean store of its records; it stays as it is."
    case .verificationFailed: "Report it; the store is as it was."
    case .cancelled: "Start the migration again; finished steps are not repeated."
    case .sqlite: "Inspect the store: it may be damaged, and is as it was. Salvage it where it is."
    case .lockInvalid: "Restore the lock file from version control, or write it again with --write-lock."
    }
  }

  /// Whether the environment is at fault: a store that is newer than the app is not at fault either.
  public var isEnvironmental: Bool { self == .newerModel || self == .backwards }

  /// Whether no mapping between the models can be inferred, and none is given.
  ///
  /// A mapping that is given and cannot be carried out is a mistake of the app's, and records that do not fit are one of the
  /// store's: a way leads on once that is mended.
  package var leavesNoWay: Bool {
    [.notInferable, .otherModel, .sourceModelMissing, .mappingMissing].contains(self)
  }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .file }
}

extension MigrationError {
  /// The code that Core Data would give it in `NSCocoaErrorDomain` (format section 5.1); nil where it has none.
  public var coreDataCode: Int? {
    switch kind {
    case .notInferable, .wouldLose, .mappingMissing, .mappingStale, .mappingInvalid: 134140
    case .sourceModelMissing: 134130
    case .newerModel, .otherModel: 134100
    case .sourceDamaged: 259
    case .backwards: 134506
    case .policyMissing, .policyFailed, .expressionUnsupported, .stageHandlerFailed: 134170
    case .dataViolation, .verificationFailed, .repairRefused: 134110
    case .constraintViolation: 134111
    case .cancelled: 134120
    case .sqlite: 134180
    case .file, .unknownVersion, .lockInvalid: nil
    }
  }

  /// An error about an entity or a property, with the usual hint unless another is given.
  public init(
    _ kind: Kind, operation: String = Kind.usualOperation, path: FilePath? = nil, detail: String, hint: String? = nil,
    entityName: String?, propertyName: String? = nil, reason: String? = nil
  ) {
    self.init(kind, operation: operation, path: path, detail: detail, hint: hint)
    self.entityName = entityName
    self.propertyName = propertyName
    self.reason = reason
  }

  /// The error of a file that could not be read or written.
  public init(_ error: FileError) { self.init(.file, because: error) }

  /// The error of two models between which nothing can be inferred; the first reason speaks for all.
  public init(refusals: [MigrationRefusal]) {
    let first = refusals.first
    let more = refusals.count > 1 ? " (and \(refusals.count - 1) more)" : ""
    self.init(
      refusals.contains(where: \.preventsLoss) ? .wouldLose : .notInferable,
      operation: "infer the mapping",
      detail: (first?.detail ?? "the models do not fit") + more, hint: first?.wayRound,
      entityName: first?.entityName, propertyName: first?.property?.description, reason: first?.reason)
    self.refusals = refusals
  }

  /// The same error, told about a step of the migration.
  public func told(step: String) -> MigrationError {
    guard self.step == nil else { return self }
    var copy = self
    copy.step = step
    copy.detail = "step \(printable(step)): \(detail)"
    return copy
  }

  /// The same error, told as one of a repair.
  var ofRepair: MigrationError {
    var copy = self
    copy.isOfRepair = true
    if operation == Kind.usualOperation { copy.operation = Kind.repairOperation }
    return copy
  }

  /// Whether the disk is too full and the error does not yet say how many bytes must be free.
  var lacksNeededBytes: Bool {
    guard let fileError, fileError.kind == .noSpace else { return false }
    return fileError.neededBytes == nil && self.neededBytes == nil
  }

  /// A full disk in place of the input/output error that SQLite calls it where its log's index does not fit any more.
  ///
  /// - Parameter free: the bytes that are free, which is asked for such an error alone; where that cannot be told the error
  ///   stays what SQLite called it.
  func recognizingFullDisk(free: () -> Int64?) -> MigrationError {
    guard fileError?.kind == .inputOutput, let free = free(), free < 1 << 16 else { return self }
    let full = MigrationError(FileError(.noSpace, operation: operation, path: path))
    guard let step = self.step else { return full }
    return full.told(step: step)
  }
}

/// One reason why no mapping can be inferred between two models.
public struct MigrationRefusal: Sendable, Hashable {
  /// What stands in the way.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Two entities of one model have the same renaming identifier.
    case ambiguousEntity = "ambiguous-entity"

    /// Two properties of one entity have the same renaming identifier.
    case ambiguousProperty = "ambiguous-property"

    /// The types of an attribute cannot be converted into each other.
    case incompatibleTypes = "incompatible-types"

    /// An attribute had external storage and no longer has.
    case externalStorageOff = "external-storage-off"

    /// A relationship led to many and leads to one.
    case toManyToOne = "to-many-to-to-one"

    /// Entities without a common ancestor get one.
    case mergedHierarchies = "merged-hierarchies"

    /// An entity or a property is in both models under the same name, and only its renaming identifiers disagree, so that
    /// everything in it would go.
    case disagreeingIdentifiers = "disagreeing-identifiers"

    /// An entity that has records goes, although the destination still has something of its name or identifier.
    case losesEntity = "loses-entity"

    /// A table in the store that is none of the model's and that the step cannot carry over; the entity is its name.
    case foreignTable = "foreign-table"

    /// An expression of a mapping model that cannot be carried out.
    case unsupportedExpression = "unsupported-expression"
  }

  /// What stands in the way.
  public var kind: Kind

  /// The entity it is about: of the destination where there is one, else of the source.
  public var entityName: String

  /// The property it is about, where it is about one.
  public var property: PropertyPath?

  /// The reason in Core Data's words.
  public var reason: String

  /// What exactly stands against what, in a plain sentence without a full stop.
  public var detail: String

  /// A way round it, in full sentences.
  public var wayRound: String

  /// The step of a chain that it stands in the way of, such as `V1 → V2`; nil where there is only one.
  public var step: String?

  /// The code that Core Data gives it in `NSCocoaErrorDomain`, below a 134140 (format section 5.1).
  public var coreDataCode: Int { 134190 }

  /// Whether it is there to prevent a loss, and may be overruled by accepting that.
  public var preventsLoss: Bool { kind == .disagreeingIdentifiers || kind == .losesEntity }

  /// Whether Core Data refuses it too.
  public var isOfCoreData: Bool { !preventsLoss && kind != .foreignTable }

  /// A reason why no mapping can be inferred.
  public init(
    _ kind: Kind, entity: String, property: PropertyPath? = nil, reason: String, detail: String, wayRound: String
  ) {
    self.kind = kind
    entityName = entity
    self.property = property
    self.reason = reason
    self.detail = detail
    self.wayRound = wayRound
  }
}
