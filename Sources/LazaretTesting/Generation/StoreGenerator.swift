internal import GRDB
public import ManagedObjectModel
internal import PersistentStore
public import Platform
public import SystemPackage

/// Generates stores of a model for testing migrations.
///
/// Model, options and seed determine the bytes. Records are valid if the model is satisfiable: mandatory properties,
/// bounds, uniqueness and inverses are kept; `GeneratedStore.notes` lists exceptions. The store's own triggers compute
/// derived attributes. Memory is independent of the number of records.
public struct StoreGenerator: Sendable {
  /// The location of a store's records.
  public enum Journal: String, Sendable, Hashable, CaseIterable {
    /// In the main file in WAL mode, as after a quit.
    case none

    /// The last quarter and all many-to-many pairs in the log (`-wal`), as after a kill.
    case log

    /// In the main file in rollback mode, as on old systems.
    case rollback
  }

  /// The options of a generator.
  public struct Options: Sendable, Hashable {
    /// The profile of values.
    public var profile = StoreProfile.typical

    /// The seed of all random values.
    public var seed: UInt64 = 1

    /// The records of each concrete entity.
    ///
    /// Required destinations get more, entities with tight uniqueness constraints fewer.
    public var records = 20

    /// The records of single entities, by name.
    public var recordsByEntity: [String: Int] = [:]

    /// The location of the records.
    public var journal = Journal.none

    /// Makes the default options.
    public init() {}

    /// Makes options.
    public init(_ profile: StoreProfile, seed: UInt64 = 1, records: Int = 20, journal: Journal = .none) {
      self.profile = profile
      self.seed = seed
      self.records = records
      self.journal = journal
    }
  }

  /// The model.
  public let model: ManagedObjectModel

  /// The options.
  public let options: Options

  let layout: StoreLayout
  let plan: GenerationPlan

  /// Plans the records of a model.
  ///
  /// - Throws: `StoreTestingError` if the model has no store layout.
  public init(_ model: ManagedObjectModel, options: Options = Options()) throws(StoreTestingError) {
    do {
      layout = try StoreLayout(model)
    } catch {
      throw StoreTestingError(error, operation: "generate a store", path: nil)
    }
    self.model = model
    self.options = options
    plan = GenerationPlan(layout, options)
  }

  /// The records' save time: 2026-01-01T00:00:00Z, in seconds since 2001-01-01.
  static let referenceDate = 788_918_400.0

  /// Writes a store.
  ///
  /// - Parameter path: the main file; no part may exist.
  /// - Throws: `StoreTestingError`: `file-exists`, or an error of the file system or SQLite; the files are then
  ///   removed.
  @discardableResult
  public func write(
    to path: FilePath, in fileSystem: FileSystem = FileSystem()
  ) throws(StoreTestingError) -> GeneratedStore {
    do {
      let set = try StoreFileSet.locate(path, in: fileSystem)
      if let member = try set.members(in: fileSystem).first {
        throw FileError(.alreadyExists, operation: "generate a store", path: member.path)
      }
      var writing = StoreWriting(self, set, fileSystem)
      do {
        return try writing.run()
      } catch {
        writing.removeEverything()
        throw error
      }
    } catch {
      throw StoreTestingError(error, operation: "generate a store", path: path)
    }
  }
}

/// A generated store.
public struct GeneratedStore: Sendable, Hashable {
  /// The main file.
  public let path: FilePath

  /// The records of each concrete entity, by name.
  public let records: [String: Int]

  /// The number of external files.
  public let externalFiles: Int

  /// The violated rules of the model.
  public let notes: [GenerationNote]

  /// The number of all records.
  public var recordCount: Int { records.values.reduce(0, +) }
}

/// The profiles of values.
public enum StoreProfile: String, Sendable, Hashable, Codable, CaseIterable {
  case empty

  /// Realistic values, some nil.
  case typical

  /// Edge cases: extreme numbers and dates, empty and very long text, right-to-left writing, combining marks, large and
  /// empty data, external files.
  case edge

  /// Nil where permitted: fails a change to mandatory.
  case sparse

  /// Equal values and one common destination where permitted: fails a new uniqueness constraint.
  case uniform

  /// The records' description, for the end of a sentence.
  public var words: String {
    switch self {
    case .empty: "no records"
    case .typical: "usual values"
    case .edge: "extreme values"
    case .sparse: "nothing wherever the model allows that"
    case .uniform: "the same values in every record"
    }
  }
}
