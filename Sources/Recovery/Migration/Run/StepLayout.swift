internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// A mapping together with the tables of both sides, for writing SQL.
struct StepLayout {
  /// The records of one entity on their way to another.
  struct Route {
    let mapping: EntityMapping
    let source: EntityLayout
    let destination: EntityLayout

    /// Whether both entities have the same renaming identifier, so that the records go on as what they were.
    func goesOn(in mapping: MappingModel) -> Bool {
      mapping.source.entities[source.name]?.renamingIdentifier
        == mapping.destination.entities[destination.name]?.renamingIdentifier
    }
  }

  let mapping: MappingModel
  private let before: LayoutCache.Entry
  private let after: LayoutCache.Entry

  var source: StoreLayout { before.layout }
  var destination: StoreLayout { after.layout }
  var sourceSide: InferenceSide { before.side }
  var destinationSide: InferenceSide { after.side }

  /// The entities that have records on both sides, by their numbers in the source; of several for one entity the first is
  /// the one that goes on.
  let routes: [Route]

  /// Whether inferred mappings alone cannot express it, so that it is carried out by `CustomRun`.
  let isCustom: Bool

  /// Lays out both models.
  ///
  /// - Throws: what the layout of a model refuses.
  init(_ mapping: MappingModel, layouts: LayoutCache = LayoutCache()) throws(MigrationError) {
    self.mapping = mapping
    before = try layouts.entry(for: mapping.source)
    after = try layouts.entry(for: mapping.destination)
    let (source, destination) = (before.layout, after.layout)
    var routes: [Route] = []
    for entity in mapping.entityMappings {
      guard let from = entity.sourceEntityName, let to = entity.destinationEntityName,
        let old = source.entity(named: from), let new = destination.entity(named: to)
      else { continue }
      routes.append(Route(mapping: entity, source: old, destination: new))
    }
    isCustom = mapping.isCustom
    self.routes = routes.enumerated().ordered { first, second in
      let (one, other) = (first.element, second.element)
      if one.source.number != other.source.number { return one.source.number < other.source.number }
      let (goesOn, otherGoesOn) = (one.goesOn(in: mapping), other.goesOn(in: mapping))
      return goesOn != otherGoesOn ? goesOn : first.offset < second.offset
    }.map(\.element)
  }

  /// The schema of a new store of the source's model.
  func sourceSchema() throws -> SQLSchema { try before.newSchema() }

  /// The schema of a new store of the destination's model.
  func destinationSchema() throws -> SQLSchema { try after.newSchema() }

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
