import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing

/// A folder with a model and stores, and the built command line to work on them.
struct Desk {
  typealias Result = ChildProcess.Result

  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    try FileSystem().makeDirectory(folder.appending("Stores"))
    for (version, attributes) in [("V1", ["name"]), ("V2", ["name", "color"])] {
      try folder.write(Self.contents(attributes), to: "App.xcdatamodeld/\(version).xcdatamodel/contents")
    }
    try folder.write(Self.contents(["name"]), to: "Old.xcdatamodel/contents")
    try folder.write("CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT);", to: "Cars.sql")
  }

  static func contents(_ attributes: [String], entity: String = "Car", isUnique: Bool = true) -> String {
    let lines = attributes.map { "<attribute name=\"\($0)\" optional=\"YES\" attributeType=\"String\"/>" }
    let constraint =
      "<uniquenessConstraints><uniquenessConstraint><constraint value=\"name\"/></uniquenessConstraint></uniquenessConstraints>"
    return """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
        <entity name="\(entity)" representedClassName="Car" syncable="YES">\(lines.joined())
          \(isUnique ? constraint : "")
        </entity>
      </model>
      """
  }

  var store: String { folder.appending("Stores/App.sqlite").string }
  var stores: FilePath { folder.appending("Stores") }
  var model: String { folder.appending("App.xcdatamodeld").string }

  /// Runs the command line in the folder, which is its home too.
  func lazaret(_ arguments: String..., input: String = "") throws -> Result { try run(arguments, input: input) }

  func run(_ arguments: [String], input: String = "") throws -> Result {
    try ChildProcess.run(ChildProcess.tool, arguments, input: input, in: folder.path, home: folder.path)
  }

  /// Runs the command line where no home is named, neither by an option nor by the environment.
  func homeless(_ arguments: String..., in directory: FilePath? = nil) throws -> Result {
    try ChildProcess.run(ChildProcess.tool, arguments, in: directory ?? folder.path)
  }

  func makeDamagedStore(_ name: String = "App.sqlite") throws {
    // Not plainly a text, which the command line would leave where it is.
    try folder.write("\u{1}\u{2}" + String(repeating: "nothing like a database\n", count: 300), to: "Stores/\(name)")
    try folder.write("an old log", to: "Stores/\(name)-wal")
  }

  func makeStore(_ store: String? = nil, model: String? = nil) throws {
    let result = try lazaret("open", store ?? self.store, "--model", model ?? self.model)
    // 2 where the one that was there before lies in quarantine.
    #expect([0, 2].contains(result.status), "\(result.errors)")
  }

  /// Makes a store of the first version of the model, with one record.
  func makeOldStore(_ name: String = "Old.sqlite") throws -> String {
    let path = folder.appending("Stores").appending(name)
    for suffix in ["", "-wal", "-shm"] { try FileSystem().unlink(path.sibling(suffix: suffix)) }
    try makeStore(path.string, model: folder.appending("Old.xcdatamodel").string)
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'one')")
      try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 1")
    }
    try queue.close()
    return path.string
  }

  /// Makes a store of the first version of the model with forty records, whose header was written over.
  func makeBrokenStore(_ name: String = "Broken.sqlite") throws -> String {
    let path = FilePath(try makeOldStore(name))
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      for number in 2...40 {
        try database.execute(
          sql: "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 1, 1, ?)", arguments: [number, "car \(number)"])
      }
      try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 40; PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
    var bytes = try FileSystem().contents(of: path, limit: 1 << 24)
    bytes.replaceSubrange(0..<32, with: Array("<!DOCTYPE html><html><head><titl".utf8))
    try FileSystem().writeAtomically(bytes, to: path, replacing: true)
    return path.string
  }

  /// A model whose second version drops the only attribute, and one whose second version gives it another type.
  func makeLosingModel() throws -> String { try makeModel("Losing", ["V1": ["name"], "V2": []]) }

  func makeRefusedModel() throws -> String {
    try folder.write(
      Self.contents(["name"]).replacing("attributeType=\"String\"", with: "attributeType=\"Date\""),
      to: "Refused.xcdatamodeld/V2.xcdatamodel/contents")
    return try makeModel("Refused", ["V1": ["name"]])
  }

  private func makeModel(_ name: String, _ versions: [String: [String]]) throws -> String {
    for (version, attributes) in versions {
      try folder.write(
        Self.contents(attributes, isUnique: !attributes.isEmpty),
        to: "\(name).xcdatamodeld/\(version).xcdatamodel/contents")
    }
    return folder.appending("\(name).xcdatamodeld").string
  }

  /// Notes beside the last original that migrations of a store have kept that it holds twelve records of an entity that is
  /// gone.
  ///
  /// - Returns: the original's name.
  func noteRemovedRecords(of store: String) throws -> String {
    let place = "Backups/\(FilePath(store).stem ?? "")"
    let originals = try FileSystem().entries(of: folder.appending(place)).filter { $0.extension == "sqlite" }
    let id = try #require(originals.last?.stem)
    let note = #"{"version":1,"step":"V1 → V2","entities":[{"entity":"Person","rows":12}]}"#
    try folder.write(note, to: "\(place)/\(id).only-here.json")
    return id
  }

  /// The one quarantined store's name.
  func quarantinedID() throws -> String {
    let listing = try json(try lazaret("quarantine", "list", "--json").output)
    let stores = try #require((listing as? [String: Any])?["stores"] as? [[String: Any]])
    return try #require(stores.first?["id"] as? String)
  }
}

/// The value of a JSON text; the text must be nothing else.
func json(_ text: String, _ location: SourceLocation = #_sourceLocation) throws -> Any {
  try JSONSerialization.jsonObject(with: Data(text.utf8))
}

/// The keys of a JSON value, at every depth.
func keys(of value: Any) -> Set<String> {
  if let object = value as? [String: Any] {
    return object.reduce(into: Set(object.keys)) { $0.formUnion(keys(of: $1.value)) }
  }
  if let list = value as? [Any] { return list.reduce(into: []) { $0.formUnion(keys(of: $1)) } }
  return []
}
