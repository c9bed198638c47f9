internal import ManagedObjectModel
internal import PersistentStore

/// The source of a destination column's values.
struct ColumnOrigin {
  /// Nil for a new column.
  private(set) var column: String?

  private(set) var fillings: [InPlaceChange.Filling] = []

  /// - Throws: The reason to rewrite some records.
  init(_ column: ColumnLayout, _ routes: [StepLayout.Route], _ layout: StepLayout) throws(InPlaceObstacle) {
    var without: [StepLayout.Route] = []
    for route in routes {
      switch Single(column, route, layout) {
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
    for route in without where layout.isUsed(name, by: route.source) { throw Self.differs(column) }
  }

  private static func differs(_ column: ColumnLayout) -> InPlaceObstacle {
    InPlaceObstacle("the values of column \(column.name) have to be made anew")
  }

  private mutating func fill(_ column: ColumnLayout, _ literal: String, _ route: StepLayout.Route, replacesNil: Bool) {
    let number = route.destination.number
    let same = fillings.firstIndex { $0.literal == literal && $0.replacesNil == replacesNil }
    let numbers = same.map { fillings.remove(at: $0).numbers } ?? []
    fillings.append(
      .init(column: column.name, literal: literal, numbers: numbers + [number], replacesNil: replacesNil))
  }

  private enum Single {
    /// A column; the literal replaces nil, if there is one.
    case column(String, replacingNil: String?)

    case nothing

    /// The same value in all records.
    case value(String)

    /// Dependent on other values.
    case computed

    init(_ column: ColumnLayout, _ route: StepLayout.Route, _ layout: StepLayout) {
      if let key = column.role.property, !layout.isDeclared(key, column.role, by: route.destination) {
        self = .nothing
        return
      }
      switch column.role {
      case .primaryKey: self = .column("Z_PK", replacingNil: nil)
      case .entityNumber: self = .column("Z_ENT", replacingNil: nil)
      case .saveCount: self = .column("Z_OPT", replacingNil: nil)
      case .attribute(let key, _): self.init(attribute: PropertyPath(key.name), route, layout)
      case .compositeLeaf(let key, let path, _): self.init(attribute: PropertyPath(key.name, leaf: path), route, layout)
      case .toOne(let key), .toOneEntity(let key), .toOneOrder(let key):
        self.init(toOne: key, column.role, route, layout)
      case .owner(let key), .ownerOrder(let key): self.init(owner: key, column.role, route, layout)
      }
    }

    private init(attribute path: PropertyPath, _ route: StepLayout.Route, _ layout: StepLayout) {
      guard let mapping = route.mapping.propertyMapping(of: path),
        let new = layout.attribute(path, of: route.destination.name)
      else {
        self = .nothing
        return
      }
      let standard = layout.defaultLiteral(new)
      switch mapping.value {
      case .convert(_, let from, let to) where !Self.areStoredAlike(from, to): self = .computed
      case .copy(let old), .convert(let old, _, _):
        guard let name = layout.columnName(of: old, route) else {
          self = .computed
          return
        }
        self = .column(name, replacingNil: mapping.replacesNilWithDefault && standard != "NULL" ? standard : nil)
      case .defaultValue: self = standard == "NULL" ? .nothing : .value(standard)
      case .null: self = mapping.replacesNilWithDefault && standard != "NULL" ? .value(standard) : .nothing
      case .recompute:
        let old = layout.sourceSide.properties[route.source.name]?.first { $0.path == path }
        guard let old, StepLayout.isSameDerivation(old, new), let name = layout.columnName(of: path, route) else {
          self = .computed
          return
        }
        self = .column(name, replacingNil: nil)
      case .externalize, .relationship, .destinations, .inverse, .expression: self = .computed
      }
    }

    /// Whether both types store every value of the first as the same bytes.
    private static func areStoredAlike(_ first: AttributeType, _ second: AttributeType) -> Bool {
      let integers: [AttributeType] = [.integer16, .integer32, .integer64]
      if let old = integers.firstIndex(of: first), let new = integers.firstIndex(of: second) { return old <= new }
      let fractions: [AttributeType] = [.double, .float]
      return fractions.contains(first) && fractions.contains(second)
    }

    private init(toOne key: PropertyKey, _ role: ColumnRole, _ route: StepLayout.Route, _ layout: StepLayout) {
      guard let new = layout.relationship(key),
        let mapping = route.mapping.propertyMapping(of: PropertyPath(key.name)), mapping.value != .null
      else {
        self = .nothing
        return
      }
      guard case .relationship(let name) = mapping.value,
        case .toOne(let column, let entityColumn, let orderColumn) = layout.source.storage(
          of: name, in: route.source.name),
        let old = layout.sourceSide.properties[route.source.name]?.first(where: { $0.path == PropertyPath(name) })?
          .relationship,
        layout.fit(oldDestination: old.destinationEntityName, newDestination: new.destinationEntityName)?.isComplete
          == true
      else {
        self = .computed
        return
      }
      let found: String? =
        switch role {
        case .toOneEntity: entityColumn
        case .toOneOrder: orderColumn
        case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .owner, .ownerOrder: column
        }
      self = found.map { .column($0, replacingNil: nil) } ?? .computed
    }

    private init(owner key: PropertyKey, _ role: ColumnRole, _ route: StepLayout.Route, _ layout: StepLayout) {
      let sources = layout.pairSources(of: key)
      guard let first = sources.first else {
        self = .nothing
        return
      }
      guard sources.count == 1, case .toManyByColumn(let table, let column, let order) = first.source.storage,
        table == route.source.tableName, case .owner(let old)? = layout.source.role(ofColumn: column, table: table),
        layout.source.entity(named: old.entityName).map({ Set($0.numbers) }) == Set(first.numbers),
        let destination = layout.relationship(key)?.destinationEntityName,
        layout.fit(oldDestination: first.source.oldDestination, newDestination: destination)?.isComplete == true
      else {
        self = .computed
        return
      }
      let found: String? = if case .ownerOrder = role { order } else { column }
      self = found.map { .column($0, replacingNil: nil) } ?? .computed
    }
  }
}

extension StepLayout {
  func columnName(of path: PropertyPath, _ route: Route) -> String? {
    guard case .attribute(let columns) = source.storage(of: path.name, in: route.source.name) else { return nil }
    return columns.first { column in
      if case .compositeLeaf(_, let leaf, _) = column.role { leaf == path.leaf } else { path.leaf.isEmpty }
    }?.name
  }

  fileprivate func isUsed(_ column: String, by entity: EntityLayout) -> Bool {
    guard let role = source.role(ofColumn: column, table: entity.tableName), let key = role.property else {
      return true
    }
    var name = key.entityName
    switch role {
    case .owner, .ownerOrder:
      name = source.model.entities[key.entityName]?.properties[key.name]?.relationship?.destinationEntityName ?? name
    case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .toOneEntity, .toOneOrder: break
    }
    return source.entity(named: name)?.numbers.contains(entity.number) ?? true
  }
}
