internal import GRDB
internal import PageRecovery
internal import PersistentStore
internal import SQLiteFormat

extension StoreAssembly {
  /// Sets the rows of tables aside that have the name of one of the layout and are none of it: by the numbers of the store's
  /// entities another table is.
  mutating func setAsideUnclaimedTables() throws {
    let claimed = Set(layout.tableNames.map { found.names.table($0).lowercased() })
    for name in layout.tableNames where !claimed.contains(name.lowercased()) {
      guard let source = raw[name] else { continue }
      let count = try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(source.sql)") ?? 0
      guard count > 0 else { continue }
      try aside.keep(source, .unknownEntity, where: "1")
      Self.note(&account.setAside, source.name, nil, reason: .unknownEntity, count: count, keys: [])
      recounts.append(
        SalvageReport.Recount(name: source.name, table: source.name, recovered: 0, setAside: count, doubts: [:]))
    }
  }

  /// Copies persistent history, mirroring and the app's own tables, with what belongs to them.
  mutating func copyForeignTables() throws {
    var own = Set(layout.tableNames.map { $0.lowercased() } + found.names.foreignTables)
    for index in layout.spatialIndexes { own.formUnion(ShadowTables.names(of: index.name, module: "rtree")) }
    // Those of other entity numbers have other names.
    for entry in found.entries where own.contains(entry.name.lowercased()) {
      guard let module = entry.tableDefinition?.module else { continue }
      own.formUnion(ShadowTables.names(of: entry.name, module: module))
    }
    let names = raw.all.map(\.name).filter { name in
      !own.contains(name.lowercased()) && !name.hasPrefix("lazaret_")
    }
    let statements = found.statements
    var plain = try PlainTables(database, raw, try doubt(), store, found)
    account.setAside += try plain.make(names, by: statements, &aside)
    // Indexes of the app's own on the model's tables.
    let tables = Set((layout.tables.map(\.name) + layout.joinTables.map(\.name)).map { $0.lowercased() })
    let known = Set(layout.indexes.map { $0.name.lowercased() })
    let shapes = Set(layout.indexes.map { Self.shape($0.tableName, $0.columns.map(\.name)) })
    try plain.makeIndexes(
      statements.filter { statement in
        guard statement.kind == "index", tables.contains(statement.table.lowercased()),
          !known.contains(statement.name.lowercased()), store?.madeIndexes.contains(statement.name) != true,
          let index = IndexDefinition(sql: statement.sql)
        else { return false }
        return index.isPartial || !shapes.contains(Self.shape(statement.table, index.columns.map { $0.name ?? "" }))
      })
    // Views and triggers of the app's own; those of Core Data are the layout's.
    let foreign = statements.filter { statement in
      switch statement.kind {
      case "view": true
      case "trigger": !StoreLayout.isOwnTrigger(statement.name)
      default: false
      }
    }
    try plain.makeRest(
      foreign, virtual: found.entries.filter { $0.kind == .table && !own.contains($0.name.lowercased()) },
      sequences: found.sequences)
    remarks += plain.remarks + plain.conversions
    if !plain.remarks.isEmpty { lacksDeclarations = true }
  }

  /// What an index is made of, whatever its name: older versions of Core Data gave other names.
  static func shape(_ table: String, _ columns: [String]) -> String {
    ([table] + columns).map { $0.lowercased() }.joined(separator: "\u{0}")
  }
}

extension RawSalvage {
  /// The name that the store has for a table of rows as found.
  func ownName(_ name: String) -> String { otherNames.first { $0.value == name }?.key ?? name }

  /// The statements of the store's schema, as far as it could be read.
  var statements: [Declarations.Statement] {
    entries.compactMap { entry in
      guard let sql = entry.sql, !entry.name.lowercased().hasPrefix("sqlite_") else { return nil }
      return Declarations.Statement(kind: entry.kind.rawValue, name: entry.name, table: entry.tableName, sql: sql)
    }
  }
}
