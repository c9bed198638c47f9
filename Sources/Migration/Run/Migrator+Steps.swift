import PersistentStore
internal import Platform
internal import SystemPackage

extension Migrator {
  /// Runs the steps, each from the previous file.
  ///
  /// Consecutive steps that only add and rename share a copy, because copying is most of their cost. An interrupted
  /// step restarts from the last finished file, so that a resumed migration gives the same bytes.
  func carryOut(_ work: Work, _ folder: WorkingFolder, _ options: Options) throws -> MigrationJournal {
    var run = StepRun(journal: work.journal, source: work.source, folder: folder, options: options)
    if let repair = work.repair {
      do {
        try carryOut(repair, &run)
        // All tables with possible losses exist now.
        try refuseLosses(work.path, run.source.path, options)
      } catch { throw told(error, run) }
    }
    var remaining = work.path.steps[...]
    while let step = remaining.first {
      do {
        let done = try next(remaining, &run)
        remaining = remaining.dropFirst(done)
      } catch { throw told(error, run).told(step: step.name) }
    }
    return run.journal
  }

  /// Removes the unfinished file and adds the needed bytes to a disk-full error.
  private func told(_ error: any Error, _ run: StepRun) -> MigrationError {
    // Ask while the disk is still full.
    var told = MigrationError(any: error).recognizingFullDisk { try? fileSystem.freeSpace(at: run.folder.path) }
    // A partial file takes space; report the first error only.
    try? run.folder.removeUnfinished(run.number)
    // A failing size check would hide the original error.
    guard told.lacksNeededBytes else { return told }
    let needed = wholeSpace(run)
    told.detail += "; the migration needs up to \(needed) bytes beside the store"
    told.neededBytes = needed
    return told
  }

  struct StepRun {
    var journal: MigrationJournal
    var source: StepSource
    let folder: WorkingFolder
    let options: Options

    let layouts = LayoutCache()

    var made: MadeValues { journal.made ?? MadeValues() }

    var number: Int { journal.finished + 1 }
  }

  /// Runs the first step and later ones that can share its copy.
  ///
  /// - Returns: How many.
  private func next(_ steps: ArraySlice<MigrationStep>, _ run: inout StepRun) throws -> Int {
    guard let step = steps.first else { return 0 }
    try announce(step.name, run.number, run)
    MigrationTrace.current?.begin(step, number: run.number)
    try run.folder.removeUnfinished(run.number)
    let attempt = try noteAttempt(run.number, step, &run.journal, run.folder, run.options)
    let members = run.journal.members
    let (source, current) = (run.source, run)
    var accounts = try reading(source, members) { try inPlace(steps, current) }
    if accounts.isEmpty { accounts = [try reading(source, members) { try rebuild(step, current, attempt: attempt) }] }
    try record(accounts, of: steps, &run)
    return accounts.count
  }

  func announce(_ step: String, _ number: Int, _ run: StepRun) throws {
    guard run.options.progress(step, number, run.journal.steps.count) else {
      throw MigrationError(.cancelled, detail: "it was cancelled before step \(printable(step))")
    }
  }

  /// Names the file after its last step and records the steps as done.
  func record(_ accounts: [StepAccount], of steps: ArraySlice<MigrationStep>, _ run: inout StepRun) throws {
    let (first, last) = (run.number, run.number + accounts.count - 1)
    let folder = run.folder
    try installStep(first, as: last, folder)
    let status = try fileSystem.status(of: folder.step(last), followingLinks: false)
    guard let status else { throw MigrationError(FileError(.notFound, operation: "migrate the store", path: nil)) }
    for (index, account) in accounts.enumerated() {
      run.journal.steps[first - 1 + index].account = account
      run.journal.steps[first - 1 + index].file = MigrationJournal.FileStamp(status)
    }
    run.journal.made = run.made.following(steps.prefix(accounts.count))
    try folder.write(run.journal)
    for (index, pair) in zip(steps, accounts).enumerated() {
      MigrationTrace.current?.noteEnd(ofStep: pair.0.name, number: first + index, pair.1)
    }
    try folder.removeUnfinished(first)
    if run.source.original == nil {
      let old = run.source.path
      try fileSystem.unlink(old)
    }
    run.source = StepSource(path: folder.step(last))
  }

  // MARK: In place

  /// Runs steps that only add and rename, on one copy.
  ///
  /// Checks the source's pages meanwhile; in the copy only changed tables.
  ///
  /// - Returns: The accounts; empty if the first step needs a rebuild.
  private func inPlace(_ steps: ArraySlice<MigrationStep>, _ run: StepRun) throws -> [StepAccount] {
    let (source, fileSystem) = (run.source.path, fileSystem)
    let start = try steps.first.flatMap { step in
      try part(step, after: [], of: run) { change, layout in
        try StepConnection.read(source) { try SourceContents(for: change, schema: nil, $0, layout) }
      }
    }
    guard let start else { return [] }
    try requireSpace(for: run, .inPlace)
    let layout = start.layout.source
    let (rows, done) = try concurrently {
      try FileIntegrity.countRecords(of: layout, source, in: fileSystem)
    } _: {
      try inPlace(start, steps, run)
    }
    guard let last = done.last else { return [] }
    let entities = last.layout.routes.ordered { $0.destination.number < $1.destination.number }.map { route in
      StepAccount.EntityRows(
        entity: route.destination.name, source: route.source.name, rows: rows[route.destination.number] ?? 0)
    }
    return done.map { step in
      var account = step.account
      account.entities = entities
      return account
    }
  }

  /// A step in place; nil for a rebuild.
  ///
  /// - Parameters:
  ///   - earlier: The steps run on the same copy.
  ///   - contents: Reads the store, if the models allow the step in place.
  private func part(
    _ step: MigrationStep, after earlier: ArraySlice<MigrationStep>, of run: StepRun,
    contents: (InPlaceChange, StepLayout) throws -> SourceContents
  ) throws -> InPlaceStep? {
    // App code gets a file of its own.
    guard !run.options.alwaysRebuilds, !step.mapping.isCustom, !hasCode(step, run.options) else { return nil }
    do {
      var rebuild = try StoreRebuild(
        step.mapping, name: step.name, referenceDate: run.journal.referenceDate, layouts: run.layouts)
      rebuild.made = run.made.following(earlier)
      rebuild.isLast = run.number + earlier.count == run.journal.steps.count
      guard let change = StepDecision(rebuild.layout).change else { return nil }
      let contents = try contents(change, rebuild.layout)
      guard change.obstacle(in: contents, rebuild.layout) == nil else { return nil }
      return InPlaceStep(change: change, contents: contents, rebuild: rebuild)
    } catch { throw MigrationError(any: error).told(step: step.name) }
  }

  private func inPlace(
    _ first: InPlaceStep, _ steps: ArraySlice<MigrationStep>, _ run: StepRun
  ) throws -> [(account: StepAccount, layout: StepLayout)] {
    let (source, target) = (run.source.path, run.folder.unfinished(run.number))
    try fileSystem.duplicate(source, to: target)
    let copy = try StepConnection(target, .write, referenceDate: run.journal.referenceDate)
    try copy.run { try $0.beginExclusiveLog() }
    var done: [(account: StepAccount, layout: StepLayout)] = []
    var changed: Set<String> = []
    var part: InPlaceStep? = first
    while let next = part, let outcome = try next.run(on: copy) {
      done.append((outcome.account, next.layout))
      changed = next.renamed(changed).union(outcome.changedTables)
      guard let step = steps.dropFirst(done.count).first else { break }
      // The resulting schema is the next step's, so it is read once.
      part = try self.part(step, after: steps.prefix(done.count), of: run) { change, layout in
        try copy.read { try SourceContents(for: change, schema: outcome.schema, $0, layout) }
      }
      guard part != nil else { break }
      try announce(step.name, run.number + done.count, run)
      MigrationTrace.current?.begin(step, number: run.number + done.count)
    }
    try copy.close()
    guard !done.isEmpty else {
      let (folder, number) = (run.folder, run.number)
      try folder.removeUnfinished(number)
      return []
    }
    try verify(target, changed)
    return done
  }

  private func verify(_ target: FilePath, _ changed: Set<String>) throws {
    let fileSystem = fileSystem
    _ = try concurrently {
      try fileSystem.synchronizeFile(target)
    } _: {
      try StepConnection.read(target) { database in
        for table in changed.sorted() { try StepVerification.checkIntegrity(of: table, database) }
      }
    }
  }

  // MARK: Rebuild

  private func rebuild(_ step: MigrationStep, _ run: StepRun, attempt: Int) throws -> StepAccount {
    let target = run.folder.unfinished(run.number)
    try requireSpace(for: run, .rebuild)
    let date = run.journal.referenceDate
    let source = try sourceFile(
      from: run.source.path, run.number, step, run.folder, run.options, attempt: attempt, referenceDate: date)
    var rebuild = try StoreRebuild(
      step.mapping, name: step.name, referenceDate: date, policies: run.options.policies, attempt: attempt,
      userInfo: run.options.userInfo, layouts: run.layouts)
    rebuild.made = run.made
    rebuild.isLast = run.number == run.journal.steps.count
    let built = try rebuild.run(from: source, to: target)
    let before = built.before
    var account = built.account
    try runDidMigrate(step, rebuild, target, run.options, &account)
    let made = account
    let fileSystem = fileSystem
    let layout = rebuild.layout
    // Two cores check during disk writes.
    _ = try concurrently {
      try fileSystem.synchronizeFile(target)
    } _: {
      try concurrently {
        try StepVerification(layout: layout).check(target, against: source, before: before, made)
      } _: {
        try FileIntegrity.check(target, in: fileSystem, orThrow: .verificationFailed)
      }
    }
    return account
  }

  // MARK: Space

  /// Stops before a step without disk space.
  func requireSpace(for run: StepRun, _ way: MigrationWay) throws {
    let (source, folder) = (run.source.path, run.folder.path)
    let whole = wholeSpace(run)
    let size = try fileSystem.status(of: source)?.occupiedSize ?? 0
    try requireSpace(way.neededSpace(forStoreOf: size), of: whole, at: folder)
  }

  /// The peak: a step's file, sort files, and a second file if steps follow the first.
  private func wholeSpace(_ run: StepRun) -> Int64 {
    let size = (try? fileSystem.status(of: run.source.path)?.occupiedSize) ?? 0
    let isFirstOfSeveral = run.source.original != nil && run.journal.steps.count - run.journal.finished > 1
    return MigrationWay.rebuild.neededSpace(forStoreOf: size) + (isFirstOfSeveral ? size : 0)
  }
}

extension MigrationWay {
  /// Returns the free space that a step needs.
  ///
  /// A copy is as large as its source. A rebuild may be too; its sort files were measured below a quarter of the store.
  func neededSpace(forStoreOf bytes: Int64) -> Int64 { self == .inPlace ? bytes : bytes + bytes / 4 }
}

/// The attributes filled by the migration; dropping them is no loss.
struct MadeValues: Codable, Sendable, Hashable {
  /// `Entity.attribute` of the last version reached, sorted.
  private(set) var names: [String] = []

  private static func name(_ entity: String, _ path: PropertyPath) -> String { "\(entity).\(path)" }

  mutating func add(_ entity: String, _ path: PropertyPath) {
    names = Set(names).union([Self.name(entity, path)]).sorted()
  }

  func contains(_ entity: String, _ path: PropertyPath) -> Bool { names.contains(Self.name(entity, path)) }

  func following(_ steps: some Sequence<MigrationStep>) -> MadeValues {
    var result = self
    for step in steps { result.follow(step.mapping) }
    return result
  }

  mutating func follow(_ mapping: MappingModel) {
    let before = Set(names)
    var after: Set<String> = []
    var taken: Set<String> = []
    for entity in mapping.entityMappings {
      guard let source = entity.sourceEntityName, let destination = entity.destinationEntityName else { continue }
      for property in entity.propertyMappings {
        let isKept = property.source.map { before.contains(Self.name(source, $0)) } ?? false
        let name = Self.name(destination, property.destination)
        if isKept || property.value == .defaultValue { after.insert(name) } else { taken.insert(name) }
      }
    }
    names = after.subtracting(taken).sorted()
  }
}

/// The method of a step: in place for additions and renames, else a rebuild.
struct StepDecision: Sendable {
  var way: MigrationWay { change == nil ? .rebuild : .inPlace }

  /// Nil for a rebuild.
  let change: InPlaceChange?

  let reason: String?

  /// Decides by the models and, if known, the contents.
  ///
  /// App changes to Core Data's tables, and defaults for many records, may need a rebuild.
  init(_ layout: StepLayout, contents: SourceContents? = nil) {
    do throws(InPlaceObstacle) {
      if layout.isCustom { throw InPlaceObstacle("the mapping is a custom one") }
      let change = try InPlaceChange(layout)
      if let contents, let obstacle = change.obstacle(in: contents, layout) { throw obstacle }
      self.change = change
      reason = nil
    } catch {
      change = nil
      reason = printable(error.detail)
    }
  }

  func way(of mapping: EntityMapping, _ layout: StepLayout) -> EntityWay {
    guard let source = mapping.sourceEntityName else { return .added }
    guard let destination = mapping.destinationEntityName else { return .removed }
    guard mapping.kind == .copy || mapping.kind == .transform else { return .custom }
    let isSameNumber =
      layout.source.entity(named: source)?.number == layout.destination.entity(named: destination)?.number
    let isWhole = !layout.mapping.losses.contains { $0.sourceEntityName == source }
    if mapping.isIdentity, isSameNumber, isWhole { return .unchanged }
    guard change != nil else { return .rebuilt }
    return mapping.propertyMappings.allSatisfy {
      $0.source != nil && !$0.replacesNilWithDefault || $0.value == .recompute
    } ? .renamed : .inPlace
  }
}
