internal import GRDB
import ManagedObjectModel
import PersistentStore
public import Platform
public import SystemPackage

extension Migrator {
  /// Says what a migration would do and what it would lose; touches nothing.
  ///
  /// A store without a log is read where it lies, under a reader's lock; one with a log or a journal is copied into the
  /// folder for temporary files first, as SQLite would write beside it.
  ///
  /// - Throws: `MigrationError` where there is nothing to plan for: no store, none of Core Data's, one of an unknown or a
  ///   newer version. What no mapping can be inferred for is no error: the plan says so.
  /// - Parameter tryingSteps: whether steps are carried out in a private folder among the temporary files where counting does
  ///   not tell what they come to: custom mappings, or records that an earlier step makes. That takes as long as the migration,
  ///   and nothing of the app's code is run. Without it, what is not known is left open.
  public func plan(
    _ path: FilePath, options: Options = Options(), tryingSteps: Bool = true
  ) throws(MigrationError) -> MigrationPlan {
    do {
      let original = try StoreFileSet.locate(path, in: fileSystem)
      let members = try original.members(in: fileSystem)
      guard members.contains(where: { $0.part == .main }) else {
        throw FileError(.notFound, operation: "plan the migration", path: path)
      }
      var place = original
      if let output = options.output { place = try StoreFileSet.locate(output, in: fileSystem) }
      let folder = WorkingFolder(for: place, in: fileSystem)
      let files = members.filter { [.main, .wal, .journal].contains($0.part) }
      let bytes = files.reduce(Int64(0)) { $0 + $1.status.size }
      let occupied = files.reduce(Int64(0)) { $0 + $1.status.occupiedSize }
      let view = StoreView(of: original, surroundings: surroundings)
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
    } catch {
      var error = MigrationError(database: error, path: path)
      if error.path == nil { error.path = path }
      throw error
    }
  }

  /// The plan for a store; one that lacks something of its own model is repaired on a private copy first, as its migration
  /// does.
  private func plan(of view: StoreView, _ options: Options) throws -> MigrationPlan {
    let (plan, step) = try view.read { database -> (MigrationPlan?, RepairStep?) in
      let facts = try StoreFacts(database)
      // Where there is no way, nothing is repaired for it.
      guard let step = try repairStep(facts, database, options).step, try possiblePath(from: facts, options) != nil
      else { return (try self.plan(of: database, options), nil) }
      return (nil, step)
    }
    if let plan { return plan }
    return try view.onCopy { file in
      let account = try step?.run(on: file, aside: file.sibling(suffix: "-set-aside")).account
      let connection = try StepConnection(file, .immutable)
      var plan = try connection.read { try self.plan(of: $0, options) }
      try connection.close()
      plan.repair = account
      return plan
    }
  }

  /// The way of a store; nil where there is none, which the plan says.
  private func possiblePath(from facts: StoreFacts, _ options: Options) throws(MigrationError) -> MigrationPath? {
    do throws(MigrationError) {
      return try way(from: facts, options)
    } catch {
      guard error.kind == .notInferable || error.kind == .wouldLose else { throw error }
      return nil
    }
  }

  /// What must be free beside a store: the file of the step before, and that of the step that is being made of it.
  ///
  /// A store without a log is read where it lies. A rebuild sorts its indexes in files beside the new one.
  private static func neededSpace(
    _ steps: [MigrationPlan.Step], _ bytes: Int64, isRepaired: Bool, isCopied: Bool
  ) -> Int64 {
    guard !steps.isEmpty || isRepaired else { return 0 }
    let before = isCopied || steps.count > 1 ? bytes : 0
    return before + bytes + (steps.contains { $0.way == .rebuild } ? bytes / 4 : 0)
  }

  private func plan(of database: Database, _ options: Options) throws -> MigrationPlan {
    let facts = try StoreFacts(database)
    var plan = MigrationPlan(
      store: PathText(""), from: version(of: facts)?.name,
      to: options.version ?? bundle.current.name, steps: [], refusals: [], unusedMappings: [], rows: 0, bytes: 0,
      neededBytes: 0,
      freeBytes: 0, isInterrupted: false)
    let path: MigrationPath
    do throws(MigrationError) {
      path = try way(from: facts, options)
    } catch {
      guard error.kind == .notInferable || error.kind == .wouldLose else { throw error }
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
    // A store that lacks what its model has is told of now, in the words of the step that would meet it.
    let layouts = LayoutCache()
    let layout = try StepLayout(first.mapping, layouts: layouts)
    let contents = try SourceContents(database, layout)
    var known: SourceContents? = contents
    plan.rows = contents.rows.values.reduce(0) { $0 + $1.values.reduce(0, +) }
    let census = StoreCensus(layout: layout.source, side: layout.sourceSide)
    var earlier: [MappingModel] = []
    for step in path.steps {
      let layout = try StepLayout(step.mapping, layouts: layouts)
      if var refusal = try ConditionCount(layout).mirroringRefusal(database) {
        refusal.step = step.name
        plan.refusals.append(.init(refusal))
      } else if let refusal = foreignTable(step, layout, contents, isFirst: earlier.isEmpty) {
        plan.refusals.append(.init(refusal))
      }
      let forecast = StepForecast(step.mapping, after: earlier, census: census)
      var planned = try self.step(step, layout, forecast, known, database)
      planned.code = code(of: step, options)
      if earlier.isEmpty { planned.failures += try ConditionCount(layout).sharedKeys(database) }
      plan.steps.append(planned)
      earlier.append(step.mapping)
      // What the app added to the store is only known of the store as it is.
      known = nil
    }
    return plan
  }

  /// The first table of the store that a step cannot carry over: what the app and the framework added to the store is there
  /// at every step.
  private func foreignTable(
    _ step: MigrationStep, _ layout: StepLayout, _ contents: SourceContents, isFirst: Bool
  ) -> MigrationRefusal? {
    guard StepDecision(layout, contents: isFirst ? contents : nil).way == .rebuild else { return nil }
    guard
      var refusal = StoreRebuild.foreignTables(contents, layout.source).lazy
        .compactMap({ StoreRebuild.refusal($0, layout) }).first
    else { return nil }
    refusal.step = step.name
    return refusal
  }

  private func step(
    _ step: MigrationStep, _ layout: StepLayout, _ forecast: StepForecast, _ contents: SourceContents?,
    _ database: Database
  ) throws -> MigrationPlan.Step {
    let decision = StepDecision(layout, contents: contents)
    let leftOut = try CustomFilters.leftOut(
      contents == nil ? nil : database, layout,
      referenceDate: surroundings.now().secondsSinceReferenceDate)
    return MigrationPlan.Step(
      source: step.sourceName, destination: step.destinationName, mapping: .init(step.mapping),
      alternatives: step.alternatives.map(MigrationPlan.Mapping.init), way: decision.way,
      reason: decision.reason,
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

  /// The code of the app that takes part in a step.
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
  /// What the step would lose, with the records concerned; what none has is left out.
  func losses(_ database: Database) throws -> [MigrationPlan.Finding] {
    var result: [MigrationPlan.Finding] = []
    for loss in mapping.losses {
      let count = try count(loss, database)
      guard count?.rows != 0 else { continue }
      result.append(
        .init(
          kind: loss.kind.rawValue, entity: loss.sourceEntityName, property: loss.property?.description,
          rows: count?.rows, examples: [], text: loss.text))
    }
    return result + (try findings(.loses, database))
  }

  /// What the step would fail on, with the records concerned; what none does is left out.
  func failures(_ database: Database) throws -> [MigrationPlan.Finding] {
    // What only running the steps tells is no failure yet.
    try findings(.fails, database).filter { $0.rows != nil }
  }

  /// What the step may fail on, which only running it tells.
  func uncertain(_ database: Database) throws -> [MigrationPlan.Finding] {
    try findings(.fails, database).filter { $0.rows == nil }
  }

  private func findings(
    _ effect: MigrationCondition.Effect, _ database: Database
  ) throws -> [MigrationPlan.Finding] {
    var result: [MigrationPlan.Finding] = []
    for condition in mapping.conditions where condition.effect == effect {
      let count = try count(condition, database)
      guard count?.rows != 0 else { continue }
      result.append(
        .init(
          kind: condition.kind.rawValue, entity: condition.destinationEntityName,
          property: condition.destinationProperty?.description ?? condition.propertyNames.first, rows: count?.rows,
          examples: count?.examples ?? [], text: condition.text))
    }
    return result
  }
}

/// Finding out what only carrying the steps out tells: the values of expressions, and what an earlier step makes of records.
extension Migrator {
  /// Whether counting in the store as it is does not tell what the steps would come to.
  ///
  /// Code of the app is never run for a plan, so that what it makes stays unknown.
  func needsTrial(_ plan: MigrationPlan) -> Bool {
    guard plan.refusals.isEmpty, !plan.steps.isEmpty, plan.steps.allSatisfy(\.code.isEmpty) else { return false }
    // What fails for certain fails, whatever else is not known.
    let certain = plan.steps.first?.failures ?? []
    guard certain.isEmpty else { return false }
    return plan.steps.contains { step in
      step.mapping.kind != .inferred || !step.uncertain.isEmpty || step.losses.contains { $0.rows == nil }
    }
  }

  /// Carries the steps out in a private folder, by the code of a migration, and puts what came of it into the plan.
  ///
  /// The store is only read. The files of the steps lie among the temporary ones, and go again; memory grows with the records
  /// as little as that of a migration. Where they cannot be made there, the plan stays as it is, and says that it does not know.
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
      try wrapping(MigrationError.init) { () throws(FileError) in try working.make() }
      do throws(MigrationError) {
        note(try carryOut(try prepared(original, working, options), working, options), in: &plan)
        return
      } catch {
        // As a migration begins afresh where another process has written to the store meanwhile.
        if error.fileError?.kind == .changed, attempt < Self.attempts {
          try wrapping(MigrationError.init) { () throws(FileError) in try working.remove() }
          attempt += 1
          continue
        }
        if error.fileError?.kind == .noSpace { return leaveOpen(&plan, because: error.detail) }
        if error.isEnvironmental || error.kind == .cancelled { throw error }
        if let journal = try wrapping(MigrationError.init, { () throws(FileError) in try working.journal() }) {
          note(journal, in: &plan)
        }
        return note(error, in: &plan)
      }
    }
  }

  /// A folder among the temporary files; nil where there is no room or none can be made, which the plan then says.
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

  /// Says of each step by a mapping that what it comes to is not known; of inferred ones the plan says what is not.
  func leaveOpen(_ plan: inout MigrationPlan, because reason: String? = nil) {
    for number in plan.steps.indices where plan.steps[number].mapping.kind != .inferred {
      plan.steps[number].uncertain.append(
        MigrationPlan.Finding(
          kind: MigrationPlan.Finding.notTried, entity: "", property: nil, rows: nil, examples: [],
          text: "what its mapping makes of the records was not tried" + (reason.map { ": \($0)" } ?? "")))
    }
  }

  /// Puts what finished steps have done into the plan.
  private func note(_ journal: MigrationJournal, in plan: inout MigrationPlan) {
    let steps = journal.steps.filter { $0.isRepair != true }
    guard steps.count == plan.steps.count else { return }
    for (number, step) in steps.enumerated() {
      guard let account = step.account else { break }
      plan.steps[number].losses = account.losses
      plan.steps[number].failures = []
      plan.steps[number].uncertain = []
      plan.steps[number].leftBehind = account.leftBehind
      for place in plan.steps[number].entities.indices {
        plan.steps[number].entities[place].rows = Self.rows(of: plan.steps[number].entities[place], account)
      }
    }
  }

  /// How many records a step has made of an entity, or has removed.
  private static func rows(of entity: MigrationPlan.EntityPlan, _ account: StepAccount) -> Int? {
    guard let destination = entity.destination else {
      let removed = entity.source.flatMap { account.removedRows[$0] }
      return removed ?? entity.rows
    }
    var rows: Int?
    for made in account.entities where made.entity == destination && made.source == entity.source {
      rows = (rows ?? 0) + made.rows
    }
    return rows ?? entity.rows
  }

  /// Puts the step that failed into the plan; what would have come after it is not known.
  private func note(_ error: MigrationError, in plan: inout MigrationPlan) {
    guard error.refusals.isEmpty else {
      plan.refusals = error.refusals.map(MigrationPlan.Refusal.init)
      return
    }
    guard let number = plan.steps.firstIndex(where: { $0.name == error.step }) ?? plan.steps.indices.first else {
      return
    }
    // The finding is the step's, which it need not name once more.
    let prefix = "step \(printable(plan.steps[number].name)): "
    let detail = error.detail.hasPrefix(prefix) ? String(error.detail.dropFirst(prefix.count)) : error.detail
    plan.steps[number].uncertain = []
    plan.steps[number].failures = [
      MigrationPlan.Finding(
        kind: error.code, entity: error.entityName ?? "", property: error.propertyName, rows: nil,
        examples: [], text: detail)
    ]
  }
}
