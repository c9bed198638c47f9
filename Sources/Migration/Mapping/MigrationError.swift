public import Platform
public import SystemPackage

/// A failed migration plan, run or check.
public typealias MigrationError = Failure<MigrationErrorKind>

/// The reason a migration failed.
public enum MigrationErrorKind: String, FailureKind, CaseIterable {
  /// A file system error, with its code.
  case file = "migration-file"

  case notInferable = "mapping-not-inferable"

  /// It would delete what the target still has under the same name or identifier.
  case wouldLose = "migration-would-lose"

  /// Neither bundle nor store has the store's model.
  case sourceModelMissing = "source-model-missing"

  case unknownVersion = "unknown-version"

  /// The app's model lacks parts of the store's.
  case newerModel = "newer-model"

  /// The store shares no entity with the app's model.
  case otherModel = "other-model"

  /// The store's pages are damaged.
  case sourceDamaged = "store-damaged"

  /// The target is older than the store.
  case backwards = "migration-backwards"

  /// No mapping model connects the two models.
  case mappingMissing = "mapping-missing"

  case mappingStale = "mapping-stale"

  case mappingInvalid = "mapping-invalid"

  case expressionUnsupported = "expression-unsupported"

  /// The app has not provided a needed policy or function.
  case policyMissing = "policy-missing"

  case policyFailed = "policy-failed"

  case stageHandlerFailed = "stage-handler-failed"

  /// Records do not fit the destination.
  case dataViolation = "migration-data-violation"

  /// The migrated records are not unique.
  case constraintViolation = "migration-constraint-violation"

  /// Repairing the store would need guessing.
  case repairRefused = "repair-refused"

  case verificationFailed = "migration-verification-failed"
  case cancelled = "migration-cancelled"
  case sqlite = "migration-sqlite"

  case lockInvalid = "model-lock-invalid"

  /// The place and details of an error.
  public struct Details: FailureDetails {
    /// The step, such as `V1 → V2`.
    public var step: String?

    /// The entity.
    public var entityName: String?

    /// The property.
    public var propertyName: String?

    /// Core Data's wording of the reason.
    public var reason: String?

    /// All refusals of the mapping.
    public var refusals: [MigrationRefusal] = []

    /// The path of the failure report.
    public var reportPath: FilePath?

    /// Whether a repair failed, alone or before a migration.
    public var isOfRepair = false

    /// The file error's code, if the failure was changed to another kind.
    public var code: String?

    /// The bytes to free on a full disk, if known.
    var neededBytes: Int64?

    /// Makes empty details.
    public init() {}
  }

  /// The default operation.
  public var usualOperation: String { "migrate the store" }

  static let repairOperation = "repair the store"

  /// The default hint.
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
    case .lockInvalid: "Restore the lock file from version control, or write it again."
    }
  }

  /// Whether the environment is at fault; a store newer than the app counts too.
  public var isEnvironmental: Bool { self == .newerModel || self == .backwards }

  /// Whether no mapping is given or can be inferred.
  ///
  /// Invalid mappings and unfit records can be corrected and don't count.
  package var leavesNoWay: Bool { [.notInferable, .otherModel, .sourceModelMissing, .mappingMissing].contains(self) }

  /// Whether the file error's code is used.
  public var standsForCause: Bool { self == .file }
}

extension MigrationError {
  /// Core Data's code in `NSCocoaErrorDomain` (format section 5.1), if any.
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

  /// Makes an error of an entity or property, by default with the usual hint.
  public init(
    _ kind: Kind, operation: String? = nil, path: FilePath? = nil, detail: String, hint: String? = nil,
    entityName: String?, propertyName: String? = nil, reason: String? = nil
  ) {
    self.init(kind, operation: operation, path: path, detail: detail, hint: hint)
    self.entityName = entityName
    self.propertyName = propertyName
    self.reason = reason
  }

  /// Makes the error of a failed file access.
  public init(_ error: FileError) { self.init(.file, because: error) }

  /// Makes the error of uninferable models, worded by its first refusal.
  public init(refusals: [MigrationRefusal]) {
    self.init(
      refusals.contains(where: \.preventsLoss) ? .wouldLose : .notInferable, operation: "infer the mapping",
      refusals: refusals, by: refusals.first, otherwise: "the models do not fit")
  }

  init(
    _ kind: Kind, operation: String, path: FilePath? = nil, refusals: [MigrationRefusal], by first: MigrationRefusal?,
    otherwise detail: String
  ) {
    self.init(
      kind, operation: operation, path: path, detail: (first?.detail ?? detail) + more(than: refusals.count),
      hint: first?.wayRound, entityName: first?.entityName, propertyName: first?.property?.description,
      reason: first?.reason)
    self.refusals = refusals
  }

  /// Makes the error of models refused for a step.
  static func refused(_ refusals: [MigrationRefusal]) -> MigrationError {
    let error = MigrationError(refusals: refusals)
    return refusals.first?.step.map { error.told(step: $0) } ?? error
  }

  /// Returns the error with a step.
  public func told(step: String) -> MigrationError {
    guard self.step == nil else { return self }
    var copy = self
    copy.step = step
    copy.detail = "step \(printable(step)): \(detail)"
    return copy
  }

  /// Returns the error with a path, if it has none.
  func told(at path: FilePath?) -> MigrationError {
    var copy = self
    copy.path = self.path ?? path
    return copy
  }

  var ofRepair: MigrationError {
    var copy = self
    copy.isOfRepair = true
    if operation == kind.usualOperation { copy.operation = Kind.repairOperation }
    return copy
  }

  var lacksNeededBytes: Bool {
    guard let fileError, fileError.kind == .noSpace else { return false }
    return fileError.neededBytes == nil && self.neededBytes == nil
  }

  /// Recognizes a full disk in SQLite's input/output error of a WAL index that no longer fits.
  ///
  /// - Parameter free: Only called for such an error; nil keeps it.
  func recognizingFullDisk(free: () -> Int64?) -> MigrationError {
    guard fileError?.kind == .inputOutput, let free = free(), free < 1 << 16 else { return self }
    let full = MigrationError(FileError(.noSpace, operation: operation, path: path))
    guard let step = self.step else { return full }
    return full.told(step: step)
  }
}

/// A reason that no mapping can be inferred.
public struct MigrationRefusal: Sendable, Hashable {
  /// The kind of obstacle.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    case ambiguousEntity = "ambiguous-entity"

    case ambiguousProperty = "ambiguous-property"

    case incompatibleTypes = "incompatible-types"

    case externalStorageOff = "external-storage-off"

    case toManyToOne = "to-many-to-to-one"

    /// Entities without a common ancestor get one.
    case mergedHierarchies = "merged-hierarchies"

    /// Only renaming identifiers of a same-named entity or property differ, so all its data would be removed.
    case disagreeingIdentifiers = "disagreeing-identifiers"

    /// An entity with records is removed, although the destination has one of its name or identifier.
    case losesEntity = "loses-entity"

    /// Equal names with different renaming identifiers, so all data would be removed.
    case foreignTable = "foreign-table"

    case unsupportedExpression = "unsupported-expression"
  }

  /// The destination still has an entity of its name or identifier.
  public var kind: Kind

  /// The entity: of the destination, else of the source.
  public var entityName: String

  /// The property.
  public var property: PropertyPath?

  /// Core Data's wording of the reason.
  public var reason: String

  /// The conflict, as a sentence without a full stop.
  public var detail: String

  /// A workaround, in full sentences.
  public var wayRound: String

  package static let acceptLoss = "accept the loss."

  /// The step, such as `V1 → V2`; nil if it is the only one.
  public var step: String?

  func ofStep(_ step: String) -> MigrationRefusal {
    var copy = self
    copy.step = step
    return copy
  }

  /// Core Data's code in `NSCocoaErrorDomain`, below a 134140 (format section 5.1).
  public var coreDataCode: Int { 134190 }

  /// Whether it prevents a loss and can be overridden by accepting that.
  public var preventsLoss: Bool { kind == .disagreeingIdentifiers || kind == .losesEntity }

  /// Whether Core Data refuses it too.
  public var isOfCoreData: Bool { !preventsLoss && kind != .foreignTable }

  /// Makes a refusal.
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

/// Says how many more there are than the first: ` (and 2 more)`.
func more(than count: Int) -> String { count > 1 ? " (and \(count - 1) more)" : "" }
