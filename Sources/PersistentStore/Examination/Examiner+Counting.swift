import Platform
import SQLiteFormat

extension Examiner {
  /// Counts every entity's records or table's rows; damage triggers a full check.
  func count(
    _ database: Database, _ schema: Schema, into examination: inout Examination, _ options: Options
  ) throws(FileError) {
    try count(database, schema, into: &examination)
    noteEntityNumbers(&examination)
    guard examination.health.isDamaged, examination.health.integrity == nil else { return }
    var options = options
    options.countsRecords = false
    try checkPages(of: database, schema, into: &examination, options)
  }

  private func count(_ database: Database, _ schema: Schema, into examination: inout Examination) throws(FileError) {
    var counted: [String: [Int64?: Int]?] = [:]
    examination.entities = []
    defer {
      for (table, rows) in counted {
        guard let rows else { continue }
        let isNullSeen = schema.table(named: table)?.tableDefinition.map(Self.hasLocalEntityNumbers) ?? false
        examination.countedNumbers[table] = Set(rows.keys.filter { $0 != nil || isNullSeen })
      }
    }
    var numbering: EntityNumbering?
    if let model = examination.storeModel, let layout = Self.layout(of: model) {
      numbering = EntityNumbering(layout, examination.outline?.keyRows ?? [])
    }
    for counting in Self.countings(of: schema, examination) {
      var entity = EntityCount(name: counting.name, table: counting.table)
      if let table = schema.table(named: counting.table), table.rootPage > 0 {
        if counted[table.name] == nil {
          counted[table.name] = .some(try counts(of: table, counting.root != nil, database, &examination.health))
        }
        // Only a whole table gives a true count.
        if let rows = counted[table.name] ?? nil {
          if let root = counting.root, let share = numbering?.share(of: rows, root: root) {
            // A number outside its page is unknown.
            let isSeen = !rows.keys.contains(nil) || table.tableDefinition.map(Self.hasLocalEntityNumbers) == true
            let isTold = (isSeen || share.ofNone == 0) && !share.contested.contains(counting.name)
            entity.rows = isTold ? Int64(share.rows[counting.name] ?? 0) : nil
            if isSeen, share.ofNone > 0 { examination.rowsOfNoEntity[counting.table] = share.ofNone }
          } else {
            entity.rows = Int64(rows.values.reduce(0, +))
          }
        }
      } else if examination.drift != nil, schema.table(named: counting.table) == nil {
        // The rest of the schema is readable and lacks the table.
        entity.rows = 0
      }
      examination.entities.append(entity)
    }
    examination.noteRowsOfNoEntity()
  }

  /// Returns a table's rows by entity, or all under nil; nil if incomplete.
  private func counts(
    of table: SchemaEntry, _ byEntity: Bool, _ database: Database, _ health: inout Health
  ) throws(FileError) -> [Int64?: Int]? {
    // Such a table is an index b-tree with another column order: rows are only counted.
    if byEntity, table.tableDefinition?.isWithoutRowid == true { return nil }
    let trees = health.integrity?.isSound == true ? health.integrity?.trees ?? [] : []
    if let tree = trees.first(where: { $0.root == table.rootPage }) { return byEntity ? tree.counts : [nil: tree.rows] }
    guard byEntity else {
      let counted = try database.countRows(root: table.rootPage)
      health.add(counted.findings)
      return counted.findings.hasDamage ? nil : [nil: counted.count]
    }
    guard let column = table.tableDefinition?.column(named: "Z_ENT") else { return nil }
    let counted = try database.countRows(root: table.rootPage, byIntegerIn: column)
    health.add(counted.findings)
    return counted.findings.hasDamage ? nil : counted.counts
  }

  static func entityColumns(of schema: Schema, _ examination: Examination) -> [UInt32: Int] {
    var columns: [UInt32: Int] = [:]
    for counting in countings(of: schema, examination) where counting.root != nil {
      guard let table = schema.table(named: counting.table), table.rootPage > 0 else { continue }
      columns[table.rootPage] = table.tableDefinition?.column(named: "Z_ENT")
    }
    return columns
  }
}

extension Examination {
  fileprivate mutating func noteRowsOfNoEntity() {
    for (table, count) in rowsOfNoEntity.ordered(by: { $0.key < $1.key }) {
      let rows = count == 1 ? "1 row" : "\(grouped(count)) rows"
      health.note(
        "rows-of-no-entity", .warning,
        "\(rows) of table \(printableName(table)) \(count == 1 ? "has" : "have") the number of no entity of that table, and \(count == 1 ? "is" : "are") counted for none"
      )
    }
  }
}
