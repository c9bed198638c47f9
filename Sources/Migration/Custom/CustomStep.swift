internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// A custom step, checked and ready to be carried out: every expression has been compiled, every policy found.
struct CustomStep {
  let layout: StepLayout

  /// The routes in the order of the entity mappings.
  private(set) var routes: [CustomRoute]

  /// The ranges of primary keys; in each hierarchy of the destination the first begins at the old keys.
  let ranges: [KeyRange]

  /// Checks a step.
  ///
  /// - Throws: `policy-missing` for a policy or a function that is not there, `mapping-invalid` for everything else that
  ///   is wrong with the mapping, with entity mapping, entity, property and place in the expression.
  init(_ layout: StepLayout, policies: MigrationPolicies) throws(MigrationError) {
    self.layout = layout
    try CustomStepCheck(layout: layout).run()
    let paths = MappingPathResolver(layout: layout.source, schema: "old.")
    var routes: [CustomRoute] = []
    for mapping in layout.mapping.entityMappings {
      let builder = CustomRouteBuilder(layout: layout, paths: paths, mapping: mapping)
      if let route = try builder.route(numbered: routes.count, policies) { routes.append(route) }
    }
    ranges = Self.assignRanges(&routes, layout)
    self.routes = routes
    try compile()
  }

  /// The route of the entity mapping of that name.
  func route(named name: String) -> CustomRoute? { routes.first { $0.mapping.name == name } }

  // MARK: Primary keys

  private static func assignRanges(_ routes: inout [CustomRoute], _ layout: StepLayout) -> [KeyRange] {
    var primary: Set<String> = []
    for route in layout.routes where route.goesOn(in: layout.mapping) { primary.insert(route.mapping.name) }
    let order = routes.indices.sorted { first, second in
      let (one, other) = (primary.contains(routes[first].mapping.name), primary.contains(routes[second].mapping.name))
      return one != other ? one : first < second
    }
    var ranges: [KeyRange] = []
    var turns: [[String]: Int] = [:]
    for index in order {
      guard let source = routes[index].source, let destination = routes[index].destination else { continue }
      let turn = turns[[source.name, destination.rootName], default: 0]
      turns[[source.name, destination.rootName]] = turn + 1
      let range = KeyRange(destinationRoot: destination.rootName, sourceRoot: source.rootName, turn: turn)
      if let known = ranges.firstIndex(of: range) {
        routes[index].range = known
      } else {
        routes[index].range = ranges.count
        ranges.append(range)
      }
    }
    return ranges
  }

  // MARK: Compiling

  /// Lets SQLite compile every statement on empty tables of the source's model, so that errors come before the start.
  private func compile() throws(MigrationError) {
    do {
      let database = try DatabaseQueue()
      try database.inDatabase { database in
        try StepConnection.addFunctions(to: database, referenceDate: 0)
        try database.execute(sql: "ATTACH DATABASE ':memory:' AS old")
        for table in layout.source.tables { try database.execute(sql: Self.placed(table.statement)) }
        for table in layout.source.joinTables { try database.execute(sql: Self.placed(table.statement)) }
        try database.execute(sql: "CREATE TABLE old.Z_METADATA (Z_VERSION INTEGER, Z_UUID VARCHAR, Z_PLIST BLOB)")
        for route in routes { try compile(route, database) }
      }
    } catch {
      throw MigrationError(database: error, path: nil)
    }
  }

  private static func placed(_ statement: String) -> String {
    "CREATE TABLE old." + statement.dropFirst("CREATE TABLE ".count)
  }

  private func compile(_ route: CustomRoute, _ database: Database) throws {
    guard let source = route.source else { return }
    func check(_ sql: String, _ property: String?) throws {
      do {
        _ = try database.makeStatement(
          sql: "SELECT \(sql) FROM old.\(SQLText.identifier(source.tableName)) AS o WHERE o.Z_ENT = 1")
      } catch let error as DatabaseError {
        throw CustomStepCheck.invalid(
          route.mapping, property,
          "SQLite cannot compile the expression: \(printable(error.message ?? "syntax error"))",
          hint: "Correct the expression; SQLite's rules for expressions hold.")
      }
    }
    if let filter = route.filter { try check(filter, nil) }
    for property in route.mapping.propertyMappings {
      guard case .expression = property.value,
        let column = route.columns.first(where: { $0.column.path == property.destination })
      else { continue }
      try check(column.sql, property.destination.description)
    }
  }
}

extension ColumnLayout {
  /// The attribute, or the leaf of a composite one, whose values it holds.
  var path: PropertyPath? {
    switch role {
    case .attribute(let key, _): PropertyPath(key.name)
    case .compositeLeaf(let key, let path, _): PropertyPath(key.name, leaf: path)
    default: nil
    }
  }

  /// The type of the values of its attribute.
  var attributeType: AttributeType? {
    switch role {
    case .attribute(_, let type), .compositeLeaf(_, _, let type): type
    default: nil
    }
  }
}
