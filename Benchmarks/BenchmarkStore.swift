import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage

/// The store that is measured: one that is given, or one made for it.
struct BenchmarkStore {
  let path: FilePath
  let model: AppModel
  let bytes: Int64

  init(store: String, model: String) throws {
    path = FilePath(store)
    self.model = try AppModel.load(FilePath(model))
    bytes = try FileSystem().status(of: path)?.size ?? 0
  }

  /// Makes a store of cars and owners, and checkpoints it, so that all of it lies in the main file.
  init(records: Int) throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("lazaret-benchmarks-\(records)")
    let path = folder.appending("store.sqlite")
    let model = Self.garage
    if try FileSystem().status(of: path) == nil {
      print("making a store of \(records) records …")
      try FileSystem().makeDirectory(folder)
      let uuid = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"
      let bytes = try StoreCreation(model: model, uuid: uuid, modelCache: try model.modelCache()).bytes()
      try FileManager.default.createFile(atPath: path.string, contents: Data(bytes)) ? () : Self.fail(path)
      let store = try PersistentStore(opening: path, model: model)
      try store.write { database in
        let insert = try database.makeStatement(
          sql:
            "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZOWNER, ZMAKER, ZMILEAGE, ZPRICE, ZSOLD) VALUES (?, 1, 1, ?, ?, ?, ?, ?)"
        )
        for number in 1...max(1, records) {
          try insert.execute(arguments: [
            number, number % 1000 + 1, "Maker of cars number \(number % 4093), and some more words about it",
            number &* 7919 % 1_000_003, Double(number) * 1.25, Double(number) / 3,
          ])
        }
        for number in 1...1000 {
          try database.execute(
            sql: "INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 2, 1, ?)",
            arguments: [number, "Owner \(number)"])
        }
      }
      try store.close()
    }
    guard
      let version = ModelBundle(
        name: "Benchmark", versions: [ModelVersion(name: "Benchmark", model: model, isCurrent: true)])
    else { throw FileError(.notFound, operation: "make the benchmark's model", path: nil) }
    self.path = path
    self.model = .coreData(version)
    bytes = try FileSystem().status(of: path)?.size ?? 0
  }

  private static func fail(_ path: FilePath) throws {
    throw FileError(.other, operation: "make the benchmark's store", path: path)
  }

  /// The model of the store that is made.
  static let garage = ManagedObjectModel(entities: [
    Entity(
      name: "Car",
      properties: [
        attribute("maker", .string), attribute("mileage", .integer64), attribute("price", .double),
        attribute("sold", .date),
        .relationship(
          Relationship(
            traits: PropertyTraits(name: "owner", isOptional: true), destinationEntityName: "Owner",
            inverseName: "cars")),
      ]),
    Entity(
      name: "Owner",
      properties: [
        attribute("name", .string),
        .relationship(
          Relationship(
            traits: PropertyTraits(name: "cars", isOptional: true), destinationEntityName: "Car", inverseName: "owner",
            maximumCount: 0)),
      ]),
  ])

  private static func attribute(_ name: String, _ type: AttributeType) -> Property {
    .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: type))
  }
}
