internal import Foundation
internal import GRDB
import ManagedObjectModel
internal import Migration
internal import PersistentStore
internal import Platform

/// The account of a filled store.
struct Filled {
  var account: SalvageReport.Rebuild
  var remarks: [String] = []

  /// Whether no value, file or declaration is missing or changed.
  var isWhole = true

  var recounts: [SalvageReport.Recount] = []

  /// Missing referenced records by lowercase entity name, or rows by table, without other evidence of losses.
  var referredTo: [String: Int64] = [:]
}

/// Fills a new Core Data store from a raw salvage: whole tables first, then repairs.
///
/// The new file is `main`, the rows as found are `raw`, the unfitting ones `aside`. Repairs touch wrong rows only, so a
/// sound store costs little more than its copy.
struct StoreAssembly {
  typealias Repair = SalvageReport.Rebuild.Repair

  /// The most primary keys listed in a ``Repair``.
  static let exampleKeys = 10

  let database: Database
  let layout: StoreLayout
  let found: RawSalvage

  /// The new store, with the rows written during the search.
  let store: NewStore?
  let raw: RawTables
  let aside: SetAsideRows
  var filled: Filled

  /// The highest referenced key without a record, by table.
  var highestGone: [String: Int64] = [:]

  /// The pairs set aside for a missing record, by join table.
  var halfPairs: [String: Int64] = [:]

  var doubtful: DoubtfulRows?

  /// - Parameters:
  ///   - uuid: replaces a lost identifier.
  ///   - tell: receives the work done and the total.
  mutating func run(uuid: String, tell: (Int64, Int64) throws -> Void) throws {
    let total = Int64(2 * layout.tables.count + layout.joinTables.count + layout.indexes.count + 1)
    var done: Int64 = 0
    func step() throws {
      done += 1
      try tell(done, total)
    }
    for name in store?.emptyIndexes ?? [] {
      try database.execute(sql: "DROP INDEX main.\(SQLText.quotedIdentifier(name))")
    }
    if found.report.hasDoubts { doubtful = try DoubtfulRows(database, raw, made: Set((store?.tables ?? [:]).keys)) }
    for table in layout.tables {
      try fill(table)
      try translateEntityNumbers(of: table)
      try repairRows(of: table)
      try step()
    }
    // Losers of conflicts go before references to them are checked.
    for index in layout.indexes where index.isUnique {
      try createUnique(index)
      try step()
    }
    for table in layout.joinTables {
      try fill(table)
      try createKey(of: table)
      try step()
    }
    for index in layout.indexes where !index.isUnique {
      if store?.madeIndexes.contains(index.name) != true { try database.execute(sql: index.statement) }
      try step()
    }
    for table in layout.tables {
      try repairReferences(of: table)
      try step()
    }
    try layout.makeSpatialIndexes(on: database)
    try fillBookkeeping(uuid: uuid)
    for name in StoreLayout.bookkeepingTableNames {
      guard let source = raw[name] else { continue }
      let own = try String.fetchAll(
        database, sql: "SELECT lower(name) FROM pragma_table_info(?, 'main')", arguments: [name])
      if !own.isEmpty {
        try keepUnknownColumns(source.columns.map(\.name).filter { !own.contains($0.lowercased()) }, of: source)
      }
    }
    if !found.report.isComplete || !filled.account.isFaithful { try computeDerivedValues() }
    try layout.makeTriggers(on: database)
    try setAsideUnclaimedTables()
    try copyForeignTables()
    try aside.takeOver(raw, isDoubtful: found.report.hasDoubts)
    try nameKeys()
    try recount()
    try countReferredTo()
    try step()
  }

  // MARK: Rows

  func source(of table: String) -> RawTables.Table? { raw[found.names.table(table)] }

  private mutating func fill(_ table: TableLayout) throws {
    guard let source = source(of: table.name), try database.hasRows(source.sql) else { return }
    let target = "main.\(SQLText.identifier(table.name))"
    let taken = store?.tables[table.name.lowercased()]?.rows.count ?? 0
    let used = Set(table.columns.map { found.names.column($0.name, of: table.name).lowercased() })
    let unknown = source.columns.map(\.name).filter { !used.contains($0.lowercased()) }
    try keepUnknownColumns(unknown, of: source, entity: table.rootEntityName)
    // Another model's store has values without a column here.
    if found.foreignModel != nil {
      for column in unknown where column.hasPrefix("Z") {
        if try database.hasRows("\(source.sql) WHERE \(SQLText.quotedIdentifier(column)) NOT NULL") {
          filled.isWhole = false
        }
      }
    }
    let isSame =
      taken == 0 && found.names.isAsLaidOut(table.name)
      && source.columns.map { $0.name.uppercased() } == table.columns.map { $0.name.uppercased() }
      && source.columns.map { $0.type.uppercased() } == table.columns.map(\.type.rawValue)
    let types = table.columns.map { column in
      (source: source.column(found.names.column(column.name, of: table.name)) ?? "", type: column.type.rawValue)
    }
    let converted = try aside.keepConverted(of: source, into: types)
    if let converted { filled.remarks.append(converted) }
    if isSame, converted == nil {
      // SQLite copies whole records where both tables have the same shape.
      try database.execute(sql: "INSERT OR IGNORE INTO \(target) SELECT * FROM \(source.sql)")
    }
    var pairs: [(target: String, source: String)] = []
    for column in table.columns {
      if let name = source.column(found.names.column(column.name, of: table.name)) {
        pairs.append((column.sqlName, SQLText.quotedIdentifier(name)))
      } else if column.role == .primaryKey, let rowid = source.rowid {
        pairs.append((column.sqlName, rowid))
      }
    }
    if !isSame || converted != nil {
      try database.execute(
        sql: "INSERT OR IGNORE INTO \(target) (\(pairs.map(\.target).joined(separator: ", "))) "
          + "SELECT \(pairs.map(\.source).joined(separator: ", ")) FROM \(source.sql)")
    }
    let (before, after) = (try database.count(source.sql), try database.count(target))
    guard after < before + taken, let key = pairs.first(where: { $0.target == "Z_PK" })?.source else { return }
    // Duplicate keys need a store whose own table has another key.
    try aside.keep(
      source, .refused,
      where: "r.\(source.rowid ?? key) NOT IN (SELECT min(\(source.rowid ?? key)) FROM \(source.sql) GROUP BY \(key))")
    Self.note(
      &filled.account.setAside, table.rootEntityName, nil, reason: .refused, count: before + taken - after, keys: [])
  }

  /// Sets values without a column aside, with a remark.
  ///
  /// - Parameter entity: counts the values; nil for a table without records.
  mutating func keepUnknownColumns(_ columns: [String], of source: RawTables.Table, entity: String? = nil) throws {
    guard !columns.isEmpty else { return }
    let names = columns.prefix(6).map { printable($0) }.joined(separator: ", ") + (columns.count > 6 ? ", …" : "")
    guard try aside.keepColumns(columns, of: source) else {
      filled.remarks.append(
        "\(printable(source.name)) has columns that the model does not know (\(names)); no value is stored in them")
      return
    }
    if found.foreignModel == nil { filled.isWhole = false }
    if let entity { try count(columns, of: source, entity: entity) }
    filled.remarks.append(
      "\(printable(source.name)) has columns that the model does not know (\(names)); their values were set aside")
  }

  /// Entity numbers beside references are no values of records.
  private mutating func count(_ columns: [String], of source: RawTables.Table, entity: String) throws {
    for column in columns {
      let isNumber = column.uppercased().hasPrefix("Z") && column.dropFirst().first?.isNumber == true
      guard !isNumber else { continue }
      let name = SQLText.quotedIdentifier(column)
      let count = try Int64.fetchOne(database, sql: "SELECT count(\(name)) FROM \(source.sql)") ?? 0
      let keys = try source.rowid.map { rowid in
        try Int64.fetchAll(
          database,
          sql: "SELECT \(rowid) FROM \(source.sql) WHERE \(name) IS NOT NULL ORDER BY 1 LIMIT \(Self.exampleKeys)")
      }
      Self.note(&filled.account.valuesSetAside, entity, column, count: count, keys: keys ?? [])
    }
  }

  /// Returns facts gathered while writing; nil if SQLite inserted some of the rows.
  func facts(_ name: String) throws -> DirectRows? {
    guard let table = store?.tables[name.lowercased()], let source = source(of: name), try !database.hasRows(source.sql)
    else { return nil }
    return table.rows
  }

  private mutating func repairRows(of table: TableLayout) throws {
    guard let source = source(of: table.name) else { return }
    let name = SQLText.identifier(table.name)
    let numbers = layout.entities.filter { entity in
      entity.tableName == table.name && layout.model.entities[entity.name]?.isAbstract != true
    }.map(\.number)
    let isUnknown = "(Z_ENT IS NULL OR Z_ENT NOT IN (\(numbers.map(String.init).joined(separator: ", "))))"
    let isUnsaved = "(Z_OPT IS NULL OR typeof(Z_OPT) <> 'integer')"
    let known = Set(numbers.map { Int64($0) })
    let facts = try facts(table.name)
    let isSound = facts.map { !$0.hasUnsaved && $0.entityCounts.keys.allSatisfy(known.contains) } ?? false
    if !isSound,
      let counts = try Row.fetchOne(database, sql: "SELECT total(\(isUnknown)), total(\(isUnsaved)) FROM main.\(name)")
    {
      let (unknown, unsaved): (Double, Double) = (counts[0], counts[1])
      if unknown > 0 { try repairEntityNumbers(of: table, numbers, where: isUnknown) }
      if unsaved > 0 {
        try database.execute(sql: "UPDATE main.\(name) SET Z_OPT = 1 WHERE \(isUnsaved)")
        Self.note(
          &filled.account.corrected, table.rootEntityName, "Z_OPT", count: Int64(database.changesCount), keys: [])
      }
    }
    try repairMandatoryValues(of: table, source)
  }

  /// Sets rows of unknown entities aside, except in a table of one entity, where the trees were sound and Core Data
  /// ignores the number.
  ///
  /// Negative numbers mark entities of another model.
  private mutating func repairEntityNumbers(of table: TableLayout, _ numbers: [Int], where isUnknown: String) throws {
    let name = SQLText.identifier(table.name)
    if numbers.count == 1, found.foreignModel == nil, found.numbering == nil {
      let others = layout.entities.map { String($0.number) }.joined(separator: ", ")
      let condition = "\(isUnknown) AND (Z_ENT IS NULL OR Z_ENT NOT IN (\(others)))"
      let keys = try keys(of: name, where: condition)
      try database.execute(sql: "UPDATE main.\(name) SET Z_ENT = \(numbers[0]) WHERE \(condition)")
      Self.note(
        &filled.account.corrected, table.rootEntityName, "Z_ENT", count: Int64(database.changesCount), keys: keys)
    }
    guard try database.hasRows("main.\(name) WHERE \(isUnknown)") else { return }
    try setAside(table, .unknownEntity, entity: table.rootEntityName, where: isUnknown)
  }

  /// Gives missing mandatory values their defaults, or sets the rows aside.
  ///
  /// Core Data reads certain rows that lacked the value before; only doubtful rows and missing columns need it.
  private mutating func repairMandatoryValues(of table: TableLayout, _ source: RawTables.Table) throws {
    let name = SQLText.identifier(table.name)
    for entity in layout.entities where entity.tableName == table.name {
      guard layout.model.entities[entity.name]?.isAbstract != true else { continue }
      for (property, inherited) in layout.model.properties(of: entity.name).ordered(by: { $0.key < $1.key }) {
        guard let attribute = inherited.property.attribute, !attribute.traits.isOptional,
          !attribute.traits.isTransient, !attribute.isDerived, attribute.type != .composite,
          case .attribute(let columns) = layout.storage(of: property, in: entity.name), columns.count == 1,
          let column = columns.first
        else { continue }
        let isGone = source.column(found.names.column(column.name, of: table.name)) == nil
        guard isGone || doubtful?.tables.contains(source.name.lowercased()) == true else { continue }
        var condition = "Z_ENT = \(entity.number) AND \(column.sqlName) IS NULL"
        if !isGone { condition += " AND \(doubtful?.condition(source.name, key: "Z_PK") ?? "0")" }
        let keys = try keys(of: name, where: condition)
        guard !keys.isEmpty else { continue }
        let isMarked =
          attribute.allowsExternalBinaryDataStorage && (attribute.type == .binary || attribute.type == .transformable)
        let literal = attribute.defaultValue.map { $0.literal(isMarked: isMarked) } ?? "NULL"
        if literal != "NULL" {
          try database.execute(sql: "UPDATE main.\(name) SET \(column.sqlName) = \(literal) WHERE \(condition)")
          Self.note(&filled.account.defaulted, entity.name, property, count: Int64(database.changesCount), keys: keys)
        } else if !isGone {
          try setAside(table, .missingValue, entity: entity.name, property: property, where: condition)
        } else {
          filled.remarks.append(
            "\(printable(entity.name)).\(printable(property)) is mandatory, and the store has no such values")
        }
      }
    }
  }

  /// - Parameter condition: SQL on the columns of the new table.
  mutating func setAside(
    _ table: TableLayout, _ reason: SalvageReport.Rebuild.SetAsideReason, entity: String, property: String? = nil,
    where condition: String
  ) throws {
    let name = SQLText.identifier(table.name)
    let keys = try keys(of: name, where: condition)
    try aside.keep(table.made, reason, where: condition)
    try database.execute(sql: "DELETE FROM main.\(name) WHERE \(condition)")
    Self.note(
      &filled.account.setAside, entity, property, reason: reason, count: Int64(database.changesCount), keys: keys)
  }

  /// Returns the first matching primary keys.
  func keys(of name: String, where condition: String) throws -> [Int64] {
    try Int64.fetchAll(
      database, sql: "SELECT Z_PK FROM main.\(name) WHERE \(condition) ORDER BY Z_PK LIMIT \(Self.exampleKeys)")
  }

  static func note(
    _ list: inout [Repair], _ entity: String, _ property: String?,
    reason: SalvageReport.Rebuild.SetAsideReason? = nil, count: Int64, keys: [Int64]
  ) {
    guard count > 0 else { return }
    list.append(Repair(entity: entity, property: property, reason: reason, count: count, primaryKeys: keys))
  }
}

extension StoreAssembly {
  /// Recomputes derived attributes, as their sources may be lost, except times.
  func computeDerivedValues() throws {
    for entity in layout.entities {
      let properties = layout.model.entities[entity.name]?.properties ?? [:]
      for (name, property) in properties.ordered(by: { $0.key < $1.key }) {
        guard let attribute = property.attribute, !attribute.traits.isTransient,
          case .attribute(let columns) = layout.storage(of: name, in: entity.name), let column = columns.first,
          let value = layout.derivedValue(of: attribute, entity, isTimeWanted: false)
        else { continue }
        try database.execute(
          sql: "UPDATE main.\(SQLText.identifier(entity.tableName)) AS o SET \(column.sqlName) = \(value) "
            + "WHERE o.Z_ENT BETWEEN \(entity.numbers.lowerBound) AND \(entity.numbers.upperBound) "
            + "AND o.\(column.sqlName) IS NOT \(value)")
      }
    }
  }
}

extension StoreAssembly {
  /// A marker and a UUID, with reserve for other versions.
  private static let longestName = 80

  /// Counts the large values without files by attribute; the records stay.
  mutating func countMissingFiles(of store: StoreFileSet, in fileSystem: FileSystem) throws {
    let links = try store.largeValues(in: fileSystem).files.count { $0.isLink && $0.status.kind == .regular }
    if links > 0 {
      filled.remarks.append(
        "\(links) large \(links == 1 ? "value is a link to a file" : "values are links to files") elsewhere; "
          + "the content was copied")
    }
    let files = try store.largeValueNames(in: fileSystem)
    for entity in layout.entities {
      let properties = layout.model.entities[entity.name]?.properties ?? [:]
      for (name, property) in properties.ordered(by: { $0.key < $1.key }) {
        guard let attribute = property.attribute, !attribute.traits.isTransient,
          attribute.allowsExternalBinaryDataStorage, attribute.type == .binary || attribute.type == .transformable,
          case .attribute(let columns) = layout.storage(of: name, in: entity.name), let column = columns.first
        else { continue }
        // A large value is the byte 2 and its file's name (format section 3.7).
        let values = try Data.fetchCursor(
          database,
          sql: "SELECT \(column.sqlName) FROM main.\(SQLText.identifier(entity.tableName)) "
            + "WHERE typeof(\(column.sqlName)) = 'blob' AND length(\(column.sqlName)) BETWEEN 2 AND \(Self.longestName) "
            + "AND substr(\(column.sqlName), 1, 1) = x'02'")
        var missing = 0
        while let value = try values.next() {
          let name = String(decoding: value.dropFirst().prefix { $0 != 0 }, as: UTF8.self)
          if !files.contains(name) { missing += 1 }
        }
        guard missing > 0 else { continue }
        filled.isWhole = false
        filled.remarks.append(
          "\(printable(entity.name)).\(printable(name)): \(missing) large \(missing == 1 ? "value is" : "values are") "
            + "gone; \(missing == 1 ? "its file is" : "their files are") not beside the store")
      }
    }
  }
}

extension StoreAssembly {
  /// Makes a unique index; a certain row wins over a doubtful one, else the lowest key.
  mutating func createUnique(_ index: IndexLayout) throws {
    do {
      try database.execute(sql: index.statement)
      return
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      try settle(index)
    }
    try database.execute(sql: index.statement)
  }

  private mutating func settle(_ index: IndexLayout) throws {
    guard let table = layout.table(named: index.tableName), let source = raw[index.tableName] else { return }
    let name = SQLText.identifier(index.tableName)
    let columns = index.columns.map { SQLText.identifier($0.name) }
    let list = columns.joined(separator: ", ")
    // NULL differs from NULL in a unique index.
    let isIndexed =
      (columns.map { "\($0) IS NOT NULL" } + (index.condition.map { ["(\($0))"] } ?? [])).joined(separator: " AND ")
    let isDoubtful = doubtful?.condition(source.name, key: "Z_PK") ?? "0"
    try database.execute(sql: "CREATE TEMP TABLE IF NOT EXISTS loser (k INTEGER PRIMARY KEY); DELETE FROM temp.loser")
    try database.execute(
      sql: """
        INSERT INTO temp.loser SELECT k FROM (
          SELECT Z_PK AS k, row_number() OVER (PARTITION BY \(list) ORDER BY \(isDoubtful), Z_PK) AS place
          FROM main.\(name) WHERE \(isIndexed))
        WHERE place > 1
        """)
    var entity = table.rootEntityName
    var properties: String?
    if case .uniqueness(let entityName, let names) = index.purpose {
      entity = entityName
      properties = names.joined(separator: ",")
    }
    let before = filled.account.setAside.count
    try setAside(table, .conflict, entity: entity, property: properties, where: "Z_PK IN (SELECT k FROM temp.loser)")
    filled.account.conflicts += filled.account.setAside[before...].map { repair in
      var repair = repair
      repair.reason = nil
      return repair
    }
  }
}
