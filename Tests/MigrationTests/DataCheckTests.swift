import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import StoreFiles
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
          toOne("captain", "Captain", "ship"),
        ], uniquenessConstraints: [["code"]]),
    ])

  private func check(_ statements: String) throws -> DataCheck {
    let folder = try TemporaryFolder()
    let creation = try StoreCreation(
      model: Self.model, uuid: "00000000-0000-4000-8000-000000000001", modelCache: nil)
    let path = try folder.write(try creation.bytes(), to: "Store.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: statements) }
    try queue.close()
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
}
