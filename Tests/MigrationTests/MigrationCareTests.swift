import GRDB
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// What a migration takes care of beside the records: pairs, counts, history, permissions, other writers, a full disk.
struct MigrationCareTests {
  @Test func newInverseJoinsThePairsOfBothSides() throws {
    let old = model(entity("A", toOne("b", "B")), entity("B", toOne("a", "A")))
    let new = model(entity("A", toOne("b", "B", inverse: "a")), entity("B", toOne("a", "A", inverse: "b")))
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZB) VALUES (1, 1, 1, 1), (2, 1, 1, 1), (3, 1, 1, NULL), (4, 1, 1, 4)",
      "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 2, 1, NULL), (2, 2, 1, 3), (3, 2, 1, 3), (4, 2, 1, 1), (5, 2, 1, 2)"
    )
    let result = try scene.migrate(try bundle(old, new))
    #expect(result.steps.map(\.way) == [.rebuild])
    #expect(try scene.rows("SELECT Z_PK, ZB FROM ZA ORDER BY Z_PK") == ["1|1", "2|5", "3|2", "4|4"])
    #expect(try scene.rows("SELECT Z_PK, ZA FROM ZB ORDER BY Z_PK") == ["1|1", "2|3", "3|NULL", "4|4", "5|2"])
  }

  @Test func newInverseOfAToManyFillsTheGaps() throws {
    let old = model(entity("A", toOne("b", "B")), entity("B", toMany("as", "A")))
    let new = model(entity("A", toOne("b", "B", inverse: "as")), entity("B", toMany("as", "A", inverse: "b")))
    let layout = try StoreLayout(old)
    guard case .toManyByColumn(_, let hidden, _) = layout.storage(of: "as", in: "B") else {
      Issue.record("the layout is not what this test is about")
      return
    }
    let scene = try MigrationScene(
      old,
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZB, \(hidden)) VALUES (1, 1, 1, 1, 2), (2, 1, 1, NULL, 2), (3, 1, 1, NULL, NULL)",
      "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 2, 1)")
    try scene.migrate(try bundle(old, new))
    let rows = try scene.rows("SELECT Z_PK, ZB FROM ZA ORDER BY Z_PK")
    #expect(rows == ["1|1", "2|2", "3|NULL"])
  }

  @Test func tooManyDestinationsAreNamed() throws {
    let old = model(entity("A", toMany("bs", "B", inverse: "a")), entity("B", toOne("a", "A", inverse: "bs")))
    let new = model(entity("A", toMany("bs", "B", inverse: "a", max: 2)), entity("B", toOne("a", "A", inverse: "bs")))
    let scene = try MigrationScene(
      old, "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1)",
      "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 2, 1, 2), (2, 2, 1, 2), (3, 2, 1, 2), (4, 2, 1, 1)")
    let error = #expect(throws: MigrationError.self) { try scene.migrate(try bundle(old, new)) }
    #expect(error?.kind == .dataViolation && error?.entityName == "A" && error?.propertyName == "bs")
    #expect(error?.detail.contains("1 record ") == true && error?.detail.contains("(2)") == true)
  }

  @Test func bitsOfChangedPropertiesMove() throws {
    let old = model(entity("Car", attribute("brand"), attribute("gone"), attribute("zip")))
    let new = model(entity("Car", attribute("age"), attribute("maker", id: "brand"), attribute("zip")))
    let kept = model(
      entity("Car", attribute("age"), attribute("gone"), attribute("maker", id: "brand"), attribute("zip")))
    for (model, expected) in [
      (new, ["1|x60", "2|x20", "3|NULL", "4|NULL"]), (kept, ["1|x30", "2|x50", "3|NULL", "4|NULL"]),
    ] {
      let scene = try MigrationScene(
        old,
        "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZCOLUMNS BLOB)",
        // brand and zip; gone and zip; a byte too many; a bit too many.
        "INSERT INTO ACHANGE VALUES (1, 16001, 1, 1, x'a0'), (2, 16001, 1, 1, x'60'), (3, 16001, 1, 1, x'8000'), (4, 16001, 1, 1, x'10')"
      )
      try scene.migrate(try bundle(old, model))
      #expect(try scene.rows("SELECT Z_PK, ZCOLUMNS FROM ACHANGE") == expected)
    }
  }

  @Test(arguments: [false, true]) func permissionsStay(alwaysRebuilds: Bool) throws {
    let scene = try InterruptedMigrationTests.make()
    try FileSystem().adoptPermissions(0o640, scene.store)
    var options = Migrator.Options()
    options.alwaysRebuilds = alwaysRebuilds
    try scene.migrate(try InterruptedMigrationTests.versions(), options: options)
    #expect(try FileSystem().status(of: scene.store)?.permissions.rawValue == 0o640)
  }

  @Test(arguments: [1, 2, 99]) func startsAgainWhereTheStoreChanges(times: Int) throws {
    let scene = try InterruptedMigrationTests.make()
    let store = scene.store
    let count = Mutex(0)
    let fileSystem = FileSystem { operation throws(Errno) in
      guard operation.kind == .synchronize, operation.path.lastComponent?.string == "step-1.sqlite.unfinished" else {
        return
      }
      let number = count.withLock { number in
        number += 1
        return number
      }
      guard number <= times else { return }
      do {
        let opened = try PersistentStore(opening: store)
        try opened.write { try $0.execute(sql: "UPDATE ZCAR SET ZBRAND = 'Saab \(number)' WHERE Z_PK = 2") }
        try opened.close()
      } catch {
        throw .ioError
      }
    }
    let versions = try InterruptedMigrationTests.versions()
    guard times < 3 else {
      let error = #expect(throws: MigrationError.self) {
        try scene.migrate(versions, .still(fileSystem: fileSystem))
      }
      #expect(error?.fileError?.kind == .changed)
      #expect(try scene.rows("SELECT ZBRAND FROM ZCAR WHERE Z_PK = 2") == ["Saab 3"])
      return
    }
    try scene.migrate(versions, .still(fileSystem: fileSystem))
    #expect(try scene.rows("SELECT ZMAKER FROM ZCAR WHERE Z_PK = 2") == ["Saab \(times)"])
  }

  @Test func fullDiskIsToldInBytes() throws {
    let scene = try InterruptedMigrationTests.make()
    let trouble = FileSystem { operation throws(Errno) in
      if operation.kind == .synchronize, operation.path.lastComponent?.string == "step-1.sqlite.unfinished" {
        throw .noSpace
      }
    }
    let error = #expect(throws: MigrationError.self) {
      try scene.migrate(try InterruptedMigrationTests.versions(), .still(fileSystem: trouble))
    }
    #expect(error?.isEnvironmental == true && error?.detail.contains("bytes") == true)
    #expect(try scene.rows("SELECT count(*) FROM ZCAR") == ["2"])
  }
}

extension FileSystem {
  /// Sets the permissions of a file.
  fileprivate func adoptPermissions(_ permissions: CInt, _ path: FilePath) throws {
    var status = try #require(try status(of: path))
    status.permissions = FilePermissions(rawValue: CInterop.Mode(permissions))
    try adoptAccess(of: status, to: path)
  }
}
