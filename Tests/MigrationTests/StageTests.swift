import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Code of an app before and after steps.
struct StageTests {
  static let first = model(entity("Note", attribute("text")))
  static let second = model(entity("Note", attribute("text"), attribute("words", .integer32)))
  static let third = model(
    entity("Note", attribute("text"), attribute("words", .integer32), toMany("tags", "Tag", inverse: "notes")),
    entity("Tag", attribute("name"), toMany("notes", "Note", inverse: "tags")))

  static func scene() throws -> MigrationScene {
    try MigrationScene(
      first, "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTEXT) VALUES (1, 1, 1, 'a b c'), (2, 1, 1, 'd'), (3, 1, 1, '')")
  }

  static func stages(_ log: PolicyTests.Log) -> [MigrationStage] {
    [
      MigrationStage(
        from: "V1", to: "V2",
        willMigrate: { context in
          log.add("will \(context.stepName) \(context.attempt)")
          for note in try context.records(of: "Note") where note["text"] == .string("") { try context.delete(note) }
        },
        didMigrate: { context in
          log.add("did \(context.stepName) \(context.attempt)")
          try context.forEachRecord(of: "Note") { note in
            guard case .string(let text) = note["text"] else { return }
            note["words"] = .integer(Int64(text.split(separator: " ").count))
          }
        }),
      MigrationStage(
        to: "V3",
        didMigrate: { context in
          log.add("did \(context.stepName) \(context.attempt)")
          let tag = try context.createRecord(of: "Tag")
          tag["name"] = .string("all")
          try context.setRecords(of: "notes", from: tag, to: try context.records(of: "Note"))
          try context.withDatabase { try $0.execute(sql: "UPDATE ZTAG SET ZNAME = upper(ZNAME)") }
        }),
    ]
  }

  static func expectDone(_ scene: MigrationScene, _ comment: Comment) throws {
    #expect(try scene.rows("SELECT Z_PK, ZTEXT, ZWORDS FROM ZNOTE ORDER BY 1") == ["1|a b c|3", "2|d|1"], comment)
    let store = try PersistentStore(opening: scene.store, model: third)
    #expect(try store.destinationKeys(of: "notes", entity: "Tag", primaryKey: 1) == [1, 2], comment)
    #expect(try store.records(of: "Tag").map { $0.values["name"] } == [.string("ALL")], comment)
    try store.close()
    #expect(
      try FileSystem().entries(of: scene.folder.path).map(\.string).sorted() == ["App.sqlite", "Backups"], comment)
  }

  @Test func handlersRunAroundTheirSteps() throws {
    let scene = try Self.scene()
    let log = PolicyTests.Log()
    var options = Migrator.Options()
    options.stages = Self.stages(log)
    let result = try scene.migrate(try bundle(Self.first, Self.second, Self.third), options: options)
    #expect(log.all == ["will V1 → V2 1", "did V1 → V2 1", "did V2 → V3 1"])
    #expect(result.steps.map { $0.entities.map { "\($0.entity) \($0.rows)" } } == [["Note 2"], ["Note 2", "Tag 1"]])
    try Self.expectDone(scene, "undisturbed")
  }

  @Test func handlersAreToldThatTheyRunAgain() throws {
    let rehearsal = Trouble(.death, atStep: 0)
    var options = Migrator.Options()
    options.stages = Self.stages(PolicyTests.Log())
    let versions = try bundle(Self.first, Self.second, Self.third)
    let whole = try Self.scene()
    try whole.migrate(versions, .still(fileSystem: rehearsal.fileSystem), options: options)
    let bytes = try FileSystem().contents(of: whole.store, limit: 1 << 20)
    var repeated = 0
    for step in stride(from: 1, through: rehearsal.steps, by: 4) {
      let scene = try Self.scene()
      options.stages = Self.stages(PolicyTests.Log())
      _ = try? scene.migrate(
        versions, .still(fileSystem: Trouble(.death, atStep: step).fileSystem), options: options)
      let log = PolicyTests.Log()
      options.stages = Self.stages(log)
      try scene.migrate(versions, options: options)
      try Self.expectDone(scene, "step \(step)")
      #expect(try FileSystem().contents(of: scene.store, limit: 1 << 20) == bytes, "step \(step)")
      if log.all.contains(where: { $0.hasSuffix(" 2") }) { repeated += 1 }
    }
    #expect(repeated > 1)
  }

  @Test(arguments: [true, false]) func failuresLeaveTheStoreAlone(before: Bool) throws {
    struct Failure: Error { var text = "secret" }
    let scene = try Self.scene()
    let contents = try FolderContents(of: scene.folder.path)
    var options = Migrator.Options()
    let failing: MigrationStage.Handler = { _ in throw Failure() }
    options.stages = [
      MigrationStage(from: "V2", willMigrate: before ? failing : nil, didMigrate: before ? nil : failing)
    ]
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.first, Self.second, Self.third), options: options)
    }
    #expect(error.code == "stage-handler-failed" && error.step == "V2 → V3", "\(error)")
    #expect(!error.description.contains("secret"))
    #expect(try FolderContents(of: scene.folder.path) == contents)
  }

  @Test func whatHandlersBreakIsFound() throws {
    let scene = try Self.scene()
    let contents = try FolderContents(of: scene.folder.path)
    var options = Migrator.Options()
    options.stages = [
      MigrationStage(
        to: "V3",
        didMigrate: { context in
          let table = try StoreLayout(context.model).joinTables[0]
          try context.withDatabase {
            try $0.execute(
              sql: "INSERT INTO \(table.name) (\(table.sourceColumn), \(table.destinationColumn)) VALUES (77, 78)")
          }
        })
    ]
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.first, Self.second, Self.third), options: options)
    }
    #expect(error.kind == .verificationFailed, "\(error)")
    #expect(try FolderContents(of: scene.folder.path) == contents)
  }

  @Test func stagesOfUnknownVersionsAreRefused() throws {
    let scene = try Self.scene()
    var options = Migrator.Options()
    options.stages = [MigrationStage(from: "V7", didMigrate: { _ in })]
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.first, Self.second), options: options)
    }
    #expect(error.kind == .unknownVersion && error.detail.contains("V7"))
  }
}
