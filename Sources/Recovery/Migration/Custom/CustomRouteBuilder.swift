internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// Makes a route of an entity mapping: its condition and its columns, as SQL over the source's row `o`.
struct CustomRouteBuilder {
  let layout: StepLayout
  let paths: MappingPathResolver
  let mapping: EntityMapping

  /// The route; nil for mappings that have nothing to do, as those of new and removed entities.
  func route(
    numbered number: Int, _ policies: MigrationPolicies
  ) throws(MigrationError) -> CustomRoute? {
    let source = mapping.sourceEntityName.flatMap { layout.source.entity(named: $0) }
    let destination = mapping.destinationEntityName.flatMap { layout.destination.entity(named: $0) }
    let makePolicy = try policies.policy(for: mapping)
    guard makePolicy != nil || (source != nil && destination != nil) else { return nil }
    var properties: Set<String> = []
    var filter: String?
    if let rewritten = try self.filter() {
      filter = rewritten.sql
      properties.formUnion(rewritten.properties)
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

  /// The condition of its filter over the row `o`; nil for all records.
  func filter() throws(MigrationError) -> MappingExpressionRewriter.Rewritten? {
    guard let text = mapping.sourceFilter,
      let source = mapping.sourceEntityName.flatMap({ layout.source.entity(named: $0) })
    else { return nil }
    return try rewrite(text, of: source, place: "", property: nil)
  }

  private func sql(
    _ column: ColumnLayout, _ path: PropertyPath, _ route: StepLayout.Route, _ properties: inout Set<String>
  ) throws(MigrationError) -> String {
    let property = mapping.propertyMapping(of: path)
    switch property?.value {
    case .expression(let expression):
      let rewritten = try rewrite(
        expression, of: route.source, place: "\(mapping.name).\(path)", property: path.description)
      properties.formUnion(rewritten.properties)
      return value(rewritten, path, route, property)
    case nil:
      // What a mapping does not name is as in a new record.
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
    _ rewritten: MappingExpressionRewriter.Rewritten, _ path: PropertyPath, _ route: StepLayout.Route,
    _ property: PropertyMapping?
  ) -> String {
    let new = attribute(path, route)
    let old = rewritten.attribute.flatMap { name in
      layout.sourceSide.properties[route.source.name]?.first { $0.path == name }
    }
    // The marker byte of external storage is the attribute's, not the value's (format section 3.7).
    var sql = rewritten.sql
    if new?.isMarked == true, old?.isMarked != true {
      sql = "CASE WHEN \(sql) IS NOT NULL THEN CAST(x'01' || \(sql) AS BLOB) END"
    }
    guard property?.replacesNilWithDefault == true, let value = new?.attribute?.defaultValue else { return sql }
    return "ifnull(\(sql), \(value.literal(isMarked: new?.isMarked == true)))"
  }

  private func attribute(_ path: PropertyPath, _ route: StepLayout.Route) -> StoredProperty? {
    layout.destinationSide.properties[route.destination.name]?.first { $0.path == path }
  }

  private func told(_ problem: MappingExpressionProblem, _ property: String?) -> MigrationError {
    let place = property == nil ? "in the filter" : "in the expression"
    return CustomStepCheck.invalid(
      mapping, property, "\(place)\(problem.position > 0 ? ", at" : ":") \(problem.words)", hint: problem.hint,
      isUnsupported: problem.isUnsupported)
  }

  /// Lets SQLite compile the filter and every expression as they were written.
  func compile(_ compilation: ExpressionCompilation) throws(MigrationError) {
    guard let source = mapping.sourceEntityName.flatMap({ layout.source.entity(named: $0) }) else { return }
    func check(
      _ rewritten: MappingExpressionRewriter.Rewritten, _ property: String?
    ) throws(MigrationError) {
      do throws(MappingExpressionProblem) {
        try compilation.check(rewritten, of: source)
      } catch {
        throw told(error, property)
      }
    }
    if let filter = try filter() { try check(filter, nil) }
    guard mapping.destinationEntityName != nil else { return }
    for property in mapping.propertyMappings {
      guard case .expression(let expression) = property.value else { continue }
      let name = property.destination.description
      try check(try rewrite(expression, of: source, place: "\(mapping.name).\(name)", property: name), name)
    }
  }

  private func rewrite(
    _ expression: MappingExpression, of source: EntityLayout, place: String, property: String?
  ) throws(MigrationError) -> MappingExpressionRewriter.Rewritten {
    guard case .sql(let text) = expression else {
      throw MigrationError(
        .policyMissing, operation: "prepare the mapping",
        detail:
          "\(CustomStepCheck.place(mapping, property)): an expression in Core Data's format cannot be carried out",
        hint: "Write it in SQL, or register a policy for the entity mapping.",
        entityName: mapping.destinationEntityName, propertyName: property)
    }
    var rewriter = MappingExpressionRewriter(paths, entity: source.name, place: place)
    do throws(MappingExpressionProblem) {
      return try rewriter.rewrite(text)
    } catch {
      throw told(error, property)
    }
  }
}
