internal import Dispatch
internal import GRDB
package import ManagedObjectModel
package import PersistentStore
internal import Platform
package import SystemPackage

/// A store opened for browsing: entities by the model's names, or plain tables.
///
/// The file must not change meanwhile: a salvaged store, a restored backup, a private copy. It is opened read-only and
/// immutable, so no file is created next to it; every query has a time limit.
package final class BrowsedStore: Sendable {
  package struct Limits: Sendable {
    var opening: Duration = .seconds(30)

    package var page: Duration = .seconds(5)

    /// The time for a count; slower counts are omitted.
    var count: Duration = .milliseconds(400)

    /// The time for a requested facet; results are cached, slower ones omitted.
    var facet: Duration = .seconds(3)

    /// The time for counting matches.
    var matching: Duration = .milliseconds(40)

    /// The most matching records counted.
    package var matchingCount = 10_000

    var search: Duration = .milliseconds(1_500)

    var export: Duration = .seconds(600)

    package var query: Duration = .seconds(5)

    /// The most bytes of all typed queries' temporary files.
    package var queryFiles: Int64 = 1 << 30

    /// The time for exporting a typed query.
    var queryExport: Duration = .seconds(60)

    /// The most rows of such an export.
    package var queryExportRows = 1_000_000

    /// The most bytes of text in such an export.
    var queryExportBytes = 256 << 20

    package init() {}
  }

  package let path: FilePath

  /// The entities by name, then the tables by name.
  package let collections: [RecordCollection]

  /// The many-to-many relationships by name; empty without a model.
  let manyToMany: [ManyToMany]

  /// Whether it holds found rows with provenance.
  package let hasProvenance: Bool

  let limits: Limits
  let entityNames: [Int: String]
  let pool: ReaderPool
  let streams = Mutex(0)
  private let counts = Mutex<[String: Int64]>([:])
  /// The counted facets; timeouts aren't kept, as another try may be faster.
  let facets = RecentValues<String, [RecordPage.Facet.Count]>(capacity: 100)
  let steppedFacets = RecentValues<String, SteppedFacet>(capacity: 100)
  let queryCatalog = Mutex<QueryCatalog?>(nil)
  let stateCounts = Mutex<[String: [RowState: Int64]]>([:])

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - path: the main file; its WAL is not read.
  ///   - model: the store's model; without one, raw tables are shown.
  ///   - connections: the number of concurrent queries.
  ///   - hasProvenance: whether `FoundRows` arranged the file.
  /// - Throws: `store-unreadable` if SQLite can't open or read it.
  package init(
    _ path: FilePath, model: ManagedObjectModel?, limits: Limits = Limits(), connections: Int = 4,
    hasProvenance: Bool = false
  ) throws(PersistentStoreError) {
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
    } catch { throw Self.error(error, path) }
  }

  /// Connects without changing the file, creating others, or running code of its schema.
  static func connect(_ path: FilePath, attaching others: [FilePath] = []) throws -> DatabaseQueue {
    try EvidenceConnection.open(path, .unchanging, label: "Lazaret.RecordBrowsing", attaching: others)
  }

  /// - Throws: `unknown-entity`.
  package func collection(_ name: String) throws(PersistentStoreError) -> RecordCollection {
    guard let found = collections.first(where: { $0.name == name }) else {
      throw PersistentStoreError(
        .unknownCollection, path: path, detail: "the store has no entity or table \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: collections.map(\.name), "entities and tables"))
    }
    return found
  }

  /// Counts the records of a collection; nil on timeout.
  package func count(of collection: RecordCollection) throws(PersistentStoreError) -> Int64? {
    if let known = counts.withLock({ $0[collection.name] }) { return known }
    let condition = PageStatement.whereClause([collection.condition].compactMap(\.self))
    let count = try timed(limits.count) { database in
      try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(collection.tableSQL)\(condition)") ?? 0
    }
    if let count { counts.withLock { $0[collection.name] = count } }
    return count
  }

  /// Reads; throws `time-limit` on timeout.
  func read<Value>(_ limit: Duration, _ body: (Database) throws -> Value) throws(PersistentStoreError) -> Value {
    do { return try pool.read(limit: limit, body) } catch { throw Self.error(error, path) }
  }

  /// Reads; nil on timeout.
  func timed<Value>(_ limit: Duration, _ body: (Database) throws -> Value) throws(PersistentStoreError) -> Value? {
    do {
      return try read(limit, body)
    } catch {
      guard error.kind == .timeLimit else { throw error }
      return nil
    }
  }

  static func error(_ error: any Error, _ path: FilePath) -> PersistentStoreError {
    if let error = error as? PersistentStoreError, error.kind.isOfBrowsing { return error }
    if let cause = DatabaseFailure(error, operation: "browse the records", path: path).environmentalError {
      return PersistentStoreError(.unavailable, because: cause, path: path)
    }
    if let error = error as? PersistentStoreError {
      return PersistentStoreError(.unreadable, because: error, path: path)
    }
    if let error = error as? DatabaseError {
      if error.resultCode == .SQLITE_INTERRUPT {
        return PersistentStoreError(.timeLimit, path: path, detail: "the answer took longer than allowed")
      }
      if error.resultCode == .SQLITE_TOOBIG {
        // No stored value exceeds the limit, so this is no sign of damage.
        return PersistentStoreError(
          .valueTooLarge, path: path, detail: "a value that was computed is longer than the store")
      }
      return PersistentStoreError(
        .unreadable, path: path, detail: "SQLite reported code \(error.extendedResultCode.rawValue)")
    }
    return PersistentStoreError(
      .unreadable, path: path, detail: "an unforeseen failure", hint: "Try again; if it happens again, report it.")
  }
}

/// A table column at its position in stored records.
struct StoredColumn: Sendable, Hashable {
  /// The SQL name.
  var name: String

  /// The property's name; nil if it isn't of this collection.
  var property: String?

  /// Whether records store NULL and the value is the rowid.
  var isRowid: Bool
}

extension BrowsedStore {
  /// The columns of a collection's table in record order.
  func storedColumns(of collection: RecordCollection) throws(PersistentStoreError) -> [StoredColumn] {
    let table = SQLText.plain(collection.tableSQL)
    let names = propertyNames(of: collection)
    return try read(limits.page) { database in
      // Records omit virtual generated columns (2) and hidden columns of virtual tables (1).
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

  /// Property names by uppercase column, the collection's own first.
  private func propertyNames(of collection: RecordCollection) -> [String: String] {
    let others = collections.filter { $0.tableSQL == collection.tableSQL && $0.name != collection.name }
    var names: [String: String] = [:]
    for column in ([collection] + others).flatMap(\.columns) {
      let own = SQLText.plain(column.sql).uppercased()
      if names[own] == nil { names[own] = column.name }
      if let entity = column.entitySQL {
        let other = SQLText.plain(entity).uppercased()
        if names[other] == nil { names[other] = "\(column.name): entity" }
      }
    }
    return names
  }
}

/// The distribution of a collection's records over its keys.
struct KeySpread: Sendable, Hashable {
  /// A range of keys.
  struct Part: Sendable, Hashable {
    /// The keys, with or without records.
    var keys: ClosedRange<Int64>

    var records: Int64 = 0

    /// The earliest and latest date, in seconds since 2001.
    var dates: ClosedRange<Double>?
  }

  /// The parts ascending, of one width but the last.
  var parts: [Part]

  /// The lowest and highest key; nil if empty.
  var keys: ClosedRange<Int64>?

  var dateProperty: String?
}

extension BrowsedStore {
  private static let maximumParts = 200

  /// Returns the distribution of live records over keys, with dates.
  ///
  /// - Parameters:
  ///   - others: more keys to cover, such as lost ones.
  ///   - count: the most parts.
  /// - Returns: nil without single numeric keys, or on timeout.
  func spread(
    of collection: RecordCollection, covering others: ClosedRange<Int64>?, parts count: Int
  ) throws(PersistentStoreError) -> KeySpread? {
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
        database, sql: "SELECT (\(key) - ?) / ?, count(*)\(dates) FROM \(collection.tableSQL)\(condition) GROUP BY 1",
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

  /// The likeliest creation date: by name, else the first date.
  private static func dateColumn(of collection: RecordCollection) -> RecordColumn? {
    let dates = collection.columns.filter { $0.kind == .attribute(.date, isMarked: false) }
    let words = ["creat", "added", "inserted", "timestamp", "date"]
    return words.lazy.compactMap { word in dates.first { $0.name.lowercased().contains(word) } }.first ?? dates.first
  }

  /// Returns the query as SQL, with the model's names if possible.
  ///
  /// - Returns: nil if too long for a query.
  /// - Throws: `unknown-property`, `bad-query`.
  package func selection(
    of collection: RecordCollection, _ query: RecordQuery
  ) throws(PersistentStoreError) -> StoreQuery? {
    let hasName = try catalog().views[collection.name.caseFolded] != nil
    // An entity's name covers live records only; notes on others use table columns.
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

  /// Substitutes a statement's parameters.
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
  /// The collection with the names of typed queries.
  fileprivate var byName: RecordCollection {
    var named = self
    named.tableSQL = SQLText.readableIdentifier(name)
    named.columns = columns.map { column in
      var column = column
      column.sql = SQLText.readableIdentifier(column.name)
      column.entitySQL = nil
      return column
    }
    // The name alone selects the entity's records.
    named.entityNumbers = nil
    named.provenance = nil
    return named
  }
}

extension PersistentStoreError {
  static func unknownColumn(_ name: String, in collection: RecordCollection) -> PersistentStoreError {
    PersistentStoreError(
      .unknownColumn, detail: "\"\(printable(collection.name))\" has no property \"\(printable(name))\"",
      hint: NameSuggestion.hint(for: name, among: collection.columns.map(\.name), "properties"))
  }

  static func badQuery(_ detail: String, hint: String) -> PersistentStoreError {
    PersistentStoreError(.badQuery, detail: detail, hint: hint)
  }
}

/// Read-only connections to one file, each lent for a limited time.
final class ReaderPool: Sendable {
  private let queues: [DatabaseQueue]
  private let free: Mutex<[Int]>
  private let places: DispatchSemaphore

  init(_ queues: [DatabaseQueue]) {
    self.queues = queues
    free = Mutex(Array(queues.indices))
    places = DispatchSemaphore(value: queues.count)
  }

  /// - Throws: the body's errors; `DatabaseError` with `SQLITE_INTERRUPT` on timeout.
  func read<Value>(limit: Duration, _ body: (Database) throws -> Value) throws -> Value {
    places.wait()
    let index = free.withLock { $0.removeLast() }
    defer {
      free.withLock { $0.append(index) }
      places.signal()
    }
    let limit = StatementLimit(time: limit)
    return try queues[index].read { database in try limit.apply(to: database) { try body(database) } }
  }

  func close() throws {
    for queue in queues { try queue.close() }
  }
}
