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

  init(_ finder: PathFinder, from start: PathFinder.Place, through between: [ModelVersion], to target: ModelVersion) {
    self.finder = finder
    self.start = start
    self.between = between
    self.target = target
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
      if best.map({ way.losses < $0.losses }) ?? true { best = way }
      if way.losses == 0 { return way }
    }
    let longer = longest()
    return longer.map { way in best.map { $0.losses <= way.losses } ?? false ? best : way } ?? best
  }

  /// More versions than this are not tried in all combinations, but one after the other.
  private static let limit = 24

  /// The best way of any number of stops: for each version the best one that leads there, oldest first.
  private func longest() -> Way? {
    var reached: [(place: PathFinder.Place, way: Way)] = [(start, Way(steps: [], losses: 0))]
    for version in between + [target] {
      var found: Way?
      for (place, way) in reached.suffix(Self.limit).reversed() {
        let next = finder.inference(place, version)
        guard next.refusals.isEmpty else { continue }
        let longer = Way(way.steps + [next.step])
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

  /// What the steps lose of what the store has: not what came up on the way.
  static func losses(of steps: [MigrationStep]) -> [MigrationLoss] {
    var result: [MigrationLoss] = []
    for (number, step) in steps.enumerated() {
      let trace = PropertyTrace(earlier: steps[..<number].map(\.mapping))
      result += step.mapping.losses.withoutInherited().filter { loss in
        let (records, values) = trace.trace(loss.sourceEntityName, loss.property)
        return records != .none && (loss.property == nil || values != .none)
      }
    }
    return result
  }
}
