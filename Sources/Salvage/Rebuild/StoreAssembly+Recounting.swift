internal import GRDB
internal import ManagedObjectModel
internal import Migration
internal import PersistentStore
internal import Platform

extension StoreAssembly {
  /// Recounts entities with set-aside or doubtful rows, as repairs remove rows and their doubts.
  ///
  /// Other counts are right already, so a sound store is not read again.
  mutating func recount() throws {
    let changed = Set(filled.account.setAside.map(\.entity))
    for table in layout.tables {
      guard let source = source(of: table.name) else { continue }
      let entities = layout.entities.filter { $0.tableName == table.name }
      let disputed = Set(
        found.numbering?.disputed.compactMap { found.numbering?.names[$0] }
          .filter { layout.entity(named: $0)?.tableName == table.name } ?? [])
      let isDoubtful = doubtful?.tables.contains(source.name.lowercased()) == true
      guard isDoubtful || !disputed.isEmpty || entities.contains(where: { changed.contains($0.name) }) else { continue }
      let name = "main.\(SQLText.identifier(table.name))"
      var counts: [Int64: Int64] = [:]
      let rows = try Row.fetchCursor(database, sql: "SELECT Z_ENT, count(*) FROM \(name) GROUP BY 1")
      while let row = try rows.next() {
        let (number, count): (Int64?, Int64) = (row[0], row[1])
        if let number { counts[number] = count }
      }
      let doubts = try doubtful?.counts(database, source.name, in: name, key: "Z_PK", by: "t.Z_ENT") ?? [:]
      for entity in entities {
        let recovered = counts[Int64(entity.number)] ?? 0
        var reasons = doubts[Int64(entity.number)] ?? [:]
        if disputed.contains(entity.name) {
          reasons[.contradicted, default: 0] += max(0, recovered - reasons.values.reduce(0, +))
        }
        filled.recounts.append(.init(name: entity.name, table: table.name, recovered: recovered, doubts: reasons))
      }
    }
    for (name, halves) in halfPairs {
      let count = try database.count("main.\(SQLText.identifier(name))")
      filled.recounts.append(
        .init(
          name: found.names.table(name), table: found.names.table(name), recovered: count, setAside: halves, doubts: nil
        ))
    }
    let known = Set(layout.tableNames.map { $0.lowercased() })
    for table in changed where raw[table] != nil && !known.contains(found.names.table(table).lowercased()) {
      guard try database.hasTable(table), layout.entity(named: table) == nil else { continue }
      let count = try database.count("main.\(SQLText.quotedIdentifier(table))")
      filled.recounts.append(.init(name: table, table: table, recovered: count, doubts: nil))
    }
  }
}

extension SalvageReport {
  struct Recount {
    var name: String

    var table: String

    var recovered: Int64

    /// Nil for all found rows that are not in the store.
    var setAside: Int64?

    /// Found rows that no table took.
    var lost: Int64 = 0

    /// Nil keeps the earlier count, where rows have no key.
    var doubts: [DoubtReason: Int64]?
  }

  /// Counts missing referenced records as the minimum lost, without other evidence.
  mutating func take(referredTo: [String: Int64]) {
    for index in entities.indices where !entities[index].isLostExact {
      guard let count = referredTo[entities[index].name.lowercased()], count > entities[index].lost else { continue }
      entities[index].lost = count
    }
  }

  /// Takes the counts of the rebuilt store; the remaining found rows were set aside.
  mutating func take(_ recounts: [Recount]) {
    for recount in recounts {
      guard
        let index = entities.firstIndex(where: {
          $0.name == recount.name || $0.name == $0.table && $0.table.lowercased() == recount.table.lowercased()
        })
      else { continue }
      let apart = recount.setAside ?? max(0, entities[index].recovered - recount.recovered)
      entities[index].keptApart += apart
      entities[index].setAside += apart
      entities[index].recovered = recount.recovered
      entities[index].lost += recount.lost
      if recount.lost > 0, entities[index].lostBasis == .none { entities[index].lostBasis = .cells }
      if let doubts = recount.doubts {
        entities[index].doubts = doubts
      } else if entities[index].doubtful > recount.recovered {
        entities[index].doubts = DoubtReason.counts(DoubtReason.codes(entities[index].doubts), of: recount.recovered)
      }
    }
  }
}

extension StoreAssembly {
  /// Translates the entity numbers of another model or numbering by entity names.
  ///
  /// A row of an unknown entity gets the negative number and is set aside.
  func translateEntityNumbers(of table: TableLayout) throws {
    guard found.foreignModel != nil || found.numbering != nil, source(of: table.name) != nil else { return }
    var names: [Int64: String] = [:]
    if let model = found.foreignModel {
      for entity in try StoreLayout(model).entities { names[Int64(entity.number)] = entity.name }
    } else {
      for entity in layout.entities { names[Int64(entity.number)] = entity.name }
    }
    if let numbering = found.numbering {
      let isKnown = numbering.names.values.contains { layout.entity(named: $0)?.tableName == table.name }
      // Without a known numbering, the model's applies.
      if numbering.isListed || isKnown { names = numbering.names }
    }
    let own = names.mapValues { layout.entity(named: $0) }
    try translate("Z_ENT", of: table, own.keys.sorted()) { number in
      guard let entity = own[number] ?? nil, entity.tableName == table.name else { return -number }
      return Int64(entity.number)
    }
    for column in table.columns {
      guard case .toOneEntity = column.role else { continue }
      try translate(column.name, of: table, own.keys.sorted()) { number in
        (own[number] ?? nil).map { Int64($0.number) } ?? number
      }
    }
  }

  private func translate(_ column: String, of table: TableLayout, _ known: [Int64], _ new: (Int64) -> Int64) throws {
    var cases = ""
    for number in known where new(number) != number { cases += " WHEN \(number) THEN \(new(number))" }
    guard !cases.isEmpty || column == "Z_ENT" else { return }
    let name = SQLText.identifier(column)
    // An unknown number must not become a valid one here.
    let others = column == "Z_ENT" ? "-abs(\(name))" : name
    let kept = known.filter { new($0) == $0 }.map(String.init).sorted().joined(separator: ", ")
    let keeping = kept.isEmpty ? "" : " WHEN \(name) IN (\(kept)) THEN \(name)"
    try database.execute(
      sql: "UPDATE main.\(SQLText.identifier(table.name)) SET \(name) = CASE"
        + cases.replacing(" WHEN ", with: " WHEN \(name) = ") + keeping
        + " WHEN typeof(\(name)) = 'integer' THEN \(others) ELSE \(name) END")
  }
}

extension SalvageReport {
  /// Remarks that rows were fitted into the app's model by names alone.
  ///
  /// - Parameter noWay: the reason against a migration.
  mutating func noteFit(because noWay: MigrationError?) {
    guard let noWay, rebuild != nil else { return }
    rebuild?.fittedBecause = "\(noWay.detail) [\(noWay.code)]"
    isComplete = false
    remarks.append(
      "no way leads from the model that the store carries to the app's: rows were put into "
        + "\(rebuild?.version.map { printable($0) } ?? "it") by the names of tables and columns (\(printable(noWay.detail)))"
    )
  }

  /// Remarks on records of entities outside this model, invisible to the app.
  ///
  /// A table of their own was copied: they are recovered. In a shared table, they were set aside.
  ///
  /// - Parameter shared: the store's lowercase names for this model's tables.
  mutating func note(entitiesOf foreign: ManagedObjectModel, notIn layout: StoreLayout, shared: Set<String>) {
    for index in entities.indices
    where foreign.entities[entities[index].name] != nil && layout.entity(named: entities[index].name) == nil {
      entities[index].isOutsideModel = true
      let table = entities[index].table
      let isShared = shared.contains(table.lowercased())
      let refused = rebuild?.setAside.filter { isSame($0.entity, table) }.reduce(0) { $0 + $1.count } ?? 0
      let apart = isShared ? entities[index].recovered : min(refused, entities[index].recovered)
      entities[index].keptApart += apart
      entities[index].setAside += apart
      entities[index].recovered -= apart
      if isShared { entities[index].doubts = [:] }
      guard apart > 0 || entities[index].recovered > 0 else { continue }
      isComplete = false
      var words: [String] = []
      if entities[index].recovered > 0 {
        words.append(
          "\(counted(entities[index].recovered, "record")) of it kept in the table \(printable(table)), where the app "
            + "does not see them")
      }
      if apart > 0 { words.append("\(counted(apart, "record")) of it set aside") }
      remarks.append("the model has no entity \(printable(entities[index].name)): \(words.joined(separator: "; "))")
    }
  }
}
