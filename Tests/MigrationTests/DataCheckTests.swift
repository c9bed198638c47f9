import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// What contradicts a store's model in its records.
struct DataCheckTests {
  private static func toOne(_ name: String, _ destination: String, _ inverse: String) -> Property {
    .relationship(
      Relationship(
        traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse,
        inverseEntityName: destination))
  }

  private static let model = ManagedObjectModel(
    entities: [
      Entity(
        name: "Captain",
        properties: [
          .attribute(Attribute(traits: PropertyTraits(name: "name", isOptional: false), type: .string)),
          toOne("ship", "Ship", "captain"),
        ]),
      Entity(
        name: "Ship",
        properties: [
          .attribute(Attribute(traits: PropertyTraits(name: "code", isOptional: true), type: .string)),
          .attribute(
            Attribute(
              traits: PropertyTraits(name: "photo", isOptional: true), type: .binary,
              allowsExternalBinaryDataStorage: true)),
          toOne("captain", "Captain", "ship"),
        ], uniquenessConstraints: [["code"]]),
    ])

  /// - Parameter files: the names of files of large values that are beside the store.
  private func check(_ statements: String, files: [String] = []) throws -> DataCheck {
    let folder = try TemporaryFolder()
    let creation = try StoreCreation(
      model: Self.model, uuid: "00000000-0000-4000-8000-000000000001", modelCache: nil)
    let path = try folder.write(try creation.bytes(), to: "Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: statements) }
    try queue.close()
    for name in files { try folder.write([1, 2, 3], to: ".Store_SUPPORT/_EXTERNAL_DATA/\(name)") }
    let before = try FolderContents(of: folder.path)
    let check = try DataCheck(of: StoreFileSet(main: path), layout: try StoreLayout(Self.model))
    #expect(try FolderContents(of: folder.path) == before)
    return check
  }

  private static let sound = """
    INSERT INTO ZCAPTAIN (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSHIP) VALUES (1, 1, 1, 'Ada', 1), (2, 1, 1, 'Bea', NULL);
    INSERT INTO ZSHIP (Z_PK, Z_ENT, Z_OPT, ZCODE, ZCAPTAIN) VALUES (1, 2, 1, 'a', 1), (2, 2, 1, NULL, NULL), (3, 2, 1, NULL, NULL);
    """

  @Test("A sound store has no finding")
  func clean() throws { #expect(try check(Self.sound).isClean) }

  @Test("Rows without a primary key of their own are found, in tables of records that have lost theirs")
  func sharedKeys() throws {
    let loose = """
      CREATE TABLE loose AS SELECT * FROM ZSHIP; DROP TABLE ZSHIP; ALTER TABLE loose RENAME TO ZSHIP;
      """
    #expect(try check(Self.sound + loose).isClean)
    let check = try check(Self.sound + loose + "UPDATE ZSHIP SET Z_PK = 2 WHERE Z_PK = 3")
    #expect(check.findings.map { "\($0.kind.rawValue) \($0.table) \($0.count)" } == ["duplicate-key ZSHIP 2"])
    #expect(check.hasContradictions)
  }

  @Test("A reference that leads nowhere, a one-sided one, a repeated value and a missing one are each found once")
  func found() throws {
    let check = try check(
      Self.sound + """
        DROP INDEX Z_Ship_UNIQUE_code;
        UPDATE ZSHIP SET ZCAPTAIN = 77 WHERE Z_PK = 2;
        UPDATE ZSHIP SET ZCAPTAIN = 2, ZCODE = 'a' WHERE Z_PK = 3;
        UPDATE ZCAPTAIN SET ZNAME = NULL WHERE Z_PK = 2;
        """)
    #expect(check.findings.map(\.kind) == [.danglingReference, .oneSidedRelationship, .duplicate, .missingValue])
    #expect(check.findings.map(\.table) == ["ZSHIP", "ZSHIP", "ZSHIP", "ZCAPTAIN"])
    #expect(check.findings.map(\.keys) == [[[2]], [[3]], [[3]], [[2]]])
    #expect(check.findings.map(\.count) == [1, 1, 1, 1])
  }

  @Test("A large value whose file is not there is found, and one that lies in the store or whose file is there is not")
  func missingFiles() throws {
    let (there, gone) = ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")
    func reference(_ name: String) -> String { "x'02' || CAST('\(name)' AS BLOB) || x'00'" }
    let statements =
      Self.sound + """
        UPDATE ZSHIP SET ZPHOTO = CAST(\(reference(there)) AS BLOB) WHERE Z_PK = 1;
        UPDATE ZSHIP SET ZPHOTO = CAST(\(reference(gone)) AS BLOB) WHERE Z_PK = 2;
        UPDATE ZSHIP SET ZPHOTO = x'0102030405' WHERE Z_PK = 3;
        """
    let found = try check(statements, files: [there])
    #expect(found.findings.map(\.kind) == [.missingFile] && found.findings.map(\.keys) == [[[2]]])
    #expect(found.findings.map(\.property) == ["Ship.photo"] && found.findings.map(\.count) == [1])
    #expect(!found.isClean && found.lacksFiles && !found.hasContradictions)
    #expect(try check(statements, files: [there, gone]).isClean)
    #expect(try check(statements).findings.map(\.keys) == [[[1], [2]]])
    // A name that leads elsewhere is none of a file beside the store.
    let outside =
      Self.sound + "UPDATE ZSHIP SET ZPHOTO = CAST(\(reference("../../Store.sqlite")) AS BLOB) WHERE Z_PK = 1"
    #expect(try check(outside).findings.map(\.kind) == [.missingFile])
  }

  @Test("What leads to a table that is not there leads nowhere, and what else could not be checked is told")
  func missingTable() throws {
    let noTable = try check(Self.sound + "DROP TABLE ZCAPTAIN")
    #expect(noTable.findings.map(\.kind) == [.danglingReference])
    #expect(noTable.findings.map(\.table) == ["ZSHIP"] && noTable.findings.map(\.keys) == [[[1]]])
    #expect(noTable.notChecked == ["table ZCAPTAIN is not there"] && !noTable.isClean)
    let noColumn = try check(Self.sound + "ALTER TABLE ZSHIP DROP COLUMN ZPHOTO")
    #expect(noColumn.findings.isEmpty && !noColumn.isClean)
    #expect(noColumn.notChecked == ["table ZSHIP has no column ZPHOTO"])
  }

  @Test("What damaged indexes say of rows is not said")
  func damagedIndexes() throws {
    // Each of the two indexes of the table leads to the other's entries.
    let swapped = try check(
      Self.sound + """
        PRAGMA writable_schema = 1;
        UPDATE sqlite_master SET rootpage =
          (SELECT sum(rootpage) FROM sqlite_master WHERE type = 'index' AND tbl_name = 'ZSHIP') - rootpage
        WHERE type = 'index' AND tbl_name = 'ZSHIP';
        PRAGMA writable_schema = 0
        """)
    #expect(swapped.findings == [] && swapped.isClean)
  }
}
