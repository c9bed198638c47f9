/// How the entries of an index follow from the rows of its table.
struct IndexPlan: Sendable {
  /// The index in the schema.
  let entry: SchemaEntry

  /// The columns by their places in the table; several where an automatic index may be that of one or another constraint,
  /// none where the entries cannot be computed.
  let candidates: [[Int]]

  /// Which rows have an entry; nil for all.
  var condition: RowCondition?

  /// How the entries lie; nil where that cannot be told.
  let order: [EntryOrder.Column]?
}

/// Makes the plans of a table's indexes.
struct IndexPlanning {
  let table: SchemaEntry
  let definition: TableDefinition
  let encoding: TextEncoding

  /// Whether DESC is taken account of; it is not in files of schema formats below 4.
  let honoursDescending: Bool

  /// The indexes that have a root.
  let indexes: [SchemaEntry]

  /// The plan of an index; nil where its entries cannot be computed.
  func plan(for index: SchemaEntry) -> IndexPlan? {
    guard index.sql != nil else { return automaticPlan(for: index) }
    guard let indexed = index.indexDefinition else { return nil }
    let condition = indexed.condition.flatMap { RowCondition($0, of: definition) }
    if indexed.isPartial, condition == nil { return nil }
    var columns: [Int] = []
    var order: [EntryOrder.Column] = []
    for column in indexed.columns {
      guard let name = column.name, let place = definition.column(named: name), isStored(place) else { return nil }
      columns.append(place)
      order.append(self.order(of: column))
    }
    return columns.isEmpty
      ? nil : IndexPlan(entry: index, candidates: [columns], condition: condition, order: order)
  }

  /// The plan by which only the order of an index is looked at; nil where that cannot be told either.
  func orderPlan(for index: SchemaEntry) -> IndexPlan? {
    guard let indexed = index.indexDefinition else { return nil }
    return IndexPlan(entry: index, candidates: [], order: indexed.columns.map { order(of: $0) })
  }

  /// An automatic index has no statement: it is that of the primary key, or of one of the UNIQUE constraints.
  private func automaticPlan(for index: SchemaEntry) -> IndexPlan? {
    var lists: [[Int]] = []
    let key = definition.rowidAlias == nil ? [definition.primaryKey] : []
    for names in key + definition.uniqueConstraints where !names.isEmpty {
      let columns = names.compactMap { definition.column(named: $0) }
      guard columns.count == names.count, columns.allSatisfy(isStored) else { return nil }
      if columns != [definition.rowidAlias], !lists.contains(columns) { lists.append(columns) }
    }
    // Where constraints and indexes are not as many as each other, one of them was not understood.
    guard !lists.isEmpty, lists.count == indexes.count(where: { $0.sql == nil }) else { return nil }
    let statement = SQLTokenizer.tokens(of: table.sql ?? "")
    let isPlain = lists.count == 1 && !statement.contains { $0.isWord("collate") || $0.isWord("desc") }
    let order = isPlain ? lists[0].map { _ in EntryOrder.Column(collation: .binary) } : nil
    return IndexPlan(entry: index, candidates: lists, order: order)
  }

  private func isStored(_ column: Int) -> Bool { definition.columns[column].generation != .virtual }

  /// How a column of an index is ordered; of the text that an expression gives the collation is not known.
  private func order(of column: IndexedColumn) -> EntryOrder.Column {
    let place = column.name.flatMap { definition.column(named: $0) }
    let isKnown = column.collation != nil || place != nil
    let name = column.collation ?? place.flatMap { definition.columns[$0].collation }
    return .init(
      collation: isKnown ? EntryOrder.Collation(name, encoding: encoding) : nil,
      isDescending: column.isDescending && honoursDescending)
  }
}
