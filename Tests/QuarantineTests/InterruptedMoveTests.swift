import Lazaret
import Platform
import SystemPackage
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Kills and failures at every write of a quarantine, a release and a removal.
struct InterruptedMoveTests {
  typealias Base = QuarantineFolderTests

  /// Runs a job with trouble at each of its steps, and checks what is left after each.
  ///
  /// - Parameters:
  ///   - prepare: makes the folder's state before the job.
  ///   - job: what is interrupted.
  ///   - check: called after the trouble, before and after the next run has finished what it found.
  private func atEveryStep(
    _ kinds: [Trouble.Kind], prepare: (Base) throws -> Void, job: (Base, Surroundings) throws -> Void,
    check: (Base, _ step: Int) throws -> Void
  ) throws {
    let rehearsal = Trouble(.death, atStep: 0)
    let base = try Base()
    try prepare(base)
    try job(base, .still(fileSystem: rehearsal.fileSystem))
    #expect(rehearsal.steps > 8)
    for kind in kinds {
      for step in 1...rehearsal.steps {
        let base = try Base()
        try prepare(base)
        let trouble = Trouble(kind, atStep: step)
        // A failure in tidying up after the point of no return may pass; what counts is the state afterwards.
        do { try job(base, .still(fileSystem: trouble.fileSystem)) } catch is FileError {}
        try check(base, step)
      }
    }
  }

  static let troubles: [Trouble.Kind] = [
    .death, .failure(.noSpace), .failure(.ioError), .failure(.permissionDenied),
  ]

  @Test func aStoreIsWholeHereOrThereAfterEveryStepOfAQuarantine() throws {
    try atEveryStep(Self.troubles) { base in
      _ = try base.makeStore()
    } job: { base, surroundings in
      _ = try base.quarantine(surroundings).add(
        StoreFileSet(main: base.folder.appending("App.sqlite")), because: Base.facts)
    } check: { base, step in
      try expectWhole(base, step)
      // The next run, undisturbed, brings it to an end and can start afresh.
      let set = StoreFileSet(main: base.folder.appending("App.sqlite"))
      _ = try base.quarantine().finishInterrupted()
      if try !set.members(in: base.system).isEmpty {
        #expect(try base.contents(of: set) == Base.whole, "step \(step)")
        _ = try base.quarantine().add(set, because: Base.facts)
      }
      try expectQuarantined(base, step)
    }
  }

  @Test func aStoreIsWholeAfterEveryStepOfACopyingQuarantine() throws {
    // A second name makes the move a copy, as another file system would.
    try atEveryStep([.death, .failure(.noSpace)]) { base in
      let set = try base.makeStore()
      try base.system.link(set.main, to: base.folder.appending("second-name"))
    } job: { base, surroundings in
      _ = try base.quarantine(surroundings).add(
        StoreFileSet(main: base.folder.appending("App.sqlite")), because: Base.facts)
    } check: { base, step in
      try expectWhole(base, step)
      let set = StoreFileSet(main: base.folder.appending("App.sqlite"))
      _ = try base.quarantine().finishInterrupted()
      if try !set.members(in: base.system).isEmpty { _ = try base.quarantine().add(set, because: Base.facts) }
      try expectQuarantined(base, step)
    }
  }

  @Test func aStoreIsWholeHereOrThereAfterEveryStepOfARelease() throws {
    try atEveryStep(Self.troubles) { base in
      _ = try base.quarantine().add(try base.makeStore(), because: Base.facts)
    } job: { base, surroundings in
      _ = try base.quarantine(surroundings).release("2026-11-21-10-11-12")
    } check: { base, step in
      try expectWhole(base, step)
      _ = try base.quarantine().finishInterrupted()
      if let stored = try base.quarantine().stores().first { _ = try base.quarantine().release(stored.id) }
      let set = StoreFileSet(main: base.folder.appending("App.sqlite"))
      #expect(try base.contents(of: set) == Base.whole, "step \(step)")
      #expect(
        try base.system.entries(of: base.folder.appending("Incompatible")).map(\.string)
          == ["2026-11-21-10-11-12.released.json"], "step \(step)")
    }
  }

  @Test func aRemovalIsFinished() throws {
    try atEveryStep([.death]) { base in
      _ = try base.quarantine().add(try base.makeStore(), because: Base.facts)
    } job: { base, surroundings in
      try base.quarantine(surroundings).discard("2026-11-21-10-11-12")
    } check: { base, step in
      _ = try base.quarantine().finishInterrupted()
      if let stored = try base.quarantine().stores().first { try base.quarantine().discard(stored.id) }
      #expect(try base.system.entries(of: base.folder.appending("Incompatible")).isEmpty, "step \(step)")
    }
  }

  @Test func anInterruptedEndIsFinishedByTheNextRunWhereverThatIsInterrupted() throws {
    let rehearsal = Trouble(.death, atStep: 0)
    let counting = try Base()
    _ = try counting.quarantine(.still(fileSystem: rehearsal.fileSystem)).add(
      try counting.makeStore(), because: Base.facts)
    for first in stride(from: 1, through: rehearsal.steps, by: 3) {
      for second in 1...12 {
        let base = try Base()
        let set = try base.makeStore()
        do {
          let trouble = Trouble(.death, atStep: first)
          _ = try base.quarantine(.still(fileSystem: trouble.fileSystem)).add(set, because: Base.facts)
        } catch is FileError {}
        do {
          let trouble = Trouble(.death, atStep: second)
          _ = try base.quarantine(.still(fileSystem: trouble.fileSystem)).finishInterrupted()
        } catch is FileError {}
        try expectWhole(base, first)
        _ = try base.quarantine().finishInterrupted()
        if try !set.members(in: base.system).isEmpty { _ = try base.quarantine().add(set, because: Base.facts) }
        try expectQuarantined(base, first)
      }
    }
  }

  /// A real SIGKILL, at every third write.
  @Test(arguments: Array(stride(from: 1, through: 40, by: 3)))
  func aKilledProcessLeavesTheStoreWhole(step: Int) async throws {
    let base = try Base()
    _ = try base.makeStore()
    let place = base.folder.path.string
    let result = await #expect(processExitsWith: .failure) { [place = place as String, step = step as Int] in
      let trouble = Trouble(.kill, atStep: step)
      let surroundings = Surroundings.still(fileSystem: trouble.fileSystem)
      let quarantine = QuarantineFolder(FilePath(place).appending("Incompatible"), surroundings: surroundings)
      _ = try quarantine.add(StoreFileSet(main: FilePath(place).appending("App.sqlite")), because: Base.facts)
      // Fewer steps than this one: end as a failure too, after a move that is done.
      exit(1)
    }
    #expect(result != nil)
    try expectWhole(base, step)
    _ = try base.quarantine().finishInterrupted()
    let set = StoreFileSet(main: base.folder.appending("App.sqlite"))
    if try !set.members(in: base.system).isEmpty { _ = try base.quarantine().add(set, because: Base.facts) }
    try expectQuarantined(base, step)
  }

  // MARK: What must hold

  /// The store is whole under its old name or under its new one.
  private func expectWhole(_ base: Base, _ step: Int, _ location: SourceLocation = #_sourceLocation) throws {
    let here = try base.contents(of: StoreFileSet(main: base.folder.appending("App.sqlite")))
    let there = try base.contents(
      of: StoreFileSet(main: base.folder.appending("Incompatible/2026-11-21-10-11-12.sqlite")))
    #expect(here == Base.whole || there == Base.whole, "step \(step): \(here) and \(there)", sourceLocation: location)
    // A main file is never there without its log.
    for found in [here, there] where found["main"] != nil {
      #expect(found == Base.whole, "step \(step)", sourceLocation: location)
    }
  }

  /// The store is in quarantine, complete, with a receipt, and nothing is left over.
  private func expectQuarantined(_ base: Base, _ step: Int, _ location: SourceLocation = #_sourceLocation) throws {
    let stores = try base.quarantine().stores()
    #expect(stores.count == 1, "step \(step)", sourceLocation: location)
    let stored = try #require(stores.first)
    #expect(try base.contents(of: stored.files) == Base.whole, "step \(step)", sourceLocation: location)
    #expect(stored.receipt != nil, "step \(step)", sourceLocation: location)
    try base.quarantine().verify(stored)
    let left = try base.system.entries(of: base.folder.path).map(\.string).filter {
      $0 != "Incompatible" && $0 != "second-name"
    }
    #expect(left.isEmpty, "step \(step): \(left)", sourceLocation: location)
    let names = try base.system.entries(of: base.folder.appending("Incompatible")).map(\.string)
    #expect(names.count == 6, "step \(step): \(names)", sourceLocation: location)
  }
}

/// What becomes of an interrupted move when another process has been at the folder since.
struct DisturbedMoveTests {
  typealias Base = QuarantineFolderTests

  /// A store whose quarantine died when all new names were there and no old one was gone.
  private func halfMoved() throws -> Base {
    for step in 10...60 {
      let base = try Base()
      let set = try base.makeStore()
      let trouble = Trouble(.death, atStep: step)
      do {
        _ = try base.quarantine(.still(fileSystem: trouble.fileSystem)).add(set, because: Base.facts)
      } catch is FileError {}
      let names = try base.system.entries(of: base.folder.appending("Incompatible")).map(\.string)
      // The main file gets its new name last.
      guard names.contains("2026-11-21-10-11-12.sqlite") else { continue }
      try #require(names.contains(".2026-11-21-10-11-12.moving"))
      try #require(try base.contents(of: set) == Base.whole)
      return base
    }
    throw FileError(.notFound, operation: "interrupt the move", path: nil)
  }

  @Test func anOldNameThatTheDiskLostIsGivenBack() throws {
    let base = try halfMoved()
    let set = StoreFileSet(main: base.folder.appending("App.sqlite"))
    try base.system.unlink(set.path(of: .wal))
    try base.system.unlink(set.path(of: .journal))
    _ = try base.quarantine().finishInterrupted()
    #expect(try base.contents(of: set) == Base.whole)
    #expect(try base.quarantine().stores().isEmpty)
  }

  @Test func aRenamedFolderIsFinished() throws {
    let base = try halfMoved()
    let renamed = FilePath(base.folder.path.string + "-renamed")
    defer { TemporaryFolder.remove(renamed) }
    try base.system.rename(base.folder.path, to: renamed)
    let quarantine = QuarantineFolder(renamed.appending("Incompatible"), surroundings: .still())
    _ = try quarantine.finishInterrupted()
    #expect(try base.contents(of: StoreFileSet(main: renamed.appending("App.sqlite"))) == Base.whole)
    #expect(try !quarantine.hasInterrupted())
    try base.system.rename(renamed, to: base.folder.path)
  }

  @Test func aCopiedFolderTouchesNothingOfTheOriginal() throws {
    let base = try halfMoved()
    let before = try FolderContents(of: base.folder.path)
    let copy = try TemporaryFolder()
    try base.system.makeDirectory(copy.appending("Incompatible"))
    for place in ["", "Incompatible"] {
      for name in try base.system.entries(of: base.folder.appending(place)) {
        let file = base.folder.appending(place).appending(name)
        guard try base.system.status(of: file, followingLinks: false)?.kind == .regular else { continue }
        _ = try base.system.copy(file, to: copy.path.appending(place).appending(name))
      }
    }
    let quarantine = QuarantineFolder(copy.appending("Incompatible"), surroundings: .still())
    _ = try quarantine.finishInterrupted()
    #expect(try !quarantine.hasInterrupted())
    #expect(try base.system.status(of: copy.appending("App.sqlite")) != nil)
    #expect(try base.system.status(of: copy.appending("App.sqlite-wal")) != nil)
    #expect(try FolderContents(of: base.folder.path) == before)
  }
}
