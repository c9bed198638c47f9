import Backup
import Foundation
import GRDB
import Lazaret
import ManagedObjectModel
import Migration
import Platform
import SQLiteFormat
import SwiftModelSources
import SystemPackage
import TestSupport
import Testing

/// A folder with everything that the examples of the README and of the help name, and a shell to run them in.
///
/// What a quarantined store and a backup are called follows from the time, which stands still while they are made.
struct ExampleScene {
  /// The current folder of the shell.
  let folder: TemporaryFolder

  /// The folder that the shell finds the tool in.
  private let tools: TemporaryFolder

  /// What the examples name as the receiver of bundles; one on this machine answers in its place.
  private static let receiver = "https://support.example.com"

  /// What all scenes are copies of.
  private static let template = Result { try ExampleFiles() }

  /// Makes a scene of its own.
  init() throws {
    folder = try TemporaryFolder()
    tools = try TemporaryFolder()
    try FileManager.default.createSymbolicLink(
      atPath: tools.appending("lazaret").string, withDestinationPath: ChildProcess.tool)
    try Self.template.get().copy(into: folder)
  }

  /// Whether there is something of a name.
  func contains(_ path: String) throws -> Bool { try FileSystem().status(of: folder.appending(path)) != nil }

  /// Runs a command by a shell as it is written, apart from the receiver's host.
  func run(_ command: String, input: String) throws -> ChildProcess.Result {
    guard command.contains(Self.receiver) else { return try finish(start(command), input) }
    let site = try Receiver(in: folder)
    defer { site.stop() }
    return try finish(start(command.replacing(Self.receiver, with: site.origin)), input)
  }

  private func finish(_ process: ChildProcess, _ input: String) throws -> ChildProcess.Result {
    process.tell(input)
    return try process.finish()
  }

  /// Starts a command by a shell, which it replaces, so that Ctrl-C is for it.
  func start(_ command: String) throws -> ChildProcess {
    let script = "PATH=\"\(tools.path.string):$PATH\"; exec \(command)"
    return try ChildProcess("/bin/sh", ["-c", script], in: folder.path)
  }

  /// An inbox on this machine, to which the token in the scene's folder belongs.
  private struct Receiver {
    let origin: String
    private let process: ChildProcess
    private let home: TemporaryFolder

    init(in folder: TemporaryFolder) throws {
      home = try TemporaryFolder()
      let made = try ChildProcess.run(
        ChildProcess.tool, ["inbox", "token", "new", "Garage", "--json"], in: home.path)
      let token = (try json(made.output) as? [String: Any])?["token"] as? String
      try folder.write(try #require(token) + "\n", to: "token")
      process = try ChildProcess(
        ChildProcess.tool, ["serve", "--inbox", "--port", "0", "--no-browser", "--json"], in: home.path)
      #expect(try process.waits(for: "\n"))
      let told = try json(try process.output()) as? [String: Any]
      let address = try #require(told?["sendTo"] as? String)
      #expect(address.hasSuffix("/inbox"))
      origin = String(address.dropLast("/inbox".count))
    }

    func stop() { process.kill() }
  }
}

/// The stores, models, keys and bundles that the examples name.
private struct ExampleFiles {
  private let desk: Desk

  init() throws {
    desk = try Desk()
    let folder = desk.folder
    let old = try desk.makeOldStore("App.sqlite")
    try addCars(to: old)
    for name in ["Old.sqlite", "App.store", "Released/App-1.0.store", "Released/App-1.1.store"] { try copy(old, name) }
    try done("open", "Released/App-1.1.store", "--model", desk.model)
    try done("damage", old, "-o", "Broken.sqlite", "--kind", "zero:5", "--seed", "7")
    try done("kit", "create", old, "-o", "App.kit")
    try writeModels(try ModelBundle.load(path: FilePath(desk.model)))
    try done("key", "new", "-o", "support.key")
    try folder.write(try done("key", "public", "support.key").output, to: "support.pub")
    try done("export", "Broken.sqlite", "-o", "App.lazaret.tar.gz.age", "--encrypt-to", "support.pub", "--yes")
    try done("inbox", "token", "new", "Garage 2", "--home", "Support")
  }

  /// Copies everything, and makes what knows where it lies: a quarantined store, and a backup of the one that came after it.
  func copy(into folder: TemporaryFolder) throws {
    for name in try FileSystem().entries(of: desk.folder.path) {
      try FileManager.default.copyItem(
        atPath: desk.folder.path.appending(name).string, toPath: folder.path.appending(name).string)
    }
    // 2026-11-21 10:11:12 UTC.
    let now = Timestamp(secondsSince1970: 1_795_255_872)
    let still = Surroundings(
      fileSystem: FileSystem(), now: { now }, makeUUID: { UniversalIdentifier.random() })
    let (home, store) = (folder.appending("Stores"), folder.appending("Stores/App.sqlite"))
    let stored = try Quarantines(home: home, surroundings: still).add(store)
    #expect(stored.id == "2026-11-21-10-11-12")
    try FileManager.default.copyItem(atPath: folder.appending("App.store").string, toPath: store.string)
    let backup = try Backups(home: home, surroundings: still).create(store)
    #expect(backup.id.description == "b-2026-11-21-10-11-12")
  }

  @discardableResult
  private func done(_ arguments: String...) throws -> ChildProcess.Result {
    let result = try ChildProcess.run(ChildProcess.tool, arguments, in: desk.folder.path)
    #expect(result.status == 0 || result.status == 2, "\(arguments): \(result.errors)")
    return result
  }

  private func copy(_ file: String, _ name: String) throws {
    let target = desk.folder.appending(name)
    try FileSystem().makeDirectory(target.removingLastComponent())
    try FileManager.default.copyItem(atPath: file, toPath: target.string)
  }

  /// Makes them forty, and leaves no log.
  private func addCars(to store: String) throws {
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { database in
      for number in 2...40 {
        try database.execute(
          sql: "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 1, 1, ?)", arguments: [number, "car \(number)"])
      }
      try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 40; PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
  }

  /// The model in its other forms, a mapping file, and SwiftData's declarations with their lock file.
  private func writeModels(_ bundle: ModelBundle) throws {
    let folder = desk.folder
    let hashes = try bundle.versions.map { version in
      try folder.write(version.model.compiledBytes(), to: "App.momd/\(version.name).mom")
      let entities = version.model.versionHashes().map { "<key>\($0.key)</key><data>\($0.value.base64)</data>" }
      return "<key>\(version.name)</key><dict>\(entities.joined())</dict>"
    }
    try folder.write(
      """
      <plist><dict><key>NSManagedObjectModel_CurrentVersionName</key><string>\(bundle.current.name)</string>
      <key>NSManagedObjectModel_VersionHashes</key><dict>\(hashes.joined())</dict></dict></plist>
      """, to: "App.momd/VersionInfo.plist")
    try folder.write(
      """
      {"format": 1, "source": "V1", "destination": "V2", "entities": [
        {"source": "Car", "destination": "Car", "attributes": {"name": "upper(name)"}}]}
      """, to: "Split.json")
    try folder.write(
      """
      import SwiftData
      enum SchemaV1: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Car.self] }
        @Model final class Car { var name: String = ""; init() {} }
      }
      enum Plan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [SchemaV1.self] }
        static var stages: [MigrationStage] { [] }
      }
      """, to: "Sources/Models/Car.swift")
    if SwiftSources.isAvailable { try done("model", "lint", "Sources/Models", "--lock", "model.lock") }
  }
}
