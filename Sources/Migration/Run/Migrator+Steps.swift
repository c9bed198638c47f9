internal import GRDB
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

extension Migrator {
  /// Carries the steps out, each from the file that the one before it finished.
  ///
  /// Consecutive steps that only add and rename share one copy, because copying is nearly all that they cost. What a kill
  /// interrupts is thrown away and begun again from the last finished file, so that a resumed migration ends in the same
  /// bytes as an undisturbed one.
  func carryOut(_ work: Work, _ folder: WorkingFolder, _ options: Options) throws(MigrationError) -> MigrationJournal {
    var run = StepRun(journal: work.journal, source: work.source, folder: folder, options: options)
    var remaining = work.path.steps[...]
    while let step = remaining.first {
      do throws(MigrationError) {
        let done = try next(remaining, &run)
        remaining = remaining.dropFirst(done)
      } catch {
        throw told(error, run).told(step: step.name)
      }
    }
    return run.journal
  }

  /// A disk that became full on the way is told with the number of bytes that the step needs.
  private func told(_ error: MigrationError, _ run: StepRun) -> MigrationError {
    // An error while looking at the size would hide the one that matters.
    guard error.fileError?.kind == .noSpace, !error.detail.contains("bytes"),
      let size = try? fileSystem.status(of: run.source.path)?.size
    else { return error }
    var error = error
    error.detail += "; the step needs up to \(size + size / 4) bytes beside the store"
    return error
  }

  /// Where a run of steps is.
  struct StepRun {
    var journal: MigrationJournal
    var source: StepSource
    let folder: WorkingFolder
    let options: Options

    /// The number of the next step.
    var number: Int { journal.finished + 1 }
  }

  /// Carries out the first of the steps, and those after it that can share its copy.
  ///
  /// - Returns: how many.
  private func next(_ steps: ArraySlice<MigrationStep>, _ run: inout StepRun) throws(MigrationError) -> Int {
    guard let step = steps.first else { return 0 }
    try announce(step, run.number, run)
    try filing { () throws(FileError) in try run.folder.removeUnfinished(run.number) }
    let members = run.journal.members
    let (source, current) = (run.source, run)
    var accounts = try reading(source, members) { () throws(MigrationError) in
      try inPlace(steps, current)
    }
    if accounts.isEmpty {
      accounts = [
        try reading(source, members) { () throws(MigrationError) in try rebuild(step, current) }
      ]
    }
    try record(accounts, &run)
    return accounts.count
  }

  private func announce(_ step: MigrationStep, _ number: Int, _ run: StepRun) throws(MigrationError) {
    guard run.options.progress(step.name, number, run.journal.steps.count) else {
      throw MigrationError(.cancelled, detail: "it was cancelled before step \(printable(step.name))")
    }
  }

  /// Names the finished file after the last of its steps, and writes down that they are done.
  private func record(_ accounts: [StepAccount], _ run: inout StepRun) throws(MigrationError) {
    let (first, last) = (run.number, run.number + accounts.count - 1)
    let folder = run.folder
    try finish(first, as: last, folder)
    let status = try filing { () throws(FileError) in
      try fileSystem.status(of: folder.step(last), followingLinks: false)
    }
    guard let status else { throw MigrationError(FileError(.notFound, operation: "migrate the store", path: nil)) }
    for (index, account) in accounts.enumerated() {
      run.journal.steps[first - 1 + index].account = account
      run.journal.steps[first - 1 + index].file = MigrationJournal.FileStamp(status)
    }
    try folder.write(run.journal)
    if run.source.original == nil {
      let old = run.source.path
      try filing { () throws(FileError) in try fileSystem.unlink(old) }
    }
    run.source = StepSource(path: folder.step(last))
  }

  // MARK: In place

  /// Carries out as many steps as only add and rename, on one copy.
  ///
  /// - Returns: what they did; empty where the first needs a rebuild.
  private func inPlace(_ steps: ArraySlice<MigrationStep>, _ run: StepRun) throws(MigrationError) -> [StepAccount] {
    let target = run.folder.unfinished(run.number)
    var accounts: [StepAccount] = []
    var last: StepLayout?
    for step in steps {
      let rebuild = try StoreRebuild(step.mapping, name: step.name, referenceDate: run.journal.referenceDate)
      let file = accounts.isEmpty ? run.source.path : target
      let contents = try outline(file, rebuild.layout)
      guard !run.options.alwaysRebuilds, let change = StepDecision(rebuild.layout, contents: contents).change else {
        break
      }
      do throws(MigrationError) {
        if accounts.isEmpty {
          try requireSpace(for: run, .inPlace)
          let source = run.source.path
          try filing { () throws(FileError) in try fileSystem.duplicate(source, to: target) }
        } else {
          try announce(step, run.number + accounts.count, run)
        }
        let account = try InPlaceStep(change: change, contents: contents, rebuild: rebuild).run(on: target)
        guard let account else { break }
        accounts.append(account)
        last = rebuild.layout
      } catch {
        throw error.told(step: step.name)
      }
    }
    guard let last else {
      let (folder, number) = (run.folder, run.number)
      try filing { () throws(FileError) in try folder.removeUnfinished(number) }
      return []
    }
    return try verify(target, accounts, last)
  }

  private func outline(_ file: FilePath, _ layout: StepLayout) throws(MigrationError) -> SourceContents {
    let connection = try StepConnection(file, .immutable)
    let contents = try connection.read { try SourceContents(outlineOf: $0, layout) }
    try connection.close()
    return contents
  }

  /// Pushes the copy to the disk, checks its pages, and counts its records, of which there are as many after each step.
  private func verify(
    _ target: FilePath, _ accounts: [StepAccount], _ layout: StepLayout
  ) throws(MigrationError) -> [StepAccount] {
    let fileSystem = fileSystem
    let (records, _) = try concurrently { () throws(MigrationError) in
      let connection = try StepConnection(target, .immutable)
      let records = try connection.read { try InPlaceCount($0, layout) }
      try connection.close()
      do throws(FileError) { try fileSystem.synchronizeFile(target) } catch { throw MigrationError(error) }
      return records
    } _: { () throws(MigrationError) in
      try FileIntegrity.check(target, in: fileSystem)
    }
    return accounts.map { account in
      var account = account
      account.entities = records.entities
      return account
    }
  }

  // MARK: Anew

  private func rebuild(_ step: MigrationStep, _ run: StepRun) throws(MigrationError) -> StepAccount {
    let (source, target) = (run.source.path, run.folder.unfinished(run.number))
    try requireSpace(for: run, .rebuild)
    let rebuild = try StoreRebuild(step.mapping, name: step.name, referenceDate: run.journal.referenceDate)
    let account = try rebuild.run(from: source, to: target)
    let fileSystem = fileSystem
    let layout = rebuild.layout
    _ = try concurrently { () throws(MigrationError) in
      try StepVerification(layout: layout).check(target, against: source, account)
    } _: { () throws(MigrationError) in
      do throws(FileError) { try fileSystem.synchronizeFile(target) } catch { throw MigrationError(error) }
      try FileIntegrity.check(target, in: fileSystem)
    }
    return account
  }

  // MARK: Space

  /// Stops before a step that the disk has no room for.
  ///
  /// A copy is as large as its source. A rebuild can be, and sorts its indexes in files beside that; a quarter of the store
  /// is more than all indexes of any store that was measured need at once.
  private func requireSpace(for run: StepRun, _ way: MigrationWay) throws(MigrationError) {
    let (source, folder) = (run.source.path, run.folder.path)
    try filing { () throws(FileError) in
      let size = try fileSystem.status(of: source)?.size ?? 0
      try requireSpace(way == .inPlace ? size : size + size / 4, at: folder)
    }
  }
}
