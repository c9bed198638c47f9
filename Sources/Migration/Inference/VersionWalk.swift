internal import ManagedObjectModel

/// Finds paths through intermediate versions.
struct VersionWalk {
  struct Way {
    var steps: [MigrationStep]
    var losses: Int
  }

  private let finder: PathFinder
  private let start: PathFinder.Place
  private let between: [ModelVersion]
  private let target: ModelVersion

  /// The acceptable losses: all that source and target do not share.
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

  /// The path with the least loss, the fewest steps, the newest version.
  ///
  /// A lossless one-stop path can't be improved on.
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

  /// The most versions examined, newest first: each is compared with all others.
  static let limit = 48

  /// Whether a path keeps everything source and target share.
  private func isAllowed(_ way: Way) -> Bool {
    way.losses == 0
      || Way.losses(of: way.steps).allSatisfy { allowed.contains($0) }
  }

  /// The best path to each version, oldest first.
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

  /// The losses of the store's own data, in its names (`Car`, `Car.color`).
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
