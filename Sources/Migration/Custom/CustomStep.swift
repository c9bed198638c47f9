internal import ManagedObjectModel
internal import PersistentStore
import Platform

/// A checked custom step, its expressions compiled and its policies found.
struct CustomStep {
  let layout: StepLayout

  private(set) var routes: [CustomRoute]

  /// The number of routes that read each source entity, by its name.
  let routeCounts: [String: Int]

  /// The key ranges; each destination hierarchy's first keeps the old keys.
  let ranges: [KeyRange]

  /// Checks a step.
  ///
  /// - Throws: `policy-missing`, `expression-unsupported` for a function, else `mapping-invalid` with its place.
  init(_ layout: StepLayout, policies: MigrationPolicies) throws {
    self.layout = layout
    try CustomStepCheck(layout: layout).run()
    let compilation = try ExpressionCompilation(layout.source)
    var routes: [CustomRoute] = []
    for mapping in layout.mapping.entityMappings {
      let builder = CustomRouteBuilder(layout: layout, mapping: mapping, bind: compilation.bind)
      guard let route = try builder.route(numbered: routes.count, policies) else { continue }
      routes.append(route)
    }
    ranges = Self.assignRanges(&routes, layout)
    routeCounts = routes.reduce(into: [:]) { counts, route in
      if let source = route.source { counts[source.name, default: 0] += 1 }
    }
    self.routes = routes
  }

  func route(named name: String) -> CustomRoute? { routes.first { $0.mapping.name == name } }

  // MARK: Primary keys

  private static func assignRanges(_ routes: inout [CustomRoute], _ layout: StepLayout) -> [KeyRange] {
    let primary = Set(layout.routes.filter { $0.goesOn(in: layout.mapping) }.map(\.mapping.name))
    let order = routes.indices.ordered { one, other in
      primary.contains(routes[one].mapping.name) && !primary.contains(routes[other].mapping.name)
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
}

struct CustomRoute {
  /// The index in the step; associations use it.
  let number: Int

  let mapping: EntityMapping

  /// Nil if only the policy acts.
  let source: EntityLayout?

  /// Nil if a policy decides.
  let destination: EntityLayout?

  /// Nil for SQL.
  let makePolicy: (@Sendable () -> any EntityMigrationPolicy)?

  /// The index in `CustomStep.ranges`; nil without a source or a destination.
  var range: Int?

  let filter: String?

  let columns: [(column: ColumnLayout, sql: String)]

  var isSetBased: Bool { makePolicy == nil && source != nil && destination != nil }

  /// The condition that selects the source rows `o`.
  var condition: String {
    guard let source else { return "0" }
    return "o.Z_ENT = \(source.number)" + (filter.map { " AND \($0)" } ?? "")
  }
}

/// A destination hierarchy's keys from one source hierarchy: the old keys plus an offset.
///
/// Split entities and merged hierarchies get several ranges, so keys never collide.
struct KeyRange: Hashable {
  let destinationRoot: String

  let sourceRoot: String

  /// The index among one entity's routes here, from 0.
  let turn: Int
}

/// Makes the route of an entity mapping: its condition and columns as SQL over the source row `o`.
struct CustomRouteBuilder {
  let layout: StepLayout
  let mapping: EntityMapping

  /// Binds text, source entity and place.
  let bind: (String, String, String) throws(ExpressionProblem) -> BoundExpression

  /// The route; nil for mappings without work, as of new and removed entities.
  func route(numbered number: Int, _ policies: MigrationPolicies) throws -> CustomRoute? {
    let source = mapping.sourceEntityName.flatMap { layout.source.entity(named: $0) }
    let destination = mapping.destinationEntityName.flatMap { layout.destination.entity(named: $0) }
    let makePolicy = try policies.policy(for: mapping)
    guard makePolicy != nil || (source != nil && destination != nil) else { return nil }
    let filter = try self.filter()?.sql
    var columns: [(column: ColumnLayout, sql: String)] = []
    if let source, let destination, let table = layout.destination.table(named: destination.tableName) {
      let route = StepLayout.Route(mapping: mapping, source: source, destination: destination)
      for column in table.columns {
        guard let path = column.path, let key = column.role.property,
          layout.destination.entity(named: key.entityName)?.numbers.contains(destination.number) == true
        else { continue }
        columns.append((column, try sql(column, path, route)))
      }
    }
    return CustomRoute(
      number: number, mapping: mapping, source: source, destination: destination, makePolicy: makePolicy,
      filter: filter, columns: columns)
  }

  func filter() throws -> BoundExpression? {
    guard let text = mapping.sourceFilter,
      let source = mapping.sourceEntityName.flatMap({ layout.source.entity(named: $0) })
    else { return nil }
    return try bind(text, of: source, place: "", property: nil)
  }

  private func sql(_ column: ColumnLayout, _ path: PropertyPath, _ route: StepLayout.Route) throws -> String {
    let property = mapping.propertyMapping(of: path)
    switch property?.value {
    case .expression(let expression):
      let bound = try bind(
        expression, of: route.source, place: "\(mapping.name).\(path)", property: path.description)
      return value(bound, path, route, property)
    case nil:
      if attribute(path, route)?.attribute?.isDerived == true { return "NULL" }
      var complete = route.mapping
      complete.propertyMappings.append(PropertyMapping(path, .defaultValue))
      return layout.expression(
        column, StepLayout.Route(mapping: complete, source: route.source, destination: route.destination))
    case .copy?, .convert?, .externalize?, .defaultValue?, .null?, .recompute?, .relationship?, .inverse?,
      .destinations?:
      return layout.expression(column, route)
    }
  }

  private func value(
    _ bound: BoundExpression, _ path: PropertyPath, _ route: StepLayout.Route, _ property: PropertyMapping?
  ) -> String {
    let new = attribute(path, route)
    let old = bound.attribute.flatMap { layout.sourceSide.property($0, of: route.source.name) }
    // The marker byte belongs to the attribute, not to the value (format section 3.7).
    var sql = bound.sql
    if new?.isMarked == true, old?.isMarked != true {
      sql = "CASE WHEN \(sql) IS NOT NULL THEN CAST(x'01' || \(sql) AS BLOB) END"
    }
    guard property?.replacesNilWithDefault == true, let value = new?.attribute?.defaultValue else { return sql }
    return "ifnull(\(sql), \(value.literal(isMarked: new?.isMarked == true)))"
  }

  private func attribute(_ path: PropertyPath, _ route: StepLayout.Route) -> StoredProperty? {
    layout.destinationSide.property(path, of: route.destination.name)
  }

  private func bind(
    _ expression: MappingExpression, of source: EntityLayout, place: String, property: String?
  ) throws -> BoundExpression {
    guard case .sql(let text) = expression else {
      throw MigrationError(
        .policyMissing, operation: "prepare the mapping",
        detail:
          "\(CustomStepCheck.place(mapping, property)): an expression in Core Data's format cannot be carried out",
        hint: "Write it in SQL, or register a policy for the entity mapping.",
        entityName: mapping.destinationEntityName, propertyName: property)
    }
    do throws(ExpressionProblem) {
      return try bind(text, source.name, place)
    } catch {
      let place = property == nil ? "in the filter" : "in the expression"
      throw CustomStepCheck.invalid(
        mapping, property, "\(place)\(error.position > 0 ? ", at" : ":") \(error.words)", hint: error.hint,
        isUnsupported: error.isUnsupported)
    }
  }
}
