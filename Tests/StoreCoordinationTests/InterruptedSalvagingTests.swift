import Backup
import GRDB
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Kills and failures at every step of an opening that salvages: the next one always ends with the records.
struct InterruptedSalvagingTests {
  /// Counts the steps of an undisturbed opening.
  private static func steps(countingReads: Bool = false) throws -> Int {
    let rehearsal = Trouble(.death, atStep: 0, countingReads: countingReads)
    try SalvagingScene().coordinatedOpening(rehearsal.fileSystem).store.close()
    return rehearsal.steps
  }

  @Test func deathAtEveryWrite() throws { try sweep(.death, at: Array(1...Self.steps())) }

  /// Every write fails in one way of two, or in both with LAZARET_LONG=1.
  @Test(arguments: [0, 1])
  func failureOfEveryWrite(number: Int) throws {
    let count = try Self.steps()
    try sweep(.failure([.noSpace, .ioError][number]), at: chosenSteps(of: count, forFailure: number, of: 2))
  }

  @Test func failureOfEveryRead() throws {
    // Reads are many; every third is enough.
    let count = try Self.steps(countingReads: true)
    try sweep(.failure(.ioError), countingReads: true, at: Array(stride(from: 1, through: count, by: 3)))
  }

  private func sweep(_ kind: Trouble.Kind, countingReads: Bool = false, at steps: [Int]) throws {
    #expect(steps.count > 10)
    for step in steps {
      let scene = try SalvagingScene()
      let trouble = Trouble(kind, atStep: step, countingReads: countingReads)
      var isTold = false
      do {
        let opening = try scene.coordinatedOpening(trouble.fileSystem)
        isTold = opening.notice != nil
        #expect(isTold, "step \(step)")
        try opening.store.close()
      } catch let error as any ReportableError {
        #expect(error.isEnvironmental, "\(kind) step \(step): \(error)")
      }
      try Self.expectOpens(scene, isTold: isTold, "\(kind) step \(step)")
    }
  }

  /// A real SIGKILL at every few writes of ours, or at each with LAZARET_LONG=1.
  @Test func killsOfTheProcess() async throws {
    for step in chosenSteps(of: try Self.steps()) {
      let scene = try SalvagingScene()
      let place = scene.scene.folder.path.string
      let temporary = scene.scene.folder.appending("Temporary")
      try FileSystem().makeDirectory(temporary)
      await #expect(processExitsWith: .signal(SIGKILL), "step \(step)") {
        [place = place as String, step = step as Int] in
        let trouble = Trouble(.kill, atStep: step)
        let folder = FilePath(place)
        unsafe setenv("TMPDIR", folder.appending("Temporary").string, 1)
        let model = try ModelBundle.load(path: folder.appending("App.xcdatamodeld"), order: ["V1", "V2", "V3"])
        let coordinator = StoreCoordinator(
          model: .coreData(model), home: folder.appending("Home"), appVersion: "7.1",
          surroundings: .still(fileSystem: trouble.fileSystem))
        _ = try coordinator.open(folder.appending("Stores/App.sqlite"))
      }
      // Any command removes the copies.
      PrivateFolder.removeRemains(in: temporary, FileSystem()) { try? EarlierRuns.finish(at: $0) }
      #expect(try !scene.scene.names().contains(".App.sqlite.unfinished"), "step \(step)")
      if try FileSystem().status(of: scene.scene.incompatible) != nil {
        let names = try FileSystem().entries(of: scene.scene.incompatible).map(\.string)
        #expect(!names.contains { $0.hasSuffix(".salvaging") }, "step \(step)")
      }
      try Self.expectOpens(scene, isTold: false, "step \(step)")
    }
  }

  /// A SIGKILL at every few reports of progress, or at each with LAZARET_LONG=1: SQLite writes between them.
  @Test func killsAtReports() async throws {
    let reports = try Self.reports()
    #expect(reports > 8)
    for number in chosenSteps(of: reports) {
      let scene = try SalvagingScene()
      let place = scene.scene.folder.path.string
      await #expect(processExitsWith: .signal(SIGKILL), "report \(number)") {
        [place = place as String, number = number as Int] in
        let folder = FilePath(place)
        let model = try ModelBundle.load(path: folder.appending("App.xcdatamodeld"), order: ["V1", "V2", "V3"])
        let seen = Mutex(0)
        let observer = OpeningObserver { progress in
          guard Self.counts(progress) else { return }
          if seen.withLock({ seen in
            seen += 1
            return seen == number
          }) {
            kill(getpid(), SIGKILL)
          }
        }
        let coordinator = StoreCoordinator(
          model: .coreData(model), home: folder.appending("Home"), appVersion: "7.1", surroundings: .still())
        _ = try coordinator.open(folder.appending("Stores/App.sqlite"), observer: observer)
      }
      try Self.expectOpens(scene, isTold: false, "report \(number)")
    }
  }

  /// Whether a report is one that every run gives: how often a fresh file is looked at depends on the time.
  private static func counts(_ progress: OpeningProgress) -> Bool {
    progress.phase != .examining || progress.total == 0
  }

  private static func reports() throws -> Int {
    let count = Mutex(0)
    let scene = try SalvagingScene()
    try scene.coordinator().open(
      scene.scene.store(), observer: OpeningObserver { if Self.counts($0) { count.withLock { $0 += 1 } } }
    ).store.close()
    return count.withLock { $0 }
  }

  // MARK: What must hold

  private static func expectOpens(_ scene: SalvagingScene, isTold: Bool, _ comment: Comment) throws {
    // Nothing was lost, wherever it stopped: the old store is whole in its place or in quarantine.
    let isInPlace = try scene.scene.parts(scene.scene.store()) == scene.before
    if !isInPlace {
      let main = scene.scene.incompatible.appending("2026-11-21-10-11-12.sqlite")
      #expect(try scene.scene.parts(main) == scene.before, comment)
    }
    let opening = try scene.coordinatedOpening(FileSystem())
    if !isTold { #expect(opening.notice != nil, comment) }
    #expect(!opening.events.contains { $0.kind == .create }, comment)
    try opening.store.close()
    try scene.expectRescued(comment)
    let third = try scene.coordinatedOpening(FileSystem())
    #expect(third.events.isEmpty && third.notice == nil, comment)
    try third.store.close()
  }

  // MARK: Installing later

  @Test func installingSurvivesDeathAtEveryWrite() throws {
    let rehearsal = Trouble(.death, atStep: 0)
    for step in 0...400 {
      let scene = try SalvagingScene()
      // Taking a backup first has its own tests.
      try BackupPolicy(beforeInstall: false).save(home: scene.scene.home)
      try scene.coordinator(OpeningPolicy(whenDamaged: .salvageLater)).open(scene.scene.store()).store.close()
      let quarantines = Quarantines(home: scene.scene.home, surroundings: .still())
      let stored = try #require(try quarantines.stores().first)
      _ = try quarantines.salvage(stored.files.main, model: try scene.scene.appModel())
      let present = try scene.scene.parts(scene.scene.store())
      let trouble = step == 0 ? rehearsal : Trouble(.death, atStep: step)
      let troubled = Quarantines(home: scene.scene.home, surroundings: .still(fileSystem: trouble.fileSystem))
      do {
        _ = try troubled.install(stored.files.main, model: try scene.scene.appModel())
        #expect(step == 0 || step > rehearsal.steps, "step \(step)")
      } catch let error as any ReportableError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      if step > 0, step > rehearsal.steps { break }
      let opening = try scene.coordinator().open(scene.scene.store())
      let names = try SalvagingScene.names(opening.store)
      #expect(names.isEmpty || names == SalvagingScene.allNames(), "step \(step)")
      #expect(!opening.events.contains { $0.kind == .create }, "step \(step)")
      try opening.store.close()
      // The store that was there is whole, in its place or in quarantine.
      let others = try scene.scene.quarantined().filter { $0.id != stored.id }
      if names.isEmpty {
        #expect(others.isEmpty, "step \(step)")
      } else {
        #expect(try others.map { try scene.scene.parts($0.files.main) } == [present], "step \(step)")
      }
      let evidence = try quarantines.store(stored.files.main)
      #expect(try scene.scene.parts(evidence.files.main) == scene.before, "step \(step)")
      // Asking again does it.
      if names.isEmpty { _ = try quarantines.install(stored.files.main, model: try scene.scene.appModel()) }
      let again = try scene.coordinator().open(scene.scene.store())
      #expect(try SalvagingScene.names(again.store) == SalvagingScene.allNames(), "step \(step)")
      try again.store.close()
      #expect(try scene.leftovers().isEmpty, "step \(step)")
    }
  }
}

extension SalvagingScene {
  fileprivate func coordinatedOpening(_ fileSystem: FileSystem) throws -> Opening {
    try coordinator(fileSystem: fileSystem).open(scene.store())
  }
}
