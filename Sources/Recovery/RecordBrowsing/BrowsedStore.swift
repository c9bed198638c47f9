internal import Compatibility
internal import GRDB
package import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles
package import SystemPackage

/// A store whose records are looked at: entities by the names of the model, or the tables of a plain database.
///
/// The file must not change while it is browsed: a salvaged store, a restored backup, a private copy. It is opened
/// read-only and as unchangeable, so that nothing is made beside it, and every question has a time limit.
package final class BrowsedStore: Sendable {
  /// The limits of what is asked.
  package struct Limits: Sendable {
    /// How long reading the lists of tables and columns may take.
    package var opening: Duration = .seconds(30)

    /// How long a page of records may take.
    package var page: Duration = .seconds(5)

    /// How long a count may take; what takes longer is left out.
    package var count: Duration = .milliseconds(400)

    /// How long a facet may take that was asked for; what came of it is kept, and what takes longer is left out.
    package var facet: Duration = .seconds(3)

    /// How long the records that fit a query are counted.
    package var matching: Duration = .milliseconds(40)

    /// How many of them are counted at most.
    package var matchingCount = 10_000

    /// How long a collection is searched for text.
    package var search: Duration = .milliseconds(1_500)

    /// How long an export may take.
    package var export: Duration = .seconds(600)

    /// How long a query that a person typed may take.
    package var query: Duration = .seconds(5)

    /// The most bytes of the files in which such queries sort and gather rows, of all that run at a time.
    package var queryFiles: Int64 = 1 << 30

    /// How long the export of all its rows may take.
    package var queryExport: Duration = .seconds(60)

    /// The most rows of such an export.
    package var queryExportRows = 1_000_000

    /// The most bytes of text in it.
    package var queryExportBytes = 256 << 20

    /// The usual limits.
    package init() {}
  }

  /// The store's main file.
  package let path: FilePath

  /// The entities by name, then the tables by name.
  package let collections: [RecordCollection]

  /// The many-to-many relationships by name; none of a store without a model.
  package let manyToMany: [ManyToMany]

  /// Whether it is a store of found rows, each with the place of its bytes and how far it is to be believed.
  package let hasProvenance: Bool

  let limits: Limits
  let entityNames: [Int: String]
  let pool: ReaderPool
  let streams = Mutex(0)
  private let counts = Mutex<[String: Int64]>([:])
  let facetCache = FacetCache()
  let queryCatalog = Mutex<QueryCatalog?>(nil)
  let stateCounts = Mutex<[String: [RowState: Int64]]>([:])

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - path: the main file; a log beside it is not read.
  ///   - model: the model of the version the store is in; without one the tables are shown as they are.
  ///   - connections: how many questions are answered at once.
  ///   - hasProvenance: whether it is a file that `FoundRows` arranged.
  /// - Throws: `RecordBrowsingError.store` where SQLite cannot open or read it.
  package init(
    _ path: FilePath, model: ManagedObjectModel?, limits: Limits = Limits(), connections: Int = 4,
    hasProvenance: Bool = false
  ) throws(RecordBrowsingError) {
    self.path = path
    self.limits = limits
    self.hasProvenance = hasProvenance
    do {
      let layout = try model.map { try StoreLayout($0) }
      var queues: [DatabaseQueue] = []
      for _ in 0..<max(1, connections) { queues.append(try Self.connect(path)) }
      pool = ReaderPool(queues)
      let list = try pool.read(limit: limits.opening) { database in
        try CollectionList(database, layout: layout, hasProvenance: hasProvenance)
      }
      collections = list.collections
      manyToMany = list.manyToMany
      entityNames = list.entityNames
    } catch {
      throw Self.error(error, path)
    }
  }

  /// A connection that can change nothing, makes nothing beside the file, and runs nothing that its schema declares.
  ///
  /// - Parameter others: the files that it attaches.
  static func connect(_ path: FilePath, attaching others: [FilePath] = []) throws -> DatabaseQueue {
    try EvidenceConnection.open(path, .unchanging, label: "Lazaret.RecordBrowsing", attaching: others)
  }

  /// The collection of that name.
  ///
  /// - Throws: `unknown-entity`.
  package func collection(_ name: String) throws(RecordBrowsingError) -> RecordCollection {
    guard let found = collections.first(where: { $0.name == name }) else {
      throw RecordBrowsingError(
        .unknownCollection, path: path, detail: "the store has no entity or table \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: collections.map(\.name), "entities and tables"))
    }
    return found
  }

  /// The number of records in a collection; nil where counting takes too long.
  package func count(of collection: RecordCollection) throws(RecordBrowsingError) -> Int64? {
    if let known = counts.withLock({ $0[collection.name] }) { return known }
    let condition = PageStatement.whereClause([collection.condition].compactMap(\.self))
    let count = try timed(limits.count) { database in
      try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(collection.tableSQL)\(condition)") ?? 0
    }
    if let count { counts.withLock { $0[collection.name] = count } }
    return count
  }

  /// Reads; what takes longer than the limit throws `time-limit`.
  func read<Value>(_ limit: Duration, _ body: (Database) throws -> Value) throws(RecordBrowsingError) -> Value {
    do {
      return try pool.read(limit: limit, body)
    } catch {
      throw Self.error(error, path)
    }
  }

  /// Reads; nil where it takes longer than the limit.
  func timed<Value>(_ limit: Duration, _ body: (Database) throws -> Value) throws(RecordBrowsingError) -> Value? {
    do {
      return try read(limit, body)
    } catch {
      guard error.kind == .timeLimit else { throw error }
      return nil
    }
  }

  static func error(_ error: any Error, _ path: FilePath) -> RecordBrowsingError {
    if let error = error as? RecordBrowsingError { return error }
    if let cause = DatabaseFailure(error, operation: "browse the records", path: path).environmentalError {
      return RecordBrowsingError(.unavailable, because: cause, path: path)
    }
    if let error = error as? PersistentStoreError {
      return RecordBrowsingError(.store, because: error, path: path)
    }
    if let error = error as? DatabaseError {
      if error.resultCode == .SQLITE_INTERRUPT {
        return RecordBrowsingError(.timeLimit, path: path, detail: "the answer took longer than allowed")
      }
      if error.resultCode == .SQLITE_TOOBIG {
        // No value of the file is longer than the limit, so that this tells nothing of damage.
        return RecordBrowsingError(.tooLarge, path: path, detail: "a value that was computed is longer than the store")
      }
      return RecordBrowsingError(
        .store, path: path, detail: "SQLite reported code \(error.extendedResultCode.rawValue)")
    }
    return RecordBrowsingError(
      .store, path: path, detail: "an unforeseen failure", hint: "Try again; if it happens again, report it.")
  }
}

/// A column of a table, in the place that it has in the records of the table.
package struct StoredColumn: Sendable, Hashable {
  /// Its name in SQL.
  package var name: String

  /// What the records' entity calls it; nil where it belongs to none of its properties.
  package var property: String?

  /// Whether records store null in it, and its value is their rowid.
  package var isRowid: Bool
}

extension BrowsedStore {
  /// The columns of the table of a collection, in the order in which records store their values.
  package func storedColumns(of collection: RecordCollection) throws(RecordBrowsingError) -> [StoredColumn] {
    let table = Self.name(ofIdentifier: collection.tableSQL)
    let names = propertyNames(of: collection)
    return try read(limits.page) { database in
      // Generated columns that are not stored (2) and hidden ones of virtual tables (1) are in no record.
      try Row.fetchAll(
        database, sql: "SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden IN (0, 3) ORDER BY cid",
        arguments: [table]
      ).map { row in
        let name: String = row[0] ?? ""
        let type: String = row[1] ?? ""
        let place: Int64 = row[2] ?? 0
        return StoredColumn(
          name: name, property: names[name.uppercased()], isRowid: place == 1 && type.uppercased() == "INTEGER")
      }
    }
  }

  /// What properties are called, by their columns in capitals: the collection's own, then those of others in its table.
  private func propertyNames(of collection: RecordCollection) -> [String: String] {
    let others = collections.filter { $0.tableSQL == collection.tableSQL && $0.name != collection.name }
    var names: [String: String] = [:]
    for column in ([collection] + others).flatMap(\.columns) {
      let own = Self.name(ofIdentifier: column.sql).uppercased()
      if names[own] == nil { names[own] = column.name }
      if let entity = column.entitySQL {
        let other = Self.name(ofIdentifier: entity).uppercased()
        if names[other] == nil { names[other] = "\(column.name): entity" }
      }
    }
    return names
  }

  /// The name that an identifier of SQL stands for, quoted or not.
  private static func name(ofIdentifier sql: String) -> String {
    guard sql.count >= 2, sql.hasPrefix("\""), sql.hasSuffix("\"") else { return sql }
    return String(sql.dropFirst().dropLast()).replacing("\"\"", with: "\"")
  }
}
