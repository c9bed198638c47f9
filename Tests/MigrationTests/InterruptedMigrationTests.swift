import ManagedObjectModel
import Migration
import Platform
import SystemPackage
import TestSupport
import Testing

/// Deaths and failures at every step of a migration.
struct InterruptedMigrationTests {
  static let first = model(entity("Car", attribute("brand")))
  static let second = model(entity("Car", attribute("brand"), attribute("doors", .integer16)))
  static let third = model(
    entity("Car", attribute("maker", id: "brand"), attribute("doors", .integer16)), entity("Bike"))

  static func make() throws -> MigrationScene {
    let scene = try MigrationScene(
      first, "INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZBRAND) VALUES (1, 1, 1, 'Fiat'), (2, 1, 1, 'Opel')")
    try scene.folder.write("outside", to: ".App_SUPPORT/_EXTERNAL_DATA/file")
    return scene
  }

  static func versions() throws -> ModelBundle { try bundle(first, second, third) }

  static func expectMigrated(_ scene: MigrationScene, _ comment: Comment) throws {
    #expect(
      try scene.rows("SELECT Z_PK, Z_ENT, ZMAKER, ZDOORS FROM ZCAR") == ["1|2|Fiat|NULL", "2|2|Opel|NULL"], comment)
    let external = scene.folder.appending(".App_SUPPORT/_EXTERNAL_DATA/file")
    #expect(try FileSystem().contents(of: external, limit: 100) == Array("outside".utf8), comment)
    let left = try FileSystem().entries(of: scene.folder.path).map(\.string)
    #expect(left.sorted() == [".App_SUPPORT", "App.sqlite", "Backups"], comment)
    let backups = RealMaterial.allFiles(below: scene.folder.appending("Backups")).filter {
      $0.string.hasSuffix(".sqlite")
    }
    #expect(backups.count == 1, comment)
    if let backup = backups.first {
      #expect(try MigrationScene.rows("SELECT ZBRAND FROM ZCAR", in: backup) == ["Fiat", "Opel"], comment)
    }
  }

  @Test(arguments: [Errno?.none, .noSpace, .ioError], [["V2"], []])
  func anyWriteMayBeTheLast(errno: Errno?, via: [String]) throws {
    var options = Migrator.Options()
    options.via = via
    let rehearsal = Trouble(.death, atStep: 0)
    let whole = try Self.make()
    try whole.migrate(try Self.versions(), .still(fileSystem: rehearsal.fileSystem), options: options)
    try Self.expectMigrated(whole, "undisturbed")
    let bytes = try FileSystem().contents(of: whole.store, limit: 1 << 20)
    #expect(rehearsal.steps > 20)
    // Every fifth step in the ordinary run, each kind of trouble at others; all of them in the long one.
    let isLong = environment("LAZARET_MUTATIONS") != nil
    let start = isLong ? 1 : [1, 3, 5][errno == nil ? 0 : errno == .noSpace ? 1 : 2]
    print("a migration of \(via.count + 1) steps has \(rehearsal.steps) writes")
    for step in stride(from: start, through: rehearsal.steps, by: isLong ? 1 : 5) {
      let scene = try Self.make()
      let trouble = Trouble(errno.map { .failure($0) } ?? .death, atStep: step)
      do {
        try scene.migrate(try Self.versions(), .still(fileSystem: trouble.fileSystem), options: options)
      } catch let error as MigrationError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      try scene.migrate(try Self.versions(), options: options)
      try Self.expectMigrated(scene, "step \(step)")
      #expect(try FileSystem().contents(of: scene.store, limit: 1 << 20) == bytes, "step \(step)")
    }
  }

  @Test func outputElsewhereLeavesTheOriginalAlone() throws {
    let scene = try Self.make()
    let before = try FolderContents(of: scene.folder.path, ignoring: ["Out"])
    let out = scene.folder.appending("Out")
    try FileSystem().makeDirectory(out)
    var options = Migrator.Options()
    options.output = out.appending("New.sqlite")
    let result = try scene.migrate(try Self.versions(), options: options)
    #expect(result.backup == nil && result.steps.count == 1)
    #expect(try MigrationScene.rows("SELECT count(*) FROM ZCAR", in: result.store) == ["2"])
    #expect(try FolderContents(of: scene.folder.path, ignoring: ["Out"]) == before)
    #expect(
      try FileSystem().contents(of: out.appending(".New_SUPPORT/_EXTERNAL_DATA/file"), limit: 100)
        == Array("outside".utf8))
  }
}

extension RealMaterial {
  /// Every regular file below a folder.
  static func allFiles(below folder: FilePath) -> [FilePath] {
    var result: [FilePath] = []
    var waiting = [folder]
    while let next = waiting.popLast() {
      for name in (try? FileSystem().entries(of: next)) ?? [] {
        let path = next.appending(name)
        switch (try? FileSystem().status(of: path, followingLinks: false))??.kind {
        case .directory: waiting.append(path)
        case .regular: result.append(path)
        default: break
        }
      }
    }
    return result
  }
}
