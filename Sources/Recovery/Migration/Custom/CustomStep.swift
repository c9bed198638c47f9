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
