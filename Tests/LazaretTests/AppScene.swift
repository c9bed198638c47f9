import Foundation
import GRDB
import Lazaret
import SystemPackage
import TestSupport

/// A folder with an app's model and its store, as an app sees them.
struct AppScene {
  let folder: TemporaryFolder

  var home: URL { url("Home") }
  var model: URL { url("App.xcdatamodeld") }
  var place: URL { url("Stores/App.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createDirectory(at: url("Stores"), withIntermediateDirectories: true)
    for (version, attributes) in [("V1", ["name"]), ("V2", ["name", "color"])] {
      try folder.write(Self.contents(attributes), to: "App.xcdatamodeld/\(version).xcdatamodel/contents")
      try folder.write(Self.contents(attributes), to: "\(version).xcdatamodel/contents")
    }
    try folder.write(Self.current, to: "App.xcdatamodeld/.xccurrentversion")
  }

  func url(_ name: String) -> URL { URL(fileURLWithPath: folder.path.string).appendingPathComponent(name) }

  /// The store, without anything that goes on in the background.
  func store(_ model: URL? = nil, home: URL? = nil) throws -> RecoverableStore {
    var store = RecoverableStore(
      at: place, model: try StoreModel(contentsOf: model ?? self.model), home: home, appVersion: "7.1")
    store.policy.checkInterval = nil
    store.policy.recoveryKitInterval = nil
    return store
  }

  /// Makes a store of a version with so many cars.
  func make(_ version: String = "V2", cars: Int) async throws {
    _ = try await store(url("\(version).xcdatamodel")).open()
    try write { database in
      for key in 1...max(1, cars) where cars > 0 {
        try database.execute(
          sql: "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 1, 1, ?)", arguments: [key, "Car \(key)"])
      }
      try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ?", arguments: [cars])
    }
  }

  /// Works with the store as an app does, with a connection of its own.
  func write(_ body: (Database) throws -> Void) throws {
    let queue = try DatabaseQueue(path: place.path)
    try queue.write(body)
    try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    try queue.close()
  }

  /// The names of the cars in a store, by SQLite.
  func names(_ url: URL? = nil) throws -> [String] {
    let queue = try DatabaseQueue(path: (url ?? place).path)
    let names = try queue.read { try String.fetchAll($0, sql: "SELECT ZNAME FROM ZCAR ORDER BY Z_PK") }
    try queue.close()
    return names
  }

  /// Makes a file that is no store, and not plainly of another kind.
  func makeNonsense() throws {
    try Data(("\u{1}\u{2}" + String(repeating: "nothing like a database\n", count: 300)).utf8).write(to: place)
  }

  /// Overwrites a page in the middle of the file with zeros.
  func damage() throws {
    let handle = try FileHandle(forUpdating: place)
    try handle.seek(toOffset: handle.seekToEnd() / 2 / 4096 * 4096)
    try handle.write(contentsOf: Data(count: 4096))
    try handle.close()
  }

  private static func contents(_ attributes: [String]) -> String {
    let lines = attributes.map { "<attribute name=\"\($0)\" optional=\"YES\" attributeType=\"String\"/>" }
    return """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
        <entity name="Car" representedClassName="Car" syncable="YES">
          \(lines.joined(separator: "\n"))
        </entity>
      </model>
      """
  }

  private static let current = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0"><dict><key>_XCCurrentVersionName</key><string>V2.xcdatamodel</string></dict></plist>
    """
}
