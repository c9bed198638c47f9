import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport

/// The bytes of a store's files at one moment.
struct Specimen: Sendable {
  var main: [UInt8]?
  var log: [UInt8]?
  var journal: [UInt8]?

  init(main: [UInt8]?, log: [UInt8]? = nil, journal: [UInt8]? = nil) {
    self.main = main
    self.log = log
    self.journal = journal
  }

  /// The files as they are, a transaction that is under way included.
  init(of path: FilePath) throws {
    func bytes(_ part: StoreFileSet.Part) throws -> [UInt8]? {
      let path = StoreFileSet(main: path).path(of: part)
      guard try FileSystem().status(of: path) != nil else { return nil }
      let bytes = try FileSystem().contents(of: path, limit: 1 << 30)
      return bytes.isEmpty && part != .main ? nil : bytes
    }
    self.init(main: try bytes(.main), log: try bytes(.wal), journal: try bytes(.journal))
  }

  /// Runs statements on a database with these bytes and takes its files while the connection is still open.
  func running(_ statements: String...) throws -> Specimen {
    let folder = try TemporaryFolder()
    let queue = try DatabaseQueue(path: try place(in: folder).string)
    return try queue.writeWithoutTransaction { db in
      for statement in statements { try db.execute(sql: statement) }
      let result = try Specimen(of: folder.appending("Store.sqlite"))
      if db.isInsideTransaction { try db.execute(sql: "ROLLBACK") }
      return result
    }
  }

  /// Writes the files under a name.
  @discardableResult
  func place(in folder: TemporaryFolder, as name: String = "Store.sqlite") throws -> FilePath {
    if let main { try folder.write(main, to: name) }
    if let log { try folder.write(log, to: name + "-wal") }
    if let journal { try folder.write(journal, to: name + "-journal") }
    return folder.appending(name)
  }

  /// The same with the main file changed.
  func with(_ change: (inout [UInt8]) throws -> Void) rethrows -> Specimen {
    var copy = self
    var bytes = main ?? []
    try change(&bytes)
    copy.main = bytes
    return copy
  }
}

extension Specimen {
  /// A value of the records; it must never turn up in a verdict.
  static let secret = "isabella-borgward"

  /// A plain database.
  static func plain(_ statements: String...) throws -> Specimen {
    let folder = try TemporaryFolder()
    let queue = try DatabaseQueue(path: folder.appending("Store.sqlite").string)
    return try queue.writeWithoutTransaction { db in
      for statement in statements { try db.execute(sql: statement) }
      let result = try Specimen(of: folder.appending("Store.sqlite"))
      if db.isInsideTransaction { try db.execute(sql: "ROLLBACK") }
      return result
    }
  }

  /// A Core Data store of a model, with that many cars; all of it in the main file.
  static func store(
    _ model: ManagedObjectModel, cars: Int = 12, cached: ManagedObjectModel?,
    uuid: String = "5A0A7F9C-6D5C-4E2B-9E0A-6C1F1B0D8E77"
  ) throws -> Specimen {
    let creation = try StoreCreation(model: model, uuid: uuid, modelCache: try cached?.modelCache())
    let empty = Specimen(main: try creation.bytes())
    guard cars > 0 else { return empty }
    return try empty.running(insert(cars), "PRAGMA wal_checkpoint(TRUNCATE)")
  }

  static func insert(_ cars: Int, from first: Int = 1) -> String {
    """
    SAVEPOINT saving;
    WITH RECURSIVE n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(first + cars - 1))
    INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT i, 1, 1, '\(secret)-' || i || hex(zeroblob(60)) FROM n;
    UPDATE Z_PRIMARYKEY SET Z_MAX = max(Z_MAX, \(first + cars - 1)) WHERE Z_NAME = 'Car';
    RELEASE saving
    """
  }
}

/// The models that the tests' stores were written with.
enum Models {
  static func entity(_ name: String, _ attributes: [String: AttributeType]) -> Entity {
    Entity(
      name: name,
      properties: attributes.sorted { $0.key < $1.key }.map { name, type in
        .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: type))
      })
  }

  static let first = ManagedObjectModel(entities: [entity("Car", ["name": .string])])
  static let second = ManagedObjectModel(entities: [entity("Car", ["name": .string, "doors": .integer16])])
  static let third = ManagedObjectModel(
    entities: [entity("Car", ["name": .string, "doors": .integer16]), entity("Person", ["age": .integer32])])

  /// One that came between them, and was forgotten: no name in it that the third lacks.
  static let forgotten = ManagedObjectModel(entities: [entity("Car", ["name": .string, "doors": .string])])

  /// One that has more than the third.
  static let future = ManagedObjectModel(
    entities: [
      entity("Car", ["name": .string, "doors": .integer16, "turbo": .boolean]), entity("Person", ["age": .integer32]),
      entity("Garage", ["places": .integer32]),
    ])

  static let foreign = ManagedObjectModel(entities: [entity("Recipe", ["title": .string])])

  /// Another app's that shares the name of an entity.
  static let namesake = ManagedObjectModel(
    entities: ["Recipe", "Cook", "Pan", "Oven"].map { entity($0, ["title": .string]) }
      + [entity("Person", ["nickname": .string])])

  /// The app's bundle; which of its versions is the current one.
  static func bundle(current: String = "V3", isOrdered: Bool = true, unreadable: [String] = []) -> AppModel {
    let versions = [("V1", first), ("V2", second), ("V3", third)].map { name, model in
      ModelVersion(name: name, model: model, isCurrent: name == current)
    }
    let unreadable = unreadable.map { name in
      ModelBundle.UnreadableVersion(name: name, error: ModelError(.oldFormat, detail: "it is of Xcode 3"))
    }
    guard
      let bundle = ModelBundle(
        name: "App", versions: versions, isOrdered: isOrdered, unreadableVersions: unreadable)
    else { preconditionFailure("there are versions") }
    return .coreData(bundle)
  }

  /// A bundle of one version.
  static func only(_ name: String, _ model: ManagedObjectModel) -> AppModel {
    let version = ModelVersion(name: name, model: model, isCurrent: true)
    guard let bundle = ModelBundle(name: "App", versions: [version]) else { preconditionFailure("there is a version") }
    return .coreData(bundle)
  }

  static func schema(_ sql: String) throws -> AppModel { .sqlite(try SchemaScript(sql), name: "app") }
}

extension Specimen {
  /// A sound store of the current version.
  static func sound(cars: Int = 12) throws -> Specimen { try store(Models.third, cars: cars, cached: Models.third) }
}

/// An examiner that believes a fixture that was written a moment ago.
func examiner(_ fileSystem: FileSystem = FileSystem()) -> Examiner {
  Examiner(fileSystem: fileSystem, settlingTime: .zero)
}

extension Examiner {
  func look(
    _ path: FilePath, _ model: AppModel? = nil, _ depth: Examination.Depth = .quick, counting: Bool = true
  ) throws -> Examination {
    try examine(path, model: model, options: Options(depth: depth, countsRecords: counting))
  }
}

extension Examination {
  /// The entities in words, for comparing.
  var counts: [String] { entities.map { "\($0.name) in \($0.table): \($0.rows.map(String.init) ?? "not counted")" } }
}

/// How long a look at a small file may take: a second, and more in unoptimised code on a machine that is busy testing.
#if DEBUG
  let longestLook = Duration.seconds(5)
#else
  let longestLook = Duration.seconds(1)
#endif
