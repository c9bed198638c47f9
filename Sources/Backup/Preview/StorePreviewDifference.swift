import GRDB
import ManagedObjectModel
import PersistentStore
import Platform

/// Compares two attached stores by statements on whole tables.
struct StorePreviewDifference {
  let database: Database
  let backup: ComparedStore
  let present: ComparedStore
  let models: [ModelBundle]
  private(set) var entities: [RestorePreview.Entity] = []
  private(set) var pairs: [RestorePreview.Pairs] = []
  private(set) var schema: [RestorePreview.SchemaChange] = []
  private(set) var remarks: [String] = []

  mutating func run() throws {
    var seen: Set<String> = ["z_primarykey", "z_metadata", "z_modelcache"]
    if !backup.entities.isEmpty || !present.entities.isEmpty {
      for table in Set((backup.entities.values + Array(present.entities.values)).map { $0.table.lowercased() }).sorted()
      {
        seen.insert(table)
        try compareEntities(of: table)
      }
      seen.formUnion(try comparePairs(leavingOut: seen))
    }
    // Core Data manages its history and mirroring tables itself.
    let isCoreData = backup.tables["z_metadata"] != nil
    for name in Set(backup.tables.keys).union(present.tables.keys).sorted() where !seen.contains(name) {
      if isCoreData, Self.isCoreDatasOwn(name) { continue }
      try compareRows(name)
    }
    entities.sort { ($0.name, $0.table) < ($1.name, $1.table) }
    schema.sort { $0.table < $1.table }
  }

  private static func isCoreDatasOwn(_ name: String) -> Bool {
    name.hasPrefix("z_") || name.hasPrefix("ansck") || ["achange", "atransaction", "atransactionstring"].contains(name)
  }

  // MARK: Records

  private mutating func compareEntities(of name: String) throws {
    let (new, old) = (backup.tables[name], present.tables[name])
    let known = Set(
      (backup.entities.values + Array(present.entities.values)).filter { $0.table.lowercased() == name }.map(\.name))
    var tally: [String: RestorePreview.Entity] = [:]
    for entity in known { tally[entity] = .init(name: entity, table: (new ?? old)?.name ?? name) }
    noteSchema(new, old, isEntities: true)
    let toPresent = numbers(from: backup, to: present, table: name)
    if let new {
      let other = old.map { present.sql($0) }
      let difference = old.map { changed(new, $0, isSameNumbering: toPresent.isSame) } ?? "0"
      for row in try counts(backup.sql(new), other, match: toPresent.sql("n", "o"), difference) {
        guard let entity = self.name(of: row.number, in: backup, table: name) else { continue }
        tally[entity, default: .init(name: entity, table: new.name)].added += row.missing
        tally[entity, default: .init(name: entity, table: new.name)].changed += row.changed
        tally[entity, default: .init(name: entity, table: new.name)].unchanged += row.all - row.missing - row.changed
      }
    }
    if let old {
      let back = numbers(from: present, to: backup, table: name)
      for row in try counts(present.sql(old), new.map { backup.sql($0) }, match: back.sql("n", "o"), "0") {
        guard let entity = self.name(of: row.number, in: present, table: name) else { continue }
        tally[entity, default: .init(name: entity, table: old.name)].lost += row.missing
      }
    }
    entities += tally.values.filter {
      $0.added + $0.changed + $0.lost + $0.unchanged > 0 || backup.entities[$0.name] != nil
    }
  }

  private func name(of number: Int64?, in store: ComparedStore, table: String) -> String? {
    store.entities.values.first { $0.number == number && $0.table.lowercased() == table }?.name
      ?? number.map { "entity \($0)" }
  }

  private struct Count {
    var number: Int64?
    var all: Int64
    var missing: Int64
    var changed: Int64
  }

  /// Counts, per entity, the missing and different rows of another table.
  private func counts(_ table: String, _ other: String?, match: String, _ difference: String) throws -> [Count] {
    let sql: String
    if let other {
      sql = """
        SELECT e, count(*), total(m), total(d) FROM (
          SELECT n.Z_ENT AS e, o.Z_PK IS NULL AS m, o.Z_PK IS NOT NULL AND (\(difference)) AS d
          FROM \(table) AS n LEFT JOIN \(other) AS o ON o.Z_PK = n.Z_PK AND \(match)) GROUP BY e
        """
    } else {
      sql = "SELECT Z_ENT, count(*), count(*), 0 FROM \(table) GROUP BY Z_ENT"
    }
    return try Row.fetchAll(database, sql: sql).map { row in
      let number: DatabaseValue = row[0]
      return Count(
        number: Int64.fromDatabaseValue(number), all: row[1], missing: Int64(row[2] as Double),
        changed: Int64(row[3] as Double))
    }
  }

  /// The mapping of entity numbers between two stores.
  private struct Numbering {
    var pairs: [(from: Int64, to: Int64)]
    var isSame: Bool

    func sql(_ one: String, _ other: String) -> String {
      if isSame { return "\(other).Z_ENT IS \(one).Z_ENT" }
      let cases = pairs.map { "WHEN \($0.from) THEN \($0.to)" }.joined(separator: " ")
      return pairs.isEmpty ? "0" : "\(other).Z_ENT = CASE \(one).Z_ENT \(cases) END"
    }
  }

  private func numbers(from one: ComparedStore, to other: ComparedStore, table: String) -> Numbering {
    let own = one.entities.values.filter { $0.table.lowercased() == table }.ordered { $0.number < $1.number }
    let pairs = own.compactMap { entity in other.entities[entity.name].map { (from: entity.number, to: $0.number) } }
    // Entries lost by damage are assumed equal.
    let isSame = pairs.allSatisfy { $0.from == $0.to } && (pairs.count == own.count || other.entities.isEmpty)
    return Numbering(pairs: pairs, isSame: isSame || one.entities.isEmpty)
  }

  /// Returns the SQL condition for different values; a column in only one table counts as empty in the other.
  private func changed(_ new: ComparedStore.Table, _ old: ComparedStore.Table, isSameNumbering: Bool) -> String {
    Self.any(
      Column.all(new, old).compactMap { column -> String? in
        guard !["z_pk", "z_ent", "z_opt"].contains(column.key) else { return nil }
        // Entity numbers may differ between versions.
        if column.isEntityNumber, !isSameNumbering || column.isOfOne { return nil }
        return column.differs
      })
  }

  /// A column of two tables; nil where absent.
  private struct Column {
    var key: String
    var new: String?
    var old: String?

    var isOfOne: Bool { new == nil || old == nil }

    /// Whether it is Core Data's column of an entity number beside a reference, named by a number.
    var isEntityNumber: Bool { key.hasPrefix("z") && key.dropFirst().first?.isNumber == true }

    var differs: String {
      func sql(_ row: String, _ name: String?) -> String {
        name.map { "\(row).\(SQLText.quotedIdentifier($0))" } ?? "NULL"
      }
      return "\(sql("n", new)) IS NOT \(sql("o", old))"
    }

    /// Returns the columns of both tables, the first's first.
    static func all(_ new: ComparedStore.Table, _ old: ComparedStore.Table) -> [Column] {
      let others = Dictionary(
        old.columns.map { ($0.name.lowercased(), $0.name) }, uniquingKeysWith: { first, _ in first })
      let known = StorePreviewDifference.names(new)
      let own = new.columns.map { column in
        Column(key: column.name.lowercased(), new: column.name, old: others[column.name.lowercased()])
      }
      return own
        + old.columns.filter { !known.contains($0.name.lowercased()) }
        .map { Column(key: $0.name.lowercased(), new: nil, old: $0.name) }
    }
  }

  /// Records tables and columns in one store only.
  ///
  /// - Parameter isEntities: whether there are entity numbers beside references.
  private mutating func noteSchema(_ new: ComparedStore.Table?, _ old: ComparedStore.Table?, isEntities: Bool = false) {
    guard let shown = new ?? old else { return }
    var change = RestorePreview.SchemaChange(
      table: shown.name, isWholeTable: new == nil || old == nil, added: new?.columns.map { $0.name } ?? [],
      lost: old?.columns.map { $0.name } ?? [])
    if let new, let old {
      let own = Column.all(new, old).filter { $0.isOfOne && !(isEntities && $0.isEntityNumber) }
      change.added = own.compactMap(\.new)
      change.lost = own.compactMap(\.old)
    }
    if !change.added.isEmpty || !change.lost.isEmpty { schema.append(change) }
  }

  /// Joins terms with OR, in groups, as SQLite limits expression depth.
  private static func any(_ terms: [String]) -> String {
    guard !terms.isEmpty else { return "0" }
    return stride(from: 0, to: terms.count, by: 200).map { start in
      "(" + terms[start..<min(start + 200, terms.count)].joined(separator: " OR ") + ")"
    }.joined(separator: " OR ")
  }

  // MARK: Pairs and plain rows

  /// Compares many-to-many relationships.
  ///
  /// - Parameter taken: the lower-case names of the entities' tables.
  /// - Returns: the lower-case names of the join tables.
  private mutating func comparePairs(leavingOut taken: Set<String>) throws -> Set<String> {
    var new = try backup.joinTables(database, models: models, leavingOut: taken)
    var old = try present.joinTables(database, models: models, leavingOut: taken)
    let names = Set((new + old).map { $0.table.name.lowercased() })
    for rule in ComparedStore.MatchRule.allCases {
      var rest: [ComparedStore.JoinTable] = []
      for table in new {
        if let place = old.firstIndex(where: { $0.aligned(with: table, by: rule) != nil }),
          let other = old.remove(at: place).aligned(with: table, by: rule)
        {
          try comparePairs(table, other)
        } else {
          rest.append(table)
        }
      }
      new = rest
    }
    // They may be one relationship under two names.
    let isUntold = !new.isEmpty && !old.isEmpty && (new + old).contains { !$0.isNamed }
    for table in new { try compareAlone(table, nil, isUntold) }
    for table in old { try compareAlone(nil, table, isUntold) }
    pairs.sort { ($0.table, $0.relationships.joined()) < ($1.table, $1.relationships.joined()) }
    return names
  }

  /// Counts the pairs in one store only, unless the other may have them under another name.
  private mutating func compareAlone(
    _ new: ComparedStore.JoinTable?, _ old: ComparedStore.JoinTable?, _ isUntold: Bool
  ) throws {
    guard isUntold, let shown = new ?? old else { return try comparePairs(new, old) }
    remarks.append(
      "no model that is known tells whether both stores have the relationship of \(printable(shown.table.name)): its pairs were "
        + "not compared")
  }

  private mutating func comparePairs(_ new: ComparedStore.JoinTable?, _ old: ComparedStore.JoinTable?) throws {
    guard let shown = new ?? old else { return }
    func note(added: Int64, changed: Int64, lost: Int64) {
      pairs.append(
        .init(
          table: shown.table.name,
          relationships: [new, old].compactMap(\.self).map(\.relationships).first { !$0.isEmpty } ?? [],
          added: added, changed: changed, lost: lost))
    }
    guard let new, let old else {
      let count = try count("FROM \(new.map { backup.sql($0.table) } ?? present.sql(shown.table))")
      note(added: new == nil ? 0 : count, changed: 0, lost: new == nil ? count : 0)
      return
    }
    let isNamed = new.isNamed && old.isNamed
    guard isNamed || Self.names(new.table) == Self.names(old.table) else {
      remarks.append("the pairs of \(printable(shown.table.name)) are kept in another way and were not compared")
      return
    }
    // By each model's columns, or else by column names.
    let other =
      isNamed
      ? old
      : ComparedStore.JoinTable(
        table: old.table, relationships: [], identifiers: [], keys: new.keys, places: new.places)
    func equal(_ own: [String], _ others: [String]) -> String {
      zip(own, others).map { "o.\(SQLText.quotedIdentifier($1)) IS n.\(SQLText.quotedIdentifier($0))" }
        .joined(separator: " AND ")
    }
    let match = equal(new.keys, other.keys)
    let changed = try count(
      "FROM \(backup.sql(new.table)) AS n JOIN \(present.sql(old.table)) AS o ON \(match) "
        + "WHERE \(Self.any(Self.places(new, other).map(\.differs)))")
    note(
      added: try count(backup.sql(new.table), missingFrom: present.sql(old.table), match), changed: changed,
      lost: try count(present.sql(old.table), missingFrom: backup.sql(new.table), equal(other.keys, new.keys)))
  }

  /// Counts the rows of a table that another one lacks.
  private func count(_ table: String, missingFrom other: String, _ match: String) throws -> Int64 {
    try count("FROM \(table) AS n WHERE NOT EXISTS (SELECT 1 FROM \(other) AS o WHERE \(match))")
  }

  private func count(_ rows: String) throws -> Int64 {
    try Int64.fetchOne(database, sql: "SELECT count(*) \(rows)") ?? 0
  }

  /// Returns the order positions and unknown columns.
  private static func places(_ new: ComparedStore.JoinTable, _ old: ComparedStore.JoinTable) -> [Column] {
    let named = zip(new.places, old.places).map { Column(key: "", new: $0, old: $1) }
    let others = Dictionary(old.others.map { ($0.key, $0.name) }) { first, _ in first }
    let own = new.others.map { Column(key: $0.key, new: $0.name, old: others[$0.key]) }
    let known = Set(new.others.map(\.key))
    let rest = old.others.filter { !known.contains($0.key) }.map { Column(key: $0.key, new: nil, old: $0.name) }
    return (named + own + rest).filter { $0.new != nil || $0.old != nil }
  }

  private static func names(_ table: ComparedStore.Table) -> Set<String> {
    Set(table.columns.map { $0.name.lowercased() })
  }

  /// Compares the rows of a non-entity table, by primary key or rowid.
  private mutating func compareRows(_ name: String) throws {
    let (new, old) = (backup.tables[name], present.tables[name])
    guard let shown = new ?? old else { return }
    var entity = RestorePreview.Entity(name: shown.name, table: shown.name)
    noteSchema(new, old)
    if let new, let old {
      guard let key = Self.key(new, old) else {
        remarks.append("the rows of \(printable(shown.name)) have other keys and were not compared")
        return
      }
      let match = key.map { "o.\($0) IS n.\($0)" }.joined(separator: " AND ")
      let terms = Column.all(new, old).map(\.differs)
      // No existing row has an all-NULL key.
      let isThere = "EXISTS (SELECT 1 FROM \(present.sql(old)) AS o WHERE \(match))"
      let isOther = "EXISTS (SELECT 1 FROM \(present.sql(old)) AS o WHERE \(match) AND (\(Self.any(terms))))"
      if let row = try Row.fetchOne(
        database, sql: "SELECT count(*), total(NOT \(isThere)), total(\(isOther)) FROM \(backup.sql(new)) AS n")
      {
        entity.added = Int64(row[1] as Double)
        entity.changed = Int64(row[2] as Double)
        entity.unchanged = row[0] as Int64 - entity.added - entity.changed
      }
      entity.lost = try count(present.sql(old), missingFrom: backup.sql(new), match)
    } else {
      let count = try count("FROM \(new.map { backup.sql($0) } ?? present.sql(shown))")
      if new == nil { entity.lost = count } else { entity.added = count }
    }
    entities.append(entity)
  }

  private static func key(_ new: ComparedStore.Table, _ old: ComparedStore.Table) -> [String]? {
    func declared(_ table: ComparedStore.Table) -> [String] {
      table.columns.filter { $0.key > 0 }.ordered { $0.key < $1.key }.map { $0.name.lowercased() }
    }
    let (one, other) = (declared(new), declared(old))
    if !one.isEmpty, one == other { return one.map(SQLText.quotedIdentifier) }
    guard new.hasRowid, old.hasRowid else { return nil }
    let taken = names(new).union(names(old))
    return ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }.map { [$0] }
  }
}
