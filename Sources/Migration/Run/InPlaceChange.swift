import ManagedObjectModel
internal import PersistentStore

/// The changes of a step that only adds and renames; only records with new defaults are rewritten.
struct InPlaceChange: Sendable {
  struct Renaming: Sendable, Hashable {
    let old: String
    let new: String
  }

  struct Filling: Sendable, Hashable {
    let column: String

    let literal: String

    let numbers: [Int]

    let replacesNil: Bool
  }

  struct TableChange: Sendable {
    let name: Renaming
    var columns: [Renaming] = []
    var added: [ColumnLayout] = []
    var fillings: [Filling] = []
  }

  /// The kept entity and join tables.
  private(set) var tables: [TableChange] = []

  private(set) var newTables: [(name: String, statement: String)] = []

  private(set) var droppedIndexes: [IndexLayout] = []

  /// Determines the changes.
  ///
  /// - Throws: The first reason to rewrite records.
  init(_ layout: StepLayout) throws(InPlaceObstacle) {
    try Self.checkEntities(layout)
    for table in layout.destination.tables { try add(table, layout) }
    for table in layout.destination.joinTables { try add(table, layout) }
    let kept = Set(tables.map(\.name.old))
    for name in layout.source.tables.map(\.name) + layout.source.joinTables.map(\.name) where !kept.contains(name) {
      throw InPlaceObstacle("table \(name) goes")
    }
    try compareIndexes(layout)
  }

  /// Whether records get values, so that the method depends on their number.
  var fillsRecords: Bool { tables.contains { !$0.fillings.isEmpty } }

  func change(of oldName: String) -> TableChange? { tables.first { $0.name.old == oldName } }

  private static func checkEntities(_ layout: StepLayout) throws(InPlaceObstacle) {
    for entity in layout.source.entities {
      guard let number = layout.numbers[entity.number] else { throw InPlaceObstacle("entity \(entity.name) goes") }
      guard number == entity.number else { throw InPlaceObstacle("entity \(entity.name) gets another number") }
    }
    for condition in layout.mapping.conditions {
      switch condition.kind {
      case .newInverse, .severalOwners, .destinationOfOtherEntity:
        throw InPlaceObstacle("the pairs of relationship \(condition.destinationProperty?.description ?? "") change")
      case .missingAttributeValue, .newMandatoryAttribute, .missingRelationship, .newMandatoryRelationship,
        .tooFewDestinations, .tooManyDestinations, .duplicateValues, .recordsOfAbstractEntity, .valueOutOfRange,
        .unreadableDefault:
        continue
      }
    }
  }

  // MARK: Tables of entities

  private mutating func add(_ table: TableLayout, _ layout: StepLayout) throws(InPlaceObstacle) {
    let routes = layout.routes(to: table)
    guard let first = routes.first else {
      newTables.append((table.name, table.statement))
      return
    }
    guard let old = layout.source.table(named: first.source.tableName),
      layout.routes.allSatisfy({ ($0.source.tableName == old.name) == ($0.destination.tableName == table.name) })
    else { throw InPlaceObstacle("records of \(first.destination.name) move to another table") }
    var change = TableChange(name: Renaming(old: old.name, new: table.name))
    var taken: Set<String> = []
    for column in table.columns {
      let origin = try ColumnOrigin(column, routes, layout)
      if let name = origin.column {
        guard let found = old.column(named: name), found.type == column.type, taken.insert(found.name).inserted else {
          throw InPlaceObstacle("column \(column.name) of table \(table.name) holds other values")
        }
        if found.name != column.name { change.columns.append(Renaming(old: found.name, new: column.name)) }
      } else {
        change.added.append(column)
      }
      change.fillings += origin.fillings
    }
    if let left = old.columns.first(where: { !taken.contains($0.name) }) {
      throw InPlaceObstacle("column \(left.name) of table \(old.name) goes")
    }
    tables.append(change)
  }

  // MARK: Join tables

  private mutating func add(_ table: JoinTableLayout, _ layout: StepLayout) throws(InPlaceObstacle) {
    let own = layout.pairSources(of: table.relationship)
    let other = table.isReflexive ? [] : layout.pairSources(of: table.inverse)
    guard let first = own.first ?? other.first else {
      newTables.append((table.name, table.statement))
      return
    }
    func differs() -> InPlaceObstacle { InPlaceObstacle("the pairs of table \(table.name) come from elsewhere") }
    guard case .toManyByJoinTable(let name, _, _, _) = first.source.storage,
      let old = layout.source.joinTable(named: name), old.isReflexive == table.isReflexive,
      (old.sourceOrderColumn == nil) == (table.sourceOrderColumn == nil),
      (old.destinationOrderColumn == nil) == (table.destinationOrderColumn == nil),
      !tables.contains(where: { $0.name.old == name })
    else { throw differs() }
    for (sources, key, columns) in [
      (own, table.relationship, (old.sourceColumn, old.destinationColumn)),
      (other, table.inverse, (old.destinationColumn, old.sourceColumn)),
    ] {
      for (pairs, numbers) in sources {
        guard case .toManyByJoinTable(name, columns.0, columns.1, _) = pairs.storage,
          let destination = layout.relationship(key)?.destinationEntityName,
          layout.fit(oldDestination: pairs.oldDestination, newDestination: destination)?.isComplete == true,
          let owner = old.sourceColumn == columns.0 ? old.relationship.entityName : old.inverse.entityName as String?,
          layout.source.entity(named: owner).map({ Set($0.numbers) }) == Set(numbers)
        else { throw differs() }
      }
    }
    var change = TableChange(name: Renaming(old: old.name, new: table.name))
    for (before, after) in zip(old.columns, table.columns) where before != after {
      change.columns.append(Renaming(old: before, new: after))
    }
    tables.append(change)
  }

  // MARK: Indexes

  private struct IndexShape: Hashable {
    let table: String
    let columns: [String]
    let isUnique: Bool
    let condition: String?

    init(_ index: IndexLayout, table: String, names: [String: String] = [:]) {
      self.table = table
      columns = index.columns.map { column in
        (names[column.name] ?? column.name) + (column.isAscending.map { $0 ? " ASC" : " DESC" } ?? "")
      }
      isUnique = index.isUnique
      condition = index.condition
    }
  }

  private mutating func compareIndexes(_ layout: StepLayout) throws(InPlaceObstacle) {
    guard layout.source.spatialIndexes == layout.destination.spatialIndexes else {
      throw InPlaceObstacle("the R-tree indexes change")
    }
    let wanted = Set(layout.destination.indexes.map { IndexShape($0, table: $0.tableName) })
    for index in layout.source.indexes {
      let change = change(of: index.tableName)
      let names = Dictionary(
        (change?.columns ?? []).map { ($0.old, $0.new) }, uniquingKeysWith: { first, _ in first })
      let shape = IndexShape(index, table: change?.name.new ?? index.tableName, names: names)
      // A partial index's condition has column names, so any rename rebuilds it.
      if !wanted.contains(shape) || (index.condition != nil && !names.isEmpty) { droppedIndexes.append(index) }
    }
  }

  // MARK: Contents

  /// The reason this store can't be changed in place although the models allow it.
  func obstacle(in contents: SourceContents, _ layout: StepLayout) -> InPlaceObstacle? {
    if let difference = contents.unexpectedColumn { return InPlaceObstacle(difference) }
    if let table = contents.looseTable { return InPlaceObstacle("table \(table) is without its primary key") }
    for name in newTables.map(\.name) + tables.filter({ $0.name.old != $0.name.new }).map(\.name.new)
    where contents.schema.hasTable(name) && change(of: name) == nil {
      return InPlaceObstacle("the app has a table \(name) of its own")
    }
    for index in layout.source.spatialIndexes where contents.schema.tables[index.name] == nil {
      return InPlaceObstacle("the R-tree index \(index.name) is lacking")
    }
    guard fillsRecords else { return nil }
    // Measured: filling a table costs as much as rewriting it.
    let filled = tables.filter { !$0.fillings.isEmpty }.reduce(0) { $0 + contents.rowCount(of: $1.name.old) }
    let all = tables.reduce(0) { $0 + contents.rowCount(of: $1.name.old) }
    if filled > 1000, filled > all / 4 { return InPlaceObstacle("\(filled) of \(all) records get a default") }
    return nil
  }
}

/// The reason a step is more than adding and renaming.
struct InPlaceObstacle: Error, Sendable, Hashable {
  /// The reason as a sentence without a full stop.
  let detail: String

  init(_ detail: String) { self.detail = detail }
}

/// The source of a destination column's values.
struct ColumnOrigin {
  /// Nil for a new column.
  private(set) var column: String?

  private(set) var fillings: [InPlaceChange.Filling] = []

  /// - Throws: The reason to rewrite some records.
  init(_ column: ColumnLayout, _ routes: [StepLayout.Route], _ layout: StepLayout) throws(InPlaceObstacle) {
    var without: [StepLayout.Route] = []
    for route in routes {
      switch Single.of(column, route, layout) {
      case .column(let name, let literal):
        guard self.column == nil || self.column == name else { throw Self.differs(column) }
        self.column = name
        if let literal { fill(column, literal, route, replacesNil: true) }
      case .nothing: without.append(route)
      case .value(let literal):
        without.append(route)
        fill(column, literal, route, replacesNil: false)
      case .computed: throw Self.differs(column)
      }
    }
    guard let name = self.column else { return }
    // Other entities' values in the column would become theirs.
    for route in without {
      let role = layout.source.role(ofColumn: name, table: route.source.tableName)
      let holder = role.flatMap { role in role.property.flatMap { layout.source.holder(of: $0, role) } }
      if holder?.numbers.contains(route.source.number) ?? true { throw Self.differs(column) }
    }
  }

  private static func differs(_ column: ColumnLayout) -> InPlaceObstacle {
    InPlaceObstacle("the values of column \(column.name) have to be made anew")
  }

  private mutating func fill(_ column: ColumnLayout, _ literal: String, _ route: StepLayout.Route, replacesNil: Bool) {
    let number = route.destination.number
    let same = fillings.firstIndex { $0.literal == literal && $0.replacesNil == replacesNil }
    let numbers = same.map { fillings.remove(at: $0).numbers } ?? []
    fillings.append(.init(column: column.name, literal: literal, numbers: numbers + [number], replacesNil: replacesNil))
  }

  private enum Single {
    /// A column; the literal replaces nil, if there is one.
    case column(String, replacingNil: String?)

    case nothing

    /// The same value in all records.
    case value(String)

    /// Dependent on other values.
    case computed

    static func of(_ column: ColumnLayout, _ route: StepLayout.Route, _ layout: StepLayout) -> Single {
      if let key = column.role.property, !layout.isDeclared(key, column.role, by: route.destination) { return .nothing }
      switch column.role {
      case .primaryKey: return .column("Z_PK", replacingNil: nil)
      case .entityNumber: return .column("Z_ENT", replacingNil: nil)
      case .saveCount: return .column("Z_OPT", replacingNil: nil)
      case .attribute(let key, _): return attribute(PropertyPath(key.name), route, layout)
      case .compositeLeaf(let key, let path, _): return attribute(PropertyPath(key.name, leaf: path), route, layout)
      case .toOne(let key), .toOneEntity(let key), .toOneOrder(let key): return toOne(key, column.role, route, layout)
      case .owner(let key), .ownerOrder(let key): return owner(key, column.role, route, layout)
      }
    }

    private static func attribute(_ path: PropertyPath, _ route: StepLayout.Route, _ layout: StepLayout) -> Single {
      guard let mapping = route.mapping.propertyMapping(of: path),
        let new = layout.attribute(path, of: route.destination.name)
      else { return .nothing }
      let standard = layout.defaultLiteral(new)
      switch mapping.value {
      case .convert(_, let from, let to) where !areStoredAlike(from, to): return .computed
      case .copy(let old), .convert(let old, _, _):
        guard let name = layout.source.column(of: old, in: route.source.name)?.name else { return .computed }
        return .column(name, replacingNil: mapping.replacesNilWithDefault && standard != "NULL" ? standard : nil)
      case .defaultValue: return standard == "NULL" ? .nothing : .value(standard)
      case .null: return mapping.replacesNilWithDefault && standard != "NULL" ? .value(standard) : .nothing
      case .recompute:
        let old = layout.sourceSide.property(path, of: route.source.name)
        guard StepLayout.isSameDerivation(old, new),
          let name = layout.source.column(of: path, in: route.source.name)?.name
        else { return .computed }
        return .column(name, replacingNil: nil)
      case .externalize, .relationship, .destinations, .inverse, .expression: return .computed
      }
    }

    /// Whether both types store every value of the first as the same bytes.
    private static func areStoredAlike(_ first: AttributeType, _ second: AttributeType) -> Bool {
      let integers: [AttributeType] = [.integer16, .integer32, .integer64]
      if let old = integers.firstIndex(of: first), let new = integers.firstIndex(of: second) { return old <= new }
      let fractions: [AttributeType] = [.double, .float]
      return fractions.contains(first) && fractions.contains(second)
    }

    private static func toOne(
      _ key: PropertyKey, _ role: ColumnRole, _ route: StepLayout.Route, _ layout: StepLayout
    ) -> Single {
      guard let new = layout.relationship(key),
        let mapping = route.mapping.propertyMapping(of: PropertyPath(key.name)), mapping.value != .null
      else { return .nothing }
      guard case .relationship(let name) = mapping.value,
        case .toOne(let column, let entityColumn, let orderColumn) = layout.source.storage(
          of: name, in: route.source.name), let old = layout.sourceSide.relationship(name, of: route.source.name),
        layout.fit(oldDestination: old.destinationEntityName, newDestination: new.destinationEntityName)?.isComplete
          == true
      else { return .computed }
      let found: String? =
        switch role {
        case .toOneEntity: entityColumn
        case .toOneOrder: orderColumn
        case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .owner, .ownerOrder: column
        }
      return found.map { .column($0, replacingNil: nil) } ?? .computed
    }

    private static func owner(
      _ key: PropertyKey, _ role: ColumnRole, _ route: StepLayout.Route, _ layout: StepLayout
    ) -> Single {
      let sources = layout.pairSources(of: key)
      guard let first = sources.first else { return .nothing }
      guard sources.count == 1, case .toManyByColumn(let table, let column, let order) = first.source.storage,
        table == route.source.tableName, case .owner(let old)? = layout.source.role(ofColumn: column, table: table),
        layout.source.entity(named: old.entityName).map({ Set($0.numbers) }) == Set(first.numbers),
        let destination = layout.relationship(key)?.destinationEntityName,
        layout.fit(oldDestination: first.source.oldDestination, newDestination: destination)?.isComplete == true
      else { return .computed }
      let found: String? = if case .ownerOrder = role { order } else { column }
      return found.map { .column($0, replacingNil: nil) } ?? .computed
    }
  }
}
