internal import GRDB
import ManagedObjectModel
import PersistentStore
public import Platform
public import SystemPackage

extension Migrator {
  /// Plans a migration and its losses without changing the store.
  ///
  /// A store without a WAL is read in place under a shared lock; with a WAL or journal it is first copied to the
  /// temporary folder, because SQLite would write next to it.
  ///
  /// - Throws: `MigrationError` for a store that is missing, not Core Data's, or of an unknown or newer version.
  ///   Refused inference is part of the plan, not an error.
  /// - Parameter tryingSteps: Whether to run steps in a private temporary folder to count the results of custom
  ///   mappings and earlier steps. It takes as long as the migration and runs no app code. Otherwise such counts stay
  ///   unknown.
  public func plan(
    _ path: FilePath, options: Options = Options(), tryingSteps: Bool = true
  ) throws(MigrationError) -> MigrationPlan {
    do {
      let original = try StoreFileSet.locate(path, in: fileSystem)
      let members = try original.members(in: fileSystem)
      guard members.contains(where: { $0.part == .main }) else {
        throw FileError(.notFound, operation: "plan the migration", path: path)
      }
      let place = try options.output.map { try StoreFileSet.locate($0, in: fileSystem) } ?? original
      let folder = WorkingFolder(for: place, in: fileSystem)
      let files = members.filter { [.main, .wal, .journal].contains($0.part) }
      let bytes = files.reduce(Int64(0)) { $0 + $1.status.size }
      let occupied = files.reduce(Int64(0)) { $0 + $1.status.occupiedSize }
      let view = StoreView(original: original, surroundings: surroundings)
      var plan = try self.plan(of: view, options)
      plan.store = PathText(path)
      plan.bytes = bytes
      plan.neededBytes = Self.neededSpace(
        plan.steps, occupied, isRepaired: plan.repair != nil,
        isCopied: plan.repair != nil || members.contains { $0.part != .main && $0.status.size > 0 })
      plan.freeBytes = try fileSystem.freeSpace(at: folder.path.folder)
      if needsTrial(plan) {
        if tryingSteps { try carryOutInPrivate(original, &plan, options) } else { leaveOpen(&plan) }
      }
      plan.isInterrupted = try fileSystem.status(of: folder.journalPath, followingLinks: false) != nil
      return plan
    } catch { throw MigrationError(any: error, path: path).told(at: path) }
  }

  /// Plans a store; an incomplete one is repaired on a private copy first, as in a migration.
  private func plan(of view: StoreView, _ options: Options) throws -> MigrationPlan {
    let (plan, step) = try view.read { database -> (MigrationPlan?, RepairStep?) in
      let facts = try StoreFacts(database)
      guard let step = try repairStep(facts, database, options).step, try possiblePath(from: facts, options) != nil
      else { return (try self.plan(of: database, options), nil) }
      return (nil, step)
    }
    if let plan { return plan }
    return try view.onCopy { file in
      let account = try step?.run(on: file, aside: file.sibling(suffix: "-set-aside")).account
      var plan = try StepConnection.read(file) { try self.plan(of: $0, options) }
      plan.repair = account
      return plan
    }
  }

  /// The path; nil without one, as the plan reports.
  private func possiblePath(from facts: StoreFacts, _ options: Options) throws -> MigrationPath? {
    do {
      return try way(from: facts, options)
    } catch let error as MigrationError where error.kind == .notInferable || error.kind == .wouldLose {
      return nil
    }
  }

  /// The free space needed by the previous and current step's files.
  ///
  /// A store without a WAL is read in place.
  private static func neededSpace(
    _ steps: [MigrationPlan.Step], _ bytes: Int64, isRepaired: Bool, isCopied: Bool
  ) -> Int64 {
    guard !steps.isEmpty || isRepaired else { return 0 }
    let before = isCopied || steps.count > 1 ? bytes : 0
    let way = steps.contains { $0.way == .rebuild } ? MigrationWay.rebuild : .inPlace
    return before + way.neededSpace(forStoreOf: bytes)
  }

  private func plan(of database: Database, _ options: Options) throws -> MigrationPlan {
    let facts = try StoreFacts(database)
    var plan = MigrationPlan(
      store: PathText(""), from: version(of: facts)?.name, to: options.version ?? bundle.current.name)
    let path: MigrationPath
    do {
      path = try way(from: facts, options)
    } catch let error as MigrationError where error.kind == .notInferable || error.kind == .wouldLose {
      plan.refusals = error.refusals.map(MigrationPlan.Refusal.init)
      return plan
    }
    plan.unusedMappings = path.unused.map(\.text)
    plan.detours = path.detours.map(MigrationPlan.Detour.init)
    plan.carriedRenames = path.steps.flatMap { step in step.mapping.carriedRenames.map { "\(step.name): \($0.text)" } }
    if options.whenMigrationLoses == .refuse {
      plan.refusals = try path.refusals(for: ContestedEntity.all(on: path), database).map(MigrationPlan.Refusal.init)
    }
    guard let first = path.steps.first else { return plan }
    // Report missing parts of the store now, in the later step's words.
    let layouts = LayoutCache()
    let layout = try StepLayout(first.mapping, layouts: layouts)
    let contents = try SourceContents(database, layout)
    var known: SourceContents? = contents
    plan.rows = contents.rows.values.reduce(0) { $0 + $1.values.reduce(0, +) }
    let census = StoreCensus(layout: layout.source, side: layout.sourceSide)
    var earlier: [MappingModel] = []
    for step in path.steps {
      let layout = try StepLayout(step.mapping, layouts: layouts)
      let refusal = try layout.mirroringRefusal(database) ?? foreignTable(layout, contents, isFirst: earlier.isEmpty)
      if let refusal { plan.refusals.append(.init(refusal.ofStep(step.name))) }
      let forecast = StepForecast(step.mapping, after: earlier, census: census)
      var planned = try self.step(step, layout, forecast, known, database)
      planned.code = code(of: step, options)
      if earlier.isEmpty { planned.failures += try layout.sharedKeys(database) }
      plan.steps.append(planned)
      earlier.append(step.mapping)
      // The app's additions are known only for the present store.
      known = nil
    }
    return plan
  }

  /// The first table a step can't carry over; the app's and framework's additions exist at every step.
  private func foreignTable(_ layout: StepLayout, _ contents: SourceContents, isFirst: Bool) -> MigrationRefusal? {
    guard StepDecision(layout, contents: isFirst ? contents : nil).way == .rebuild else { return nil }
    return StoreRebuild.foreignTables(contents, layout.source).lazy
      .compactMap { StoreRebuild.refusal($0, layout) }.first
  }

  private func step(
    _ step: MigrationStep, _ layout: StepLayout, _ forecast: StepForecast, _ contents: SourceContents?,
    _ database: Database
  ) throws -> MigrationPlan.Step {
    let decision = StepDecision(layout, contents: contents)
    let leftOut = try CustomFilters.leftOut(
      contents == nil ? nil : database, layout, referenceDate: surroundings.now().secondsSinceReferenceDate)
    return MigrationPlan.Step(
      source: step.sourceName, destination: step.destinationName, mapping: .init(step.mapping),
      alternatives: step.alternatives.map(MigrationPlan.Mapping.init), way: decision.way, reason: decision.reason,
      entities: try step.mapping.entityMappings.map { mapping in
        MigrationPlan.EntityPlan(
          source: mapping.sourceEntityName, destination: mapping.destinationEntityName,
          way: decision.way(of: mapping, layout),
          rows: try mapping.sourceEntityName.map { try forecast.rows(of: $0, database) } ?? 0,
          policy: mapping.policyClassName)
      },
      losses: try forecast.losses(database) + leftOut
        + (decision.way == .rebuild ? contents?.unexpectedColumnLosses(database, layout) ?? [] : []),
      failures: try forecast.failures(database), uncertain: try forecast.uncertain(database))
  }

  private func code(of step: MigrationStep, _ options: Options) -> [String] {
    var result = handlers(.willMigrate, step, options).map { _ in "the app's code before the step" }
    for mapping in step.mapping.entityMappings where mapping.needsPolicy || options.policies.isNamed(mapping) {
      let name = mapping.policyClassName.map { " \(printable($0))" } ?? ""
      result.append("the policy\(name) of \(printable(mapping.name))")
    }
    return result + handlers(.didMigrate, step, options).map { _ in "the app's code after the step" }
  }
}

extension StepForecast {
  func losses(_ database: Database) throws -> [MigrationPlan.Finding] {
    try mapping.losses.compactMap { loss in
      let count = try count(loss, database)
      guard count?.rows != 0 else { return nil }
      return .init(
        kind: loss.kind.rawValue, entity: loss.sourceEntityName, property: loss.property?.description,
        rows: count?.rows, text: loss.text)
    } + findings(.loses, database)
  }

  func failures(_ database: Database) throws -> [MigrationPlan.Finding] {
    // Unknown counts are no failures yet.
    try findings(.fails, database).filter { $0.rows != nil }
  }

  /// The failures only running the step decides.
  func uncertain(_ database: Database) throws -> [MigrationPlan.Finding] {
    try findings(.fails, database).filter { $0.rows == nil }
  }

  private func findings(_ effect: MigrationCondition.Effect, _ database: Database) throws -> [MigrationPlan.Finding] {
    try mapping.conditions.filter { $0.effect == effect }.compactMap { condition in
      let count = try count(condition, database)
      guard count?.rows != 0 else { return nil }
      return .init(
        kind: condition.kind.rawValue, entity: condition.destinationEntityName,
        property: condition.destinationProperty?.description ?? condition.propertyNames.first, rows: count?.rows,
        examples: count?.examples ?? [], text: condition.text)
    }
  }
}

/// Trial runs for facts counting can't show: expression values and records made by earlier steps.
extension Migrator {
  /// Whether counting in the present store is not enough.
  ///
  /// App code never runs for a plan.
  func needsTrial(_ plan: MigrationPlan) -> Bool {
    guard plan.refusals.isEmpty, !plan.steps.isEmpty, plan.steps.allSatisfy(\.code.isEmpty) else { return false }
    // A certain failure needs no trial.
    guard (plan.steps.first?.failures ?? []).isEmpty else { return false }
    return plan.steps.contains { step in
      step.mapping.kind != .inferred || !step.uncertain.isEmpty || step.losses.contains { $0.rows == nil }
    }
  }

  /// Runs the steps in a private temporary folder and adds the outcome to the plan.
  ///
  /// The store is only read, and memory is bounded. If files can't be made, the plan stays unchanged and says so.
  func carryOutInPrivate(_ original: StoreFileSet, _ plan: inout MigrationPlan, _ options: Options) throws {
    guard let folder = try privateFolder(&plan) else { return }
    defer { withExtendedLifetime(folder) {} }
    let place = StoreFileSet(main: folder.path.appending("Trial.sqlite"))
    let working = WorkingFolder(for: place, in: fileSystem)
    var options = options
    options.output = place.main
    options.isRecorded = false
    var attempt = 1
    while true {
      try working.make()
      do {
        note(try carryOut(try beginWork(original, working, options), working, options), in: &plan)
        return
      } catch {
        let error = MigrationError(any: error)
        // Restart after a change by another process, as a migration does.
        if error.fileError?.kind == .changed, attempt < Self.attempts {
          try working.remove()
          attempt += 1
          continue
        }
        if error.fileError?.kind == .noSpace { return leaveOpen(&plan, because: error.detail) }
        if error.isEnvironmental || error.kind == .cancelled { throw error }
        if let journal = try working.journal() { note(journal, in: &plan) }
        return note(error, in: &plan)
      }
    }
  }

  /// A temporary folder; nil without room, as the plan reports.
  private func privateFolder(_ plan: inout MigrationPlan) throws(FileError) -> PrivateFolder? {
    do throws(FileError) {
      return try PrivateFolder(
        in: nil, needing: plan.neededBytes + plan.bytes, to: "try the migration", surroundings)
    } catch {
      guard [.noSpace, .notFound, .permissionDenied, .readOnlyFileSystem].contains(error.kind) else { throw error }
      leaveOpen(&plan, because: error.detail)
      return nil
    }
  }

  /// Marks the outcome of mapped steps as unknown; inferred ones state their own unknowns.
  func leaveOpen(_ plan: inout MigrationPlan, because reason: String? = nil) {
    for number in plan.steps.indices where plan.steps[number].mapping.kind != .inferred {
      plan.steps[number].uncertain.append(
        MigrationPlan.Finding(
          kind: MigrationPlan.Finding.notTried, entity: "",
          text: "what its mapping makes of the records was not tried" + (reason.map { ": \($0)" } ?? "")))
    }
  }

  private func note(_ journal: MigrationJournal, in plan: inout MigrationPlan) {
    let steps = journal.steps.filter { $0.isRepair != true }
    guard steps.count == plan.steps.count else { return }
    for (number, step) in steps.enumerated() {
      guard let account = step.account else { break }
      var planned = plan.steps[number]
      planned.losses = account.losses
      planned.failures = []
      planned.uncertain = []
      planned.leftBehind = account.leftBehind
      for place in planned.entities.indices {
        planned.entities[place].rows = Self.rows(of: planned.entities[place], account)
      }
      plan.steps[number] = planned
    }
  }

  private static func rows(of entity: MigrationPlan.EntityPlan, _ account: StepAccount) -> Int? {
    guard let destination = entity.destination else {
      return entity.source.flatMap { account.removedRows[$0] } ?? entity.rows
    }
    let made = account.entities.filter { $0.entity == destination && $0.source == entity.source }
    return made.isEmpty ? entity.rows : made.reduce(0) { $0 + $1.rows }
  }

  /// Adds a failed step to the plan; later outcomes are unknown.
  private func note(_ error: MigrationError, in plan: inout MigrationPlan) {
    guard error.refusals.isEmpty else {
      plan.refusals = error.refusals.map(MigrationPlan.Refusal.init)
      return
    }
    guard let number = plan.steps.firstIndex(where: { $0.name == error.step }) ?? plan.steps.indices.first else {
      return
    }
    let prefix = "step \(printable(plan.steps[number].name)): "
    let detail = error.detail.hasPrefix(prefix) ? String(error.detail.dropFirst(prefix.count)) : error.detail
    plan.steps[number].uncertain = []
    plan.steps[number].failures = [
      MigrationPlan.Finding(
        kind: error.code, entity: error.entityName ?? "", property: error.propertyName, text: detail)
    ]
  }
}
