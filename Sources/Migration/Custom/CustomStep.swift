internal import ManagedObjectModel
internal import PersistentStore
import Platform

/// A custom step, checked and ready to be carried out: every expression has been compiled, every policy found.
struct CustomStep {
  let layout: StepLayout

  /// The routes in the order of the entity mappings.
  private(set) var routes: [CustomRoute]

  /// The ranges of primary keys; in each hierarchy of the destination the first begins at the old keys.
  let ranges: [KeyRange]

  /// Checks a step.
  ///
  /// - Throws: `policy-missing` for a policy that is not there, `expression-unsupported` for a function, `mapping-invalid`
  ///   for everything else that is wrong with the mapping, with entity mapping, entity, property and place in the expression.
  init(_ layout: StepLayout, policies: MigrationPolicies) throws(MigrationError) {
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
    self.routes = routes
  }

  /// The route of the entity mapping of that name.
  func route(named name: String) -> CustomRoute? { routes.first { $0.mapping.name == name } }

  // MARK: Primary keys

  private static func assignRanges(_ routes: inout [CustomRoute], _ layout: StepLayout) -> [KeyRange] {
    var primary: Set<String> = []
    for route in layout.routes where route.goesOn(in: layout.mapping) { primary.insert(route.mapping.name) }
    let order = routes.indices.ordered { first, second in
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
}

extension ColumnLayout {
  /// The attribute, or the leaf of a composite one, whose values it holds.
  var path: PropertyPath? {
    switch role {
    case .attribute(let key, _): PropertyPath(key.name)
    case .compositeLeaf(let key, let path, _): PropertyPath(key.name, leaf: path)
    case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: nil
    }
  }

  /// The type of the values of its attribute.
  var attributeType: AttributeType? {
    switch role {
    case .attribute(_, let type), .compositeLeaf(_, _, let type): type
    case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: nil
    }
  }
}

/// One entity mapping of a custom step, with what is known of it before a store is looked at.
struct CustomRoute {
  /// Its place among the step's routes; associations are kept by it.
  let number: Int

  let mapping: EntityMapping

  /// The entity whose records are read; nil for a mapping that only its policy carries out.
  let source: EntityLayout?

  /// The entity whose records are made; nil where a policy decides.
  let destination: EntityLayout?

  /// Makes the policy that carries it out; nil where SQL does.
  let makePolicy: (@Sendable () -> any EntityMigrationPolicy)?

  /// Where its primary keys lie, as a place in `CustomStep.ranges`; nil without a source or a destination.
  var range: Int?

  /// The condition on the row `o`; nil for all records.
  let filter: String?

  /// The columns of attributes with their expressions over the row `o`.
  let columns: [(column: ColumnLayout, sql: String)]

  /// The properties of the source that its expressions read.
  let sourceProperties: Set<String>

  /// Whether SQL alone carries it out, on all records at once.
  var isSetBased: Bool { makePolicy == nil && source != nil && destination != nil }

  /// The condition that chooses the source's records, over the row `o`.
  var condition: String {
    guard let source else { return "0" }
    return "o.Z_ENT = \(source.number)" + (filter.map { " AND \($0)" } ?? "")
  }
}

/// A range of primary keys in a hierarchy of the destination: those of a hierarchy of the source, moved up.
///
/// Where an entity of the source becomes several in one hierarchy, or several hierarchies become one, each has a range of
/// its own, so that keys never collide and the new key is the old one plus a number.
struct KeyRange: Hashable {
  /// The root entity of the destination's hierarchy.
  let destinationRoot: String

  /// The root entity of the source's hierarchy.
  let sourceRoot: String

  /// Which of the routes of one entity into this hierarchy it is for, from 0.
  let turn: Int
}
