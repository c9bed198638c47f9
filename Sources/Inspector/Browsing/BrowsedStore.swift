internal import Foundation
internal import GRDB
package import ManagedObjectModel
internal import PersistentStore
internal import Platform
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

/// How the records of a collection are spread over their keys.
package struct KeySpread: Sendable, Hashable {
  /// Some of the keys that follow each other.
  package struct Part: Sendable, Hashable {
    /// The keys, whether there are records of them or not.
    package var keys: ClosedRange<Int64>

    /// The records.
    package var records: Int64 = 0

    /// The earliest and the latest date of the records, in seconds since 2001; nil where they have none.
    package var dates: ClosedRange<Double>?
  }

  /// The parts, from the lowest keys to the highest, all of one width but the last.
  package var parts: [Part]

  /// The lowest and the highest key of a record; nil where there is none.
  package var keys: ClosedRange<Int64>?

  /// The property that the dates are of; nil where there is none.
  package var dateProperty: String?
}

extension BrowsedStore {
  private static let maximumParts = 200

  /// How the live records of a collection are spread over keys, with their dates.
  ///
  /// - Parameters:
  ///   - others: keys that are covered too, such as those of records that are lost.
  ///   - count: in how many parts at most.
  /// - Returns: nil where its keys are no single numbers, where there are none, and where counting takes too long.
  package func spread(
    of collection: RecordCollection, covering others: ClosedRange<Int64>?, parts count: Int
  ) throws(RecordBrowsingError) -> KeySpread? {
    guard collection.keySQL.count == 1, let key = collection.keySQL.first, collection.columns.first?.kind == .key else {
      return nil
    }
    let date = Self.dateColumn(of: collection)
    let condition = PageStatement.whereClause([collection.condition].compactMap(\.self))
    let found = try timed(limits.count) { database -> KeySpread? in
      let ends = try Row.fetchOne(
        database, sql: "SELECT min(\(key)), max(\(key)) FROM \(collection.tableSQL)\(condition)")
      let own: (Int64, Int64)? =
        if let first = ends?[0] as Int64?, let last = ends?[1] as Int64? { (first, last) } else { nil }
      let lows = [own?.0, others?.lowerBound].compactMap(\.self)
      let highs = [own?.1, others?.upperBound].compactMap(\.self)
      guard let low = lows.min(), let high = highs.max() else { return nil }
      let (width, isTooWide) = high.subtractingReportingOverflow(low)
      guard !isTooWide, width < Int64.max - 1 else { return nil }
      let parts = Int64(min(max(1, count), Self.maximumParts))
      let step = max(1, width / parts + 1)
      var spread = KeySpread(parts: [], keys: own.map { $0.0...$0.1 }, dateProperty: date?.name)
      var start = low
      while start <= high {
        let end = high - start < step ? high : start + step - 1
        spread.parts.append(KeySpread.Part(keys: start...end))
        if end == high { break }
        start = end + 1
      }
      let dates = date.map { ", min(\($0.sql)), max(\($0.sql))" } ?? ", NULL, NULL"
      let rows = try Row.fetchAll(
        database,
        sql: "SELECT (\(key) - ?) / ?, count(*)\(dates) FROM \(collection.tableSQL)\(condition) GROUP BY 1",
        arguments: [low, step])
      for row in rows {
        guard let place = row[0] as Int64?, spread.parts.indices.contains(Int(clamping: place)) else { continue }
        spread.parts[Int(place)].records = row[1] ?? 0
        if let first = Double.fromDatabaseValue(row[2]), let last = Double.fromDatabaseValue(row[3]), first <= last {
          spread.parts[Int(place)].dates = first...last
        }
      }
      return spread
    }
    return found ?? nil
  }

  /// The date that tells best when a record was made: one that is called so, else the first.
  private static func dateColumn(of collection: RecordCollection) -> RecordColumn? {
    let dates = collection.columns.filter { $0.kind == .attribute(.date, isMarked: false) }
    for word in ["creat", "added", "inserted", "timestamp", "date"] {
      if let column = dates.first(where: { $0.name.lowercased().contains(word) }) { return column }
    }
    return dates.first
  }
}

extension BrowsedStore {
  /// The records of a query as a query in SQL, which gives the same rows in the same order, by the names of the model where it
  /// can.
  ///
  /// - Returns: nil where it has more characters than a query may have.
  /// - Throws: `unknown-property`, `bad-query`.
  package func selection(
    of collection: RecordCollection, _ query: RecordQuery
  ) throws(RecordBrowsingError) -> StoreQuery? {
    let hasName = try catalog().views[collection.name.caseFolded] != nil
    // A name stands for live records alone; the notes on the others are known by the columns of the table.
    let named = hasName && (query.states == nil || !collection.hasStates) ? collection.byName : collection
    var selected = try shownColumns(of: named, query).map(\.sql)
    let isWhole =
      query.columns == nil && collection.computedColumns.isEmpty && named.source(query.states) == named.tableSQL
    if isWhole, hasName || !collection.isEntity { selected = ["*"] }
    var order = named.keySQL
    if let name = query.sort {
      guard let column = named.column(name) else { throw .unknownColumn(name, in: collection) }
      let isKey = order == [column.sql]
      order = ["\(column.sql)\(query.isDescending ? " DESC" : "")"] + (isKey ? [] : order)
    }
    let (parts, arguments) = try query.conditions(in: named)
    let sql = """
      SELECT \(selected.joined(separator: ", "))
      FROM \(named.source(query.states))\(parts.isEmpty ? "" : "\nWHERE \(parts.joined(separator: "\n  AND "))")
      ORDER BY \(order.joined(separator: ", "))
      """
    let text = Self.filled(sql, arguments)
    guard text.count <= StoreQuery.longest else { return nil }
    var result = try StoreQuery(text)
    result.size = query.size
    return result
  }

  /// A statement with values in place of its parameters.
  private static func filled(_ sql: String, _ arguments: [DatabaseValue]) -> String {
    var result = ""
    var rest = arguments[...]
    var quotation: Character?
    for character in sql {
      if let open = quotation {
        if character == open { quotation = nil }
      } else if character == "'" || character == "\"" {
        quotation = character
      } else if character == "?", let value = rest.popFirst() {
        result += literal(value)
        continue
      }
      result.append(character)
    }
    return result
  }

  private static func literal(_ value: DatabaseValue) -> String {
    switch value.storage {
    case .null: "NULL"
    case .int64(let number): String(number)
    case .double(let number): "\(number)"
    case .string(let text): SQLText.literal(text)
    case .blob(let data): "x'\(data.hexadecimal)'"
    }
  }
}

extension RecordCollection {
  /// The same records by the names that a query has for an entity and its properties.
  fileprivate var byName: RecordCollection {
    var named = self
    named.tableSQL = SQLText.readableIdentifier(name)
    named.columns = columns.map { column in
      var column = column
      column.sql = SQLText.readableIdentifier(column.name)
      column.entitySQL = nil
      return column
    }
    // The name stands for the records of the entity alone.
    named.entityNumbers = nil
    named.provenance = nil
    return named
  }
}
