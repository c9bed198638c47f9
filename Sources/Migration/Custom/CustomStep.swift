internal import ManagedObjectModel
internal import PersistentStore
import Platform

/// A checked custom step, its expressions compiled and its policies found.
struct CustomStep {
  let layout: StepLayout

  private(set) var routes: [CustomRoute]

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
    self.routes = routes
  }

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
  /// The attribute or composite leaf.
  var path: PropertyPath? {
    switch role {
    case .attribute(let key, _): PropertyPath(key.name)
    case .compositeLeaf(let key, let path, _): PropertyPath(key.name, leaf: path)
    case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: nil
    }
  }

  var attributeType: AttributeType? {
    switch role {
    case .attribute(_, let type), .compositeLeaf(_, _, let type): type
    case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: nil
    }
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

  let sourceProperties: Set<String>

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
