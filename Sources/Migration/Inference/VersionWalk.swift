internal import ManagedObjectModel

/// The ways through the versions between, where one step cannot be inferred.
struct VersionWalk {
  /// A way, and how many entities and properties of the store it loses.
  struct Way {
    var steps: [MigrationStep]
    var losses: Int
  }

  private let finder: PathFinder
  private let start: PathFinder.Place
  private let between: [ModelVersion]
  private let target: ModelVersion

  /// What the store may lose on the way: what source and target do not share.
  private let allowed: Set<String>

  init(
    _ finder: PathFinder, from start: PathFinder.Place, through between: [ModelVersion], to target: ModelVersion,
    mayLose losses: [MigrationLoss]
  ) {
    self.finder = finder
    self.start = start
    self.between = between.suffix(Self.limit)
    self.target = target
    allowed = Set(losses.map(\.place))
  }

  /// The way that loses least; of several the one of fewest steps, and of those the one by the newest version.
  ///
  /// Ways of one stop are looked at first: where one of them loses nothing, no other can be better.
  func best() -> Way? {
    guard !between.isEmpty else { return nil }
    var best: Way?
    for version in between.reversed() {
      let first = finder.inference(start, version)
      guard first.refusals.isEmpty else { continue }
      let second = finder.inference(PathFinder.Place(version), target)
      guard second.refusals.isEmpty else { continue }
      let way = Way([first.step, second.step])
      guard isAllowed(way) else { continue }
      if best.map({ way.losses < $0.losses }) ?? true { best = way }
      if way.losses == 0 { return way }
    }
    let longer = longest()
    return longer.map { way in best.map { $0.losses <= way.losses } ?? false ? best : way } ?? best
  }

  /// How many versions are looked at, the newest first: each costs a look at all others.
  static let limit = 48

  /// Whether a way loses nothing that source and target share.
  private func isAllowed(_ way: Way) -> Bool {
    way.losses == 0
      || Way.losses(of: way.steps).allSatisfy { allowed.contains($0) }
  }

  /// The best way of any number of stops: for each version the best one that leads there, oldest first.
  private func longest() -> Way? {
    var reached: [(place: PathFinder.Place, way: Way)] = [(start, Way(steps: [], losses: 0))]
    for version in between + [target] {
      var found: Way?
      for (place, way) in reached.reversed() {
        let next = finder.inference(place, version)
        guard next.refusals.isEmpty else { continue }
        let longer = Way(way.steps + [next.step])
        guard isAllowed(longer) else { continue }
        if found.map({ (longer.losses, longer.steps.count) < ($0.losses, $0.steps.count) }) ?? true { found = longer }
      }
      guard let found else { continue }
      if version.name == target.name { return found }
      reached.append((PathFinder.Place(version), found))
    }
    return nil
  }
}

extension VersionWalk.Way {
  init(_ steps: [MigrationStep]) {
    self.steps = steps
    losses = Self.losses(of: steps).count
  }

  /// What the steps lose of what the store has, as the store calls it (`Car`, `Car.color`): not what came up on the way.
  static func losses(of steps: [MigrationStep]) -> [String] {
    var result: [String] = []
    for (number, step) in steps.enumerated() {
      let trace = PropertyTrace(earlier: steps[..<number].map(\.mapping))
      for loss in step.mapping.losses {
        switch trace.trace(loss.sourceEntityName, loss.property) {
        case (.none, _): continue
        case (.entity(let name), .property(let path, _, _)):
          result.append(MigrationLoss(.removedAttribute, source: name, property: path).place)
        case (.entity(let name), .none) where loss.property == nil:
          result.append(MigrationLoss(.removedEntity, source: name).place)
        case (.entity, .none), (.entity, .made): continue
        case (.entity, .unknown), (.unknown, _): result.append(loss.place)
        }
      }
    }
    return result
  }
}
