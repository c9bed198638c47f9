internal import ManagedObjectModel
internal import Platform

struct PathFinder {
  /// A stop of a path.
  struct Place {
    /// Nil outside the bundle.
    let name: String?

    let model: ManagedObjectModel
    let hashes: [String: VersionHash]

    /// The store's own model, if different.
    var carried: ManagedObjectModel?

    init(_ version: ModelVersion, carried: ManagedObjectModel? = nil) {
      name = version.name
      model = version.model
      hashes = version.versionHashes
      self.carried = carried == version.model ? nil : carried
    }

    init(_ model: ManagedObjectModel, _ hashes: [String: VersionHash]) {
      name = nil
      self.model = model
      self.hashes = hashes
    }
  }

  let bundle: ModelBundle
  let options: MigrationPath.Options

  private var mayWalk = true

  private(set) var detours: [MigrationPath.Detour] = []

  init(bundle: ModelBundle, options: MigrationPath.Options) {
    self.bundle = bundle
    self.options = options
  }

  func version(_ name: String) throws -> ModelVersion {
    guard let version = bundle.version(named: name) else {
      throw MigrationError(
        .unknownVersion, operation: "plan the migration", path: bundle.path,
        detail: "the model has no version \"\(printable(name))\"; it has "
          + "\(bundle.versions.map { printable($0.name) }.joined(separator: ", "))")
    }
    return version
  }

  func start(_ source: MigrationPath.Source) throws -> Place {
    switch source {
    case .version(let name): return Place(try version(name))
    case .stored(let name, let model): return Place(try version(name), carried: model)
    case .model(let model):
      let hashes = model.versionHashes()
      guard let known = bundle.version(matching: hashes, identifiers: model.versionIdentifiers, cached: model)
      else { return Place(model, hashes) }
      return Place(known, carried: model)
    }
  }

  func refuseNewer(_ version: ModelVersion) throws {
    guard bundle.isNewer(version, than: bundle.current) else { return }
    let isKnown = bundle.order.relation(version.name, to: bundle.current.name) == .after
    let surplus = version.model.surplus(over: [bundle.current.model]).prefix(5).map(printable).joined(separator: ", ")
    if bundle.isUnlisted(version) {
      throw MigrationError(
        .newerModel, operation: "plan the migration", path: bundle.path,
        detail: "the store is of version \"\(printable(version.name))\", which is not among the versions whose order "
          + "was given, and has what \"\(printable(bundle.current.name))\" lacks: \(surplus)",
        hint: "Name that version where it belongs in the order; the store is left as it is.")
    }
    throw MigrationError(
      isKnown ? .backwards : .newerModel, operation: "plan the migration", path: bundle.path,
      detail: """
        the store is of version "\(printable(version.name))", which is newer than "\(printable(bundle.current.name))"\
        \(surplus.isEmpty ? "" : " and has what that lacks: \(surplus)")
        """)
  }

  // MARK: Path

  mutating func steps(from start: Place, to target: ModelVersion) throws -> [MigrationStep] {
    let stops = try options.via.map { name in try version(name) }
    guard start.hashes != target.versionHashes else { return [] }
    var steps: [MigrationStep] = []
    var place = start
    for stop in stops {
      // Don't go back unless the path does.
      if let here = place.name, bundle.order.comes(here, after: stop.name),
        !bundle.order.comes(here, after: target.name)
      {
        continue
      }
      steps += try part(from: place, to: stop)
      if place.hashes != stop.versionHashes { place = Place(stop) }
    }
    return steps + (try part(from: place, to: target))
  }

  private mutating func part(from start: Place, to target: ModelVersion) throws -> [MigrationStep] {
    // Hashes alone identify versions.
    guard start.hashes != target.versionHashes else { return [] }
    if options.isDirect {
      if let custom = custom(from: start.hashes, to: target) { return [step(from: start.name, to: target, custom)] }
      let direct = settled(start, target)
      try refuse(direct.refusals)
      return [direct.step]
    }
    guard start.name != nil else { return try unknown(start, target) }
    var steps: [MigrationStep] = []
    var place = start
    // Names and mappings may contradict each other; visit no version twice.
    var seen = [start.hashes]
    while place.hashes != target.versionHashes {
      let between = versions(from: place, to: target).filter { !seen.contains($0.versionHashes) }
      if let (next, mapping) = customStep(from: place, between, target) {
        steps.append(step(from: place.name, to: next, mapping))
        place = Place(next)
        seen.append(place.hashes)
        continue
      }
      let stop = stageEnd(from: place, between + [target]) ?? nextStop(from: place, between, target)
      steps += try inferred(place, stop)
      place = Place(stop)
      seen.append(place.hashes)
    }
    return steps
  }

  /// The intermediate versions, oldest first, except those equal to the store's.
  private func versions(from place: Place, to target: ModelVersion) -> [ModelVersion] {
    guard let name = place.name else { return [] }
    return bundle.order.names(from: name, to: target.name).compactMap { bundle.version(named: $0) }
      .filter { $0.versionHashes != place.hashes && $0.versionHashes != target.versionHashes }
  }

  // MARK: Mappings and stages

  private func custom(from hashes: [String: VersionHash], to version: ModelVersion) -> MappingModel? {
    options.mappings.first { $0.fits(source: hashes, destination: version.versionHashes) }
  }

  /// The custom mapping from a version: to the next one, else the furthest.
  private func customStep(
    from place: Place, _ between: [ModelVersion], _ target: ModelVersion
  ) -> (ModelVersion, MappingModel)? {
    let all = between + [target]
    for version in all.prefix(1) + all.dropFirst().reversed() {
      if let found = custom(from: place.hashes, to: version) { return (version, found) }
    }
    return nil
  }

  private func stageEnd(from place: Place, _ versions: [ModelVersion]) -> ModelVersion? {
    for stage in options.stages {
      guard let source = stage.source, let destination = stage.destination, isNamed(place, source),
        let found = versions.first(where: { $0.isNamed(destination) })
      else { continue }
      return found
    }
    return nil
  }

  private func isNamed(_ place: Place, _ text: String) -> Bool {
    place.name == text || ManagedObjectModel.versionChecksum(of: place.hashes) == text
  }

  /// The next start or end of a mapping or stage, else the target.
  private func nextStop(from place: Place, _ between: [ModelVersion], _ target: ModelVersion) -> ModelVersion {
    guard !options.mappings.isEmpty || !options.stages.isEmpty else { return target }
    for version in between {
      let later = versions(from: Place(version), to: target)
      if customStep(from: Place(version), later, target) != nil { return version }
      let isStage = options.stages.contains { stage in
        [stage.source, stage.destination].contains { $0.map(version.isNamed) ?? false }
      }
      if isStage { return version }
    }
    return target
  }

  private func step(from source: String?, to destination: ModelVersion, _ custom: MappingModel) -> MigrationStep {
    let others = options.mappings.filter {
      $0 != custom && $0.fits(source: custom.sourceHashes, destination: custom.destinationHashes)
    }
    return MigrationStep(from: source, to: destination.name, mapping: custom, alternatives: others)
  }

  // MARK: Inferred steps

  private var disagreement: NameDisagreement {
    options.matchesNames ? .match : options.acceptsLosses ? .remove : .refuse
  }

  func inference(_ place: Place, _ target: ModelVersion, carried: Bool = false) -> InferredStep {
    // A model outside the bundle may precede any version; equal hashes may hide different renaming identifiers.
    let between = bundle.order.names(from: place.name, to: target.name).compactMap { bundle.version(named: $0)?.model }
    let inference = MappingInference(
      InferenceBuilder(
        from: (carried ? place.carried : nil) ?? place.model, to: target.model, through: between,
        before: bundle.versions(after: target).map(\.model), disagreement: disagreement, carrying: .all,
        hashes: (place.hashes, target.versionHashes)))
    let step = MigrationStep(from: place.name, to: target.name, mapping: inference.mapping)
    return (step, inference.refusals.map { $0.ofStep(step.name) })
  }

  /// A step by the version's renaming identifiers, else by those of the store's model.
  private func settled(_ place: Place, _ target: ModelVersion) -> InferredStep {
    let direct = inference(place, target)
    guard place.carried != nil, direct.refusals.contains(where: \.preventsLoss) else { return direct }
    let carried = inference(place, target, carried: true)
    return carried.refusals.isEmpty ? carried : direct
  }

  /// One step if it can be inferred, else the walk with the least loss.
  private mutating func inferred(_ place: Place, _ target: ModelVersion) throws -> [MigrationStep] {
    let direct = settled(place, target)
    guard !direct.refusals.isEmpty else { return [direct.step] }
    guard mayWalk, let found = bestWay(from: place, to: target, mayLose: direct.step.mapping.losses) else {
      try refuse(direct.refusals)
      return [direct.step]
    }
    // A detour must not lose data to avoid a refusal that prevents loss.
    if direct.refusals.contains(where: \.preventsLoss), found.losses > 0 { try refuse(direct.refusals) }
    detours.append(.init(direct))
    return found.steps
  }

  private mutating func unknown(_ start: Place, _ target: ModelVersion) throws -> [MigrationStep] {
    if let custom = custom(from: start.hashes, to: target) { return [step(from: nil, to: target, custom)] }
    let direct = inference(start, target)
    if direct.refusals.isEmpty { return [direct.step] }
    let earlier = bundle.order.names(from: nil, to: target.name).compactMap { bundle.version(named: $0) }
    mayWalk = false
    defer { mayWalk = true }
    for version in earlier.suffix(Self.walkLimit).reversed() {
      let first: MigrationStep
      if let custom = custom(from: start.hashes, to: version) {
        first = step(from: nil, to: version, custom)
      } else {
        let found = inference(start, version)
        // A detour must not lose data to avoid a refusal.
        guard found.refusals.isEmpty, found.step.mapping.losses.isEmpty else { continue }
        first = found.step
      }
      do {
        let steps = [first] + (try part(from: Place(version), to: target))
        detours.append(.init(direct))
        return steps
      } catch {
        // Try an older version; else report the direct step.
        continue
      }
    }
    try refuse(direct.refusals)
    return [direct.step]
  }

  private func refuse(_ refusals: [MigrationRefusal]) throws {
    if !refusals.isEmpty { throw MigrationError.refused(refusals).told(at: bundle.path) }
  }
}

typealias InferredStep = (step: MigrationStep, refusals: [MigrationRefusal])

extension MigrationPath.Detour {
  init(_ direct: InferredStep) {
    step = direct.step.name
    refusals = direct.refusals
    losses = direct.step.mapping.losses.withoutInherited()
  }
}

/// Paths through intermediate versions.
extension PathFinder {
  struct Way {
    let steps: [MigrationStep]
    let losses: Int
  }

  /// The most versions examined, newest first: each is compared with all others.
  private static let walkLimit = 48

  /// The path with the least loss, the fewest steps, the newest version.
  ///
  /// A lossless one-stop path can't be improved on.
  ///
  /// - Parameter losses: The acceptable losses: all that source and target do not share.
  private func bestWay(from start: Place, to target: ModelVersion, mayLose losses: [MigrationLoss]) -> Way? {
    let between = versions(from: start, to: target).suffix(Self.walkLimit)
    guard !between.isEmpty else { return nil }
    let allowed = Set(losses.map(\.place))
    var best: Way?
    for version in between.reversed() {
      let first = inference(start, version)
      guard first.refusals.isEmpty else { continue }
      let second = inference(Place(version), target)
      guard second.refusals.isEmpty, let way = Self.way([first.step, second.step], allowed) else { continue }
      if best.map({ way.losses < $0.losses }) ?? true { best = way }
      if way.losses == 0 { return way }
    }
    let longer = longestWay(from: start, through: between + [target], allowed)
    return longer.map { way in best.map { $0.losses <= way.losses } ?? false ? best : way } ?? best
  }

  /// The best path to the last version, by the best ones to each before it.
  private func longestWay(from start: Place, through versions: ArraySlice<ModelVersion>, _ allowed: Set<String>) -> Way?
  {
    var reached = [(place: start, way: Way(steps: [], losses: 0))]
    for version in versions {
      var found: Way?
      for (place, way) in reached.reversed() {
        let next = inference(place, version)
        guard next.refusals.isEmpty, let longer = Self.way(way.steps + [next.step], allowed) else { continue }
        if found.map({ (longer.losses, longer.steps.count) < ($0.losses, $0.steps.count) }) ?? true { found = longer }
      }
      guard let found else { continue }
      if version.name == versions.last?.name { return found }
      reached.append((Place(version), found))
    }
    return nil
  }

  /// The path, if it keeps everything source and target share.
  private static func way(_ steps: [MigrationStep], _ allowed: Set<String>) -> Way? {
    let losses = losses(of: steps)
    return losses.allSatisfy(allowed.contains) ? Way(steps: steps, losses: losses.count) : nil
  }

  /// The losses of the store's own data, in its names (`Car`, `Car.color`).
  private static func losses(of steps: [MigrationStep]) -> [String] {
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
