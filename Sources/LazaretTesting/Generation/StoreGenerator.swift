internal import GRDB
public import ManagedObjectModel
internal import PersistentStore
public import Platform
public import SystemPackage

/// Makes stores of a model with generated records, for trying migrations on.
///
/// The same model, options and seed give the same bytes. Records are valid as far as the model can say: mandatory
/// properties are filled, bounds and uniqueness constraints kept, and every relationship leads to a record that is there
/// and back again; what cannot be kept is told in `GeneratedStore.notes`. Derived attributes are computed by the store's
/// own triggers. Memory does not grow with the number of records.
public struct StoreGenerator: Sendable {
  /// Where the records of a store lie.
  public enum Journal: String, Sendable, Hashable, CaseIterable {
    /// All in the main file, which is in WAL mode, as an app leaves it that quits.
    case none

    /// The last quarter and all many-to-many pairs only in the log (`-wal`), as an app leaves it that is killed.
    case log

    /// All in the main file, which is not in WAL mode, as old systems leave it.
    case rollback
  }

  /// What is made.
  public struct Options: Sendable, Hashable {
    /// What kind of values there are.
    public var profile = StoreProfile.typical

    /// What everything random follows from.
    public var seed: UInt64 = 1

    /// The number of records of each entity that is not abstract.
    ///
    /// Entities that others must lead to get more, and those whose uniqueness constraints have no room for as many get
    /// fewer.
    public var records = 20

    /// The number of records of single entities, by name.
    public var recordsByEntity: [String: Int] = [:]

    /// Where the records lie.
    public var journal = Journal.none

    /// Twenty records of each entity with usual values.
    public init() {}

    /// A profile, with a seed and a number of records of each entity.
    public init(_ profile: StoreProfile, seed: UInt64 = 1, records: Int = 20, journal: Journal = .none) {
      self.profile = profile
      self.seed = seed
      self.records = records
      self.journal = journal
    }
  }

  /// The model that stores are made of.
  public let model: ManagedObjectModel

  /// What is made.
  public let options: Options

  let layout: StoreLayout
  let plan: GenerationPlan

  /// Plans the records of a model.
  ///
  /// - Throws: `StoreTestingError` where the model cannot be laid out as a store.
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

  /// When the records say that they were saved: 2026-01-01T00:00:00Z, in seconds since 2001-01-01.
  static let referenceDate = 788_918_400.0

  /// Makes a store.
  ///
  /// - Parameters:
  ///   - path: the store's main file; nothing of the set may be there yet.
  ///   - fileSystem: where it is made.
  /// - Throws: `StoreTestingError`: `file-exists`, or what the file system or SQLite refuses. Nothing is left then.
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

/// A store that was generated: where it is and what is in it.
public struct GeneratedStore: Sendable, Hashable {
  /// The store's main file.
  public let path: FilePath

  /// The records of each entity that has any, by name; those of sub-entities are counted with their own.
  public let records: [String: Int]

  /// The number of files beside the store that hold large values.
  public let externalFiles: Int

  /// What the model asks for and the records do not keep.
  public let notes: [GenerationNote]

  /// The number of all records.
  public var recordCount: Int { records.values.reduce(0, +) }
}

/// What kind of values a generated store holds.
public enum StoreProfile: String, Sendable, Hashable, Codable, CaseIterable {
  case empty

  /// Values as apps have them, now and then none where the model allows that.
  case typical

  /// The values at the edges of every type: extreme numbers and dates, empty and very long text, writing from right to
  /// left, combining marks, large and empty data, data in files beside the store.
  case edge

  /// Nothing where the model allows nothing: what a change to mandatory stumbles over.
  case sparse

  /// The same values in every record where the model does not ask for different ones, and all records leading to the
  /// same one: what a new uniqueness constraint stumbles over.
  case uniform

  /// What kind of records such a store has, to end a sentence with.
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
