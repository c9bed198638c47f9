import ManagedObjectModel
import PersistentStore
import Testing

@Suite struct JoinTableTests {
  @Test func namesTheTableAfterTheFirstInAFlatList() throws {
    // AlbumList (2) is reached after Album, which inherits albumLists from GenericAlbum.
    let layout = try layout(
      Entity(name: "AlbumList", properties: [toMany("albums", "GenericAlbum", inverse: "albumLists", ordered: true)]),
      Entity(name: "GenericAlbum", properties: [toMany("albumLists", "AlbumList", inverse: "albums")]),
      Entity(name: "Album", parentName: "GenericAlbum"))
    let table = try #require(layout.joinTables.first)
    #expect(layout.joinTables.count == 1)
    #expect(
      table.statement == """
        CREATE TABLE Z_2ALBUMLISTS ( Z_2ALBUMS INTEGER, Z_1ALBUMLISTS INTEGER, Z_FOK_2ALBUMS INTEGER, \
        PRIMARY KEY (Z_2ALBUMS, Z_1ALBUMLISTS) )
        """)
    #expect(
      layout.indexes.map(\.statement).contains(
        "CREATE INDEX Z_2ALBUMLISTS_Z_1ALBUMLISTS_INDEX ON Z_2ALBUMLISTS (Z_1ALBUMLISTS, Z_2ALBUMS)"))
    #expect(
      layout.storage(of: "albumLists", in: "Album")
        == .toManyByJoinTable(
          table: "Z_2ALBUMLISTS", ownColumn: "Z_2ALBUMS", destinationColumn: "Z_1ALBUMLISTS", orderColumn: nil))
    #expect(
      layout.storage(of: "albums", in: "AlbumList")
        == .toManyByJoinTable(
          table: "Z_2ALBUMLISTS", ownColumn: "Z_1ALBUMLISTS", destinationColumn: "Z_2ALBUMS",
          orderColumn: "Z_FOK_2ALBUMS"))
  }

  @Test func callsASelfInverseReflexive() throws {
    let layout = try layout(Entity(name: "Person", properties: [toMany("friends", "Person", inverse: "friends")]))
    #expect(
      layout.joinTables.map(\.statement) == [
        "CREATE TABLE Z_1FRIENDS ( Z_1FRIENDS INTEGER, REFLEXIVE INTEGER, PRIMARY KEY (Z_1FRIENDS, REFLEXIVE) )"
      ])
    #expect(
      layout.indexes.map(\.statement) == [
        "CREATE INDEX Z_1FRIENDS_REFLEXIVE_INDEX ON Z_1FRIENDS (REFLEXIVE, Z_1FRIENDS)"
      ])
    #expect(layout.joinTables[0].isReflexive)
  }

  @Test func decidesSameEntityPairsByTheLegacyOrder() throws {
    // In the order of the historic hash tables friendOf comes before friends.
    let layout = try layout(
      Entity(
        name: "Person",
        properties: [
          toMany("friends", "Person", inverse: "friendOf"), toMany("friendOf", "Person", inverse: "friends"),
          attribute("name", .string), toOne("owner", "Person"), attribute("título", .string),
        ]))
    #expect(layout.joinTables.map(\.name) == ["Z_1FRIENDOF"])
    #expect(layout.joinTables[0].columns == ["Z_1FRIENDS", "Z_1FRIENDOF"])
    #expect(!layout.joinTables[0].isReflexive)
  }

  @Test func makesColumnNamesUniquePerEntity() throws {
    let layout = try layout(
      Entity(name: "Album", properties: [toMany("keyAssets", "Asset", inverse: "albums")]),
      Entity(
        name: "Asset",
        properties: [
          toMany("albums", "Album", inverse: "keyAssets"), toMany("moments", "Moment", inverse: "keyAssets"),
        ]),
      Entity(name: "Moment", properties: [toMany("keyAssets", "Asset", inverse: "moments")]))
    let columns = layout.joinTables.map { [$0.name] + $0.columns }
    #expect(columns.count == 2)
    #expect(columns[0] == ["Z_1KEYASSETS", "Z_1ALBUMS", "Z_2KEYASSETS"])
    #expect(columns[1] == ["Z_2MOMENTS", "Z_2KEYASSETS1", "Z_3MOMENTS"])
  }

  @Test func storesAHalfPairAsOneWay() throws {
    // b's inverse is a, but a's inverse is c: b leads nowhere back.
    let layout = try layout(
      Entity(name: "A", properties: [toMany("a", "B", inverse: "c")]),
      Entity(name: "B", properties: [toMany("b", "A", inverse: "a"), toMany("c", "A", inverse: "a")]))
    #expect(layout.joinTables.count == 1)
    #expect(layout.storage(of: "b", in: "B") == .toManyByColumn(table: "ZA", column: "Z2B", orderColumn: nil))
  }
}
