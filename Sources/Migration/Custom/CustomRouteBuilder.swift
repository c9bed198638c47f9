import ManagedObjectModel
internal import PersistentStore

/// Makes the route of an entity mapping: its condition and columns as SQL over the source row `o`.
struct CustomRouteBuilder {
  let layout: StepLayout
  let mapping: EntityMapping

  /// Binds text, source entity and place.
  let bind: (String, String, String) throws(ExpressionProblem) -> BoundExpression

  /// The route; nil for mappings without work, as of new and removed entities.
  func route(
    numbered number: Int, _ policies: MigrationPolicies
  ) throws -> CustomRoute? {
    let source = mapping.sourceEntityName.flatMap { layout.source.entity(named: $0) }
    let destination = mapping.destinationEntityName.flatMap { layout.destination.entity(named: $0) }
    let makePolicy = try policies.policy(for: mapping)
    guard makePolicy != nil || (source != nil && destination != nil) else { return nil }
    var properties: Set<String> = []
    var filter: String?
    if let bound = try self.filter() {
      filter = bound.sql
      properties.formUnion(bound.properties)
    }
    var columns: [(column: ColumnLayout, sql: String)] = []
    if let source, let destination, let table = layout.destination.table(named: destination.tableName) {
      let route = StepLayout.Route(mapping: mapping, source: source, destination: destination)
      for column in table.columns {
        guard let path = column.path, let key = column.role.property,
          layout.destination.entity(named: key.entityName)?.numbers.contains(destination.number) == true
        else { continue }
        columns.append((column, try sql(column, path, route, &properties)))
      }
    }
    return CustomRoute(
      number: number, mapping: mapping, source: source, destination: destination, makePolicy: makePolicy, range: nil,
      filter: filter, columns: columns, sourceProperties: properties)
  }

  func filter() throws -> BoundExpression? {
    guard let text = mapping.sourceFilter,
      let source = mapping.sourceEntityName.flatMap({ layout.source.entity(named: $0) })
    else { return nil }
    return try bind(text, of: source, place: "", property: nil)
  }

  private func sql(
    _ column: ColumnLayout, _ path: PropertyPath, _ route: StepLayout.Route, _ properties: inout Set<String>
  ) throws -> String {
    let property = mapping.propertyMapping(of: path)
    switch property?.value {
    case .expression(let expression):
      let bound = try bind(
        expression, of: route.source, place: "\(mapping.name).\(path)", property: path.description)
      properties.formUnion(bound.properties)
      return value(bound, path, route, property)
    case nil:
      var complete = route.mapping
      complete.propertyMappings.append(PropertyMapping(path, .defaultValue))
      let isDerived = attribute(path, route)?.attribute?.isDerived == true
      guard !isDerived else { return "NULL" }
      return layout.expression(
        column, StepLayout.Route(mapping: complete, source: route.source, destination: route.destination))
    case .copy?, .convert?, .externalize?, .defaultValue?, .null?, .recompute?, .relationship?, .inverse?,
      .destinations?:
      return layout.expression(column, route)
    }
  }

  private func value(
    _ bound: BoundExpression, _ path: PropertyPath, _ route: StepLayout.Route,
    _ property: PropertyMapping?
  ) -> String {
    let new = attribute(path, route)
    let old = bound.attribute.flatMap { name in
      layout.sourceSide.properties[route.source.name]?.first { $0.path == name }
    }
    // The marker byte belongs to the attribute, not to the value (format section 3.7).
    var sql = bound.sql
    if new?.isMarked == true, old?.isMarked != true {
      sql = "CASE WHEN \(sql) IS NOT NULL THEN CAST(x'01' || \(sql) AS BLOB) END"
    }
    guard property?.replacesNilWithDefault == true, let value = new?.attribute?.defaultValue else { return sql }
    return "ifnull(\(sql), \(value.literal(isMarked: new?.isMarked == true)))"
  }

  private func attribute(_ path: PropertyPath, _ route: StepLayout.Route) -> StoredProperty? {
    layout.destinationSide.properties[route.destination.name]?.first { $0.path == path }
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
