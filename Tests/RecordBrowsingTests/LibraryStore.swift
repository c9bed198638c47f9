import GRDB
import Inspector
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// A store of books and tags, whose relationship is many-to-many, and ordered on the side of the books.
struct LibraryStore {
  /// A book and one of its tags.
  struct Pair: Hashable, Comparable {
    var book: Int
    var tag: Int

    static func < (one: Pair, other: Pair) -> Bool { (one.book, one.tag) < (other.book, other.tag) }
  }

  let path: FilePath
  let model: ManagedObjectModel

  /// The name of the join table; empty where there is no relationship.
  let table: String

  /// - Parameters:
  ///   - pairs: the pairs, with the place of each tag; nil for a model without the relationship.
  ///   - more: other entities.
  init(_ path: FilePath, _ pairs: [Pair: Int]?, more: [Entity] = []) throws {
    var book = [Fleet.attribute("title", .string)]
    var tag = [Fleet.attribute("name", .string)]
    if pairs != nil {
      book.append(Fleet.relationship("tags", "Tag", "books", toMany: true, isOrdered: true))
      tag.append(Fleet.relationship("books", "Book", "tags", toMany: true))
    }
    self.path = path
    model = ManagedObjectModel(
      entities: [Entity(name: "Book", properties: book), Entity(name: "Tag", properties: tag)] + more)
    let layout = try StoreLayout(model)
    guard let bookNumber = layout.entity(named: "Book")?.number, let tagNumber = layout.entity(named: "Tag")?.number
    else {
      throw Fleet.FleetError()
    }
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { database in
      for table in layout.tables { try database.execute(sql: table.statement) }
      for table in layout.joinTables { try database.execute(sql: table.statement) }
      for index in layout.indexes { try database.execute(sql: index.statement) }
      try database.execute(
        sql: """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80)
          INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE) SELECT i, \(bookNumber), 1, 'book ' || i FROM n;
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80)
          INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT i, \(tagNumber), 1, 'tag ' || i FROM n
          """)
      guard let pairs else { return }
      guard case .toManyByJoinTable(let join, let own, let other, let order?) = layout.storage(of: "tags", in: "Book")
      else { throw Fleet.FleetError() }
      for (pair, place) in pairs {
        try database.execute(
          sql: "INSERT INTO \(join) (\(own), \(other), \(order)) VALUES (?, ?, ?)",
          arguments: [pair.book, pair.tag, place])
      }
    }
    try queue.close()
    table = layout.joinTables.first?.name ?? ""
  }

  func browse() throws -> BrowsedStore { try BrowsedStore(path, model: model, connections: 2) }
}
