import Platform
package import SQLiteFormat

extension Examiner {
  func checkPages(
    of database: Database, _ schema: Schema, into examination: inout Examination, _ options: Options,
    _ visitor: (any PageVisitor)? = nil
  ) throws(FileError) {
    let columns = options.countsRecords ? Self.entityColumns(of: schema, examination) : [:]
    let indexes = visitor == nil ? try IndexCheck(database, schema) : nil
    defer { indexes?.stop() }
    var report = try database.checkIntegrity(
      countingBy: columns, visitor: visitor ?? indexes, progress: options.progress)
    if examination.kind == .coreData { report.noteCopies() }
    examination.health.depth = .full
    examination.health.integrity = report
    examination.health.add(report.findings)
    guard report.isSound else {
      distrustIndexes(&examination)
      let indexes = report.findings.indexesAlone(of: schema)
      examination.markDamaged(indexes.map { .damagedIndexes($0, report.findings) } ?? .damagedPages(report))
      return
    }
    for table in schema.tables {
      guard let damaged = try FullTextCheck(of: table, in: database, schema)?.damaged, damaged > 0 else { continue }
      examination.health.note(
        "full-text-damaged", .damage,
        "the full-text index \(printableName(table.name)) is damaged: searches in it fail, or find too little",
        count: damaged)
    }
    // Another visitor compares the indexes itself.
    guard let indexes else { return }
    let total = Int(database.highestPage)
    var compared = try indexes.compare { options.progress(total, total) }
    if !examination.isSchemaRefused {
      try compared.askSQLite(about: schema, of: DatabaseContent(database)) { !options.progress(total, total) }
      examination.noteUncompared(compared.uncompared, of: schema)
    }
    guard !compared.isSound else { return }
    distrustIndexes(&examination)
    examination.health.add(compared.findings)
    examination.markDamaged(.damagedIndexes(compared.findings.indexesAlone(of: schema) ?? [], compared.findings))
  }
}

extension Examination {
  fileprivate mutating func noteUncompared(_ indexes: [String], of schema: Schema) {
    guard !indexes.isEmpty else { return }
    unchecked += indexes.sorted().map { Unchecked(kind: .index, name: $0) }
    let names = Self.list(indexes.sorted())
    var words =
      "the entries of \(counted(Int64(indexes.count), "index", "indexes")) could not be compared with the rows of their tables: \(names)"
    let functions = Set(
      schema.indexes.filter { indexes.contains($0.name) }.compactMap { $0.indexDefinition?.foreignFunction })
    if !functions.isEmpty {
      words +=
        "; only the app has the \(functions.count == 1 ? "function" : "functions") \(Self.list(functions.sorted()))"
    }
    health.note(Health.indexesUncompared, .note, words)
  }
}

extension Findings {
  /// Returns the damaged indexes if all damage is theirs.
  package func indexesAlone(of schema: Schema) -> [String]? {
    let damage = items.filter { $0.kind.severity == .damage }
    // Damage beyond the kept items is unknown.
    guard !damage.isEmpty, items.count == total else { return nil }
    let names = Dictionary(schema.indexes.map { ($0.rootPage, $0.name) }) { first, _ in first }
    let found = damage.map { $0.root.flatMap { names[$0] } }
    return found.contains(nil) ? nil : Set(found.compactMap(\.self)).sorted()
  }
}

extension IntegrityReport {
  /// Reports a Core Data table sharing a leaf with another table: an entity number belongs to one table, and Core Data
  /// writes only into declared columns.
  fileprivate mutating func noteCopies() {
    let entities = Set(schema.tables.filter { $0.tableDefinition?.column(named: "Z_ENT") == 1 }.map(\.rootPage))
    for copy in copies {
      let stranger: LeafCopy.Place
      if entities.contains(copy.first.root), entities.contains(copy.second.root) {
        stranger = copy.stranger ?? copy.second
      } else if let strange = copy.stranger, entities.contains(strange.root) {
        stranger = strange
      } else {
        continue
      }
      guard !findings.items.contains(where: { $0.kind == .pageCopied && $0.page == stranger.page }) else { continue }
      findings.append(Finding(.pageCopied, page: stranger.page, root: stranger.root))
    }
  }
}
