internal import StoreFiles
internal import SystemPackage

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
