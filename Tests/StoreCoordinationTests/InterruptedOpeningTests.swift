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

/// Kills and failures at every step of an opening.
struct InterruptedOpeningTests {
  /// What there is before the opening.
  enum Start: String, Sendable, CaseIterable {
    case damaged
    case missing
    case leftovers

    /// Damaged, and with a second name, so that it is copied and not linked.
    case copied
  }

  private static func make(_ start: Start) throws -> (scene: Scene, before: [String: [UInt8]]) {
    let scene = try Scene()
    switch start {
    case .damaged: try scene.makeDamagedStore()
    case .missing: break
    case .leftovers: try scene.makeCompanions()
    case .copied:
      try scene.makeDamagedStore()
      try scene.system.link(scene.store(), to: scene.folder.appending("second-name"))
    }
    return (scene, try scene.parts(scene.store()))
  }

  /// Counts the steps of an undisturbed opening.
  private static func steps(_ start: Start, countingReads: Bool = false) throws -> Int {
    let rehearsal = Trouble(.death, atStep: 0, countingReads: countingReads)
    let (scene, _) = try make(start)
    try scene.coordinator(home: scene.home, surroundings: .still(fileSystem: rehearsal.fileSystem))
      .open(scene.store()).store.close()
    return rehearsal.steps
  }

  @Test(arguments: Start.allCases)
  func deathAtEveryWrite(start: Start) throws { try sweep(start, .death) }

  /// Every write fails in one way of three, or in all with LAZARET_LONG=1.
  @Test(arguments: Start.allCases, Array(0..<3))
  func failureOfEveryWrite(start: Start, number: Int) throws {
    try sweep(start, .failure([.noSpace, .ioError, .permissionDenied][number]), number: number, of: 3)
  }

  /// Every second step fails, or each with LAZARET_LONG=1.
  @Test(arguments: [Start.damaged, .missing])
  func failureOfEveryStep(start: Start) throws {
    try sweep(start, .failure(.ioError), countingReads: true, number: start == .damaged ? 0 : 1, of: 2)
  }

  /// Opens with trouble at steps in turn; whatever happens, opening again ends with a good store, and its owner is told.
  ///
  /// - Parameters:
  ///   - number: which of several sweeps this is, that have the steps in turn.
  ///   - sweeps: how many there are.
  private func sweep(
    _ start: Start, _ kind: Trouble.Kind, countingReads: Bool = false, number: Int = 0, of sweeps: Int = 1
  ) throws {
    let count = try Self.steps(start, countingReads: countingReads)
    #expect(count > 5)
    for step in chosenSteps(of: count, forFailure: number, of: sweeps) {
      let (scene, before) = try Self.make(start)
      let trouble = Trouble(kind, atStep: step, countingReads: countingReads)
      var events: [OpeningEvent] = []
      do {
        let opening = try scene.coordinator(
          home: scene.home, surroundings: .still(fileSystem: trouble.fileSystem)
        ).open(scene.store())
        events = opening.events
        // A failure in tidying up may pass, but then the opening has told everything.
        if !before.isEmpty { #expect(opening.notice != nil, "step \(step)") }
        try opening.store.close()
      } catch let error as any ReportableError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      try Self.expectNothingLost(scene, before, "\(start) step \(step)")
      try Self.expectOpens(scene, before, alreadyTold: events, "\(start) step \(step)")
    }
  }

  /// A real SIGKILL at every few writes, or at each with LAZARET_LONG=1.
  @Test(arguments: [Start.damaged, .missing])
  func killsOfTheProcess(start: Start) async throws {
    let steps = try Self.steps(start)
    for step in chosenSteps(of: steps) {
      let (scene, before) = try Self.make(start)
      let place = scene.folder.path.string
      await #expect(processExitsWith: .signal(SIGKILL), "step \(step)") {
        [place = place as String, step = step as Int] in
        let trouble = Trouble(.kill, atStep: step)
        let folder = FilePath(place)
        let model = try ModelBundle.load(path: folder.appending("App.xcdatamodeld"), order: ["V1", "V2", "V3"])
        let coordinator = StoreCoordinator(
          model: .coreData(model), home: folder.appending("Home"), appVersion: "7.1",
          surroundings: .still(fileSystem: trouble.fileSystem))
        _ = try coordinator.open(folder.appending("Stores/App.sqlite"))
      }
      try Self.expectNothingLost(scene, before, "step \(step)")
      try Self.expectOpens(scene, before, alreadyTold: [], "step \(step)")
    }
  }

  // MARK: What must hold

  /// The old store is whole in its place or whole in quarantine, and no part of it lies beside a new store.
  private static func expectNothingLost(_ scene: Scene, _ before: [String: [UInt8]], _ comment: Comment) throws {
    let here = try scene.parts(scene.store())
    var there: [[String: [UInt8]]] = []
    if try scene.system.status(of: scene.incompatible) != nil {
      let ids = Set(try scene.system.entries(of: scene.incompatible).map(\.string).filter { $0.hasSuffix("sqlite") })
      there = try ids.map { try scene.parts(scene.incompatible.appending($0)) }
      if before["main"] == nil {
        there.append(try scene.parts(scene.incompatible.appending("2026-11-21-10-11-12.sqlite")))
      }
    }
    if !before.isEmpty { #expect(here == before || there.contains(before), comment) }
    guard let main = here["main"], main != before["main"] else { return }
    // A new store: what lies beside it can only be SQLite's own, of the moment when it had been opened.
    for (part, bytes) in here where part != "main" {
      #expect(["wal", "shm"].contains(part) && bytes != before[part], comment)
    }
  }

  /// Opening again ends with a good store, one quarantined set, nothing left over, and a word about it.
  private static func expectOpens(
    _ scene: Scene, _ before: [String: [UInt8]], alreadyTold: [OpeningEvent], _ comment: Comment
  ) throws {
    let opening = try scene.coordinator(home: scene.home).open(scene.store())
    try opening.store.close()
    try scene.expectGoodStore(scene.store(), comment)
    if before.isEmpty {
      #expect(try scene.quarantined().isEmpty, comment)
      #expect(opening.notice == nil, comment)
    } else {
      let quarantined = try scene.quarantined()
      try scene.expectQuarantined(before, in: quarantined, comment)
      let told = (alreadyTold + opening.events).filter { $0.reason != nil }
      #expect(told.contains { $0.id == quarantined.first?.id }, comment)
      if alreadyTold.isEmpty { #expect(opening.notice != nil, comment) }
      #expect(try Quarantines(home: scene.home).stores().map(\.id) == quarantined.map(\.id), comment)
      let names = try scene.system.entries(of: scene.incompatible).map(\.string)
      #expect(!names.contains { $0.hasPrefix(".") && !$0.hasSuffix("_SUPPORT") }, comment)
    }
    let names = try scene.names()
    #expect(
      names == (before.isEmpty && !names.contains("Incompatible") ? ["App.sqlite"] : ["App.sqlite", "Incompatible"]),
      comment)
    // Told once is enough.
    let third = try scene.coordinator(home: scene.home).open(scene.store())
    #expect(third.events.isEmpty, comment)
    #expect(third.notice == nil, comment)
    try third.store.close()
  }
}
