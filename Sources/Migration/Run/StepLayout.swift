internal import ManagedObjectModel
internal import PersistentStore

/// A mapping together with the tables of both sides, for writing SQL.
struct StepLayout {
  /// The records of one entity on their way to another.
  struct Route {
    let mapping: EntityMapping
    let source: EntityLayout
    let destination: EntityLayout
  }

  let mapping: MappingModel
  let source: StoreLayout
  let destination: StoreLayout
  let sourceSide: InferenceSide
  let destinationSide: InferenceSide

  /// The entities that have records on both sides, by their numbers in the source.
  let routes: [Route]

  /// Lays out both models.
  ///
  /// - Throws: `policy-missing` for mappings that SQL alone cannot carry out, or what the layout refuses.
  init(_ mapping: MappingModel) throws(MigrationError) {
    self.mapping = mapping
    do {
      source = try StoreLayout(mapping.source)
      destination = try StoreLayout(mapping.destination)
    } catch {
      throw MigrationError(database: error, path: nil)
    }
    sourceSide = InferenceSide(mapping.source)
    destinationSide = InferenceSide(mapping.destination)
    var routes: [Route] = []
    for entity in mapping.entityMappings {
      guard let from = entity.sourceEntityName, let to = entity.destinationEntityName,
        let old = source.entity(named: from), let new = destination.entity(named: to)
      else { continue }
      try Self.check(entity)
      guard !routes.contains(where: { $0.source.name == from }) else {
        throw Self.needsPolicy(entity, "several mappings read its records")
      }
      routes.append(Route(mapping: entity, source: old, destination: new))
    }
    self.routes = routes.sorted { $0.source.number < $1.source.number }
  }

  private static func check(_ entity: EntityMapping) throws(MigrationError) {
    guard entity.kind == .copy || entity.kind == .transform, entity.sourceFilter == nil else {
      throw needsPolicy(entity, "it is a custom mapping")
    }
    for property in entity.propertyMappings {
      if case .expression = property.value { throw needsPolicy(entity, "a property is made by an expression") }
    }
  }

  private static func needsPolicy(_ entity: EntityMapping, _ reason: String) -> MigrationError {
    MigrationError(
      .policyMissing, detail: "the mapping of an entity cannot be carried out by this step: \(reason)",
      entityName: entity.destinationEntityName)
  }

  /// The number in the destination of each entity of the source whose records stay.
  var numbers: [Int: Int] {
    Dictionary(routes.map { ($0.source.number, $0.destination.number) }, uniquingKeysWith: { first, _ in first })
  }

  /// Whether an entity that stays gets another number.
  var isRenumbering: Bool { routes.contains { $0.source.number != $0.destination.number } }

  /// The routes that end in a table.
  func routes(to table: TableLayout) -> [Route] { routes.filter { $0.destination.tableName == table.name } }

  /// The routes of records that have a property which an entity of the destination declares.
  func routes(of key: PropertyKey) -> [Route] {
    guard let numbers = destination.entity(named: key.entityName)?.numbers else { return [] }
    return routes.filter { numbers.contains($0.destination.number) }
  }

  /// The relationship that a property of the destination is.
  func relationship(_ key: PropertyKey) -> Relationship? {
    destination.model.entities[key.entityName]?.properties[key.name]?.relationship
  }

  /// The name of a relationship's source property, where the mapping takes it from one.
  func origin(of key: PropertyKey, in route: Route) -> String? {
    guard case .relationship(let name) = route.mapping.propertyMapping(of: PropertyPath(key.name))?.value else {
      return nil
    }
    return name
  }

  /// The records that a relationship of the source may lead to and that the new relationship may lead to as well.
  ///
  /// - Returns: the table of the old destination, the numbers there that fit, and whether those are all that occur.
  func fit(
    oldDestination: String, newDestination: String
  ) -> (table: String, numbers: [Int], isComplete: Bool)? {
    guard let old = source.entity(named: oldDestination), let new = destination.entity(named: newDestination) else {
      return nil
    }
    let known = numbers
    let fitting = old.numbers.filter { known[$0].map { new.numbers.contains($0) } ?? false }
    let isComplete = old.numbers.allSatisfy { number in
      fitting.contains(number)
        || source.entity(numbered: number).flatMap { sourceSide.entity($0.name)?.isAbstract } == true
    }
    return (old.tableName, fitting, isComplete)
  }
}

extension Sequence<Int> {
  /// The numbers as a list of SQL.
  var sqlList: String { "(" + map(String.init).joined(separator: ", ") + ")" }
}
