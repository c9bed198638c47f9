import GRDB
import Lazaret
import PersistentStore
import Platform
import Salvage
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Openings that end with what was salvaged.
struct SalvagingOpeningTests {
  @Test(arguments: ["header", "page1", "page-size"])
  func aDamagedStoreOpensWithItsRecords(kind: String) throws {
    let scene = try SalvagingScene(kind)
    let opening = try scene.coordinator(OpeningPolicy(depth: .full)).open(scene.scene.store())
    #expect(opening.examination.verdict == .damaged)
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage], "\(opening.events)")
    let salvage = try #require(opening.salvage)
    #expect(salvage.isInstalled)
    #expect(salvage.recovered >= Int64(SalvagingScene.records))
    #expect(opening.notice?.key.hasPrefix("lazaret.notice.salvaged") == true)
    #expect(opening.notice?.title.contains("recovered") == true)
    let names = try SalvagingScene.names(opening.store)
    #expect(names == SalvagingScene.allNames())
    // The app goes on with it.
    try opening.store.write { database in
      try database.execute(
        sql:
          "INSERT INTO ZCAR (Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 'new'); "
          + "UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
    }
    try opening.store.close()
    try scene.scene.expectQuarantined(scene.before, in: try scene.scene.quarantined())
    let again = try scene.coordinator().open(scene.scene.store())
    #expect(again.events.isEmpty)
    #expect(again.notice == nil)
    #expect(try SalvagingScene.names(again.store).count == SalvagingScene.records + 1)
    try again.store.close()
  }

  @Test func everythingIsInItsPlaceAfterwards() throws {
    let scene = try SalvagingScene()
    try scene.coordinator().open(scene.scene.store()).store.close()
    try scene.expectRescued()
    let stored = try #require(try scene.scene.quarantined().first)
    #expect(stored.receipt?.history.map(\.kind) == [.quarantined, .salvaged, .installed])
    let names = try scene.scene.system.entries(of: scene.scene.incompatible).map(\.string)
    #expect(names.contains("2026-11-21-10-11-12.salvaged.sqlite"))
    #expect(names.contains("2026-11-21-10-11-12.salvage.json"))
    #expect(names.contains(".2026-11-21-10-11-12.salvaged_SUPPORT"))
  }

  @Test func anOlderStoreThatIsDamagedIsSalvagedAndMigrated() throws {
    let scene = try SalvagingScene(version: "V1")
    let opening = try scene.coordinator().open(scene.scene.store())
    #expect(opening.salvage?.isInstalled == true)
    #expect(try SalvagingScene.names(opening.store) == SalvagingScene.allNames())
    try opening.store.close()
    try scene.expectRescued()
  }

  /// A model that was changed without a new version: no version of it fits, and the rows that fit are kept.
  @Test func anIncompatibleStoreKeepsTheRecordsThatFit() throws {
    let scene = try SalvagingScene("none")
    try scene.scene.folder.write(
      """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
        <entity name="Boat" syncable="YES"><attribute name="length" optional="YES" attributeType="Integer 32"/></entity>
        <entity name="Car" representedClassName="Car" syncable="YES">
          <attribute name="doors" optional="YES" attributeType="Integer 16"/>
          <attribute name="color" optional="YES" attributeType="String"/>
          <attribute name="name" optional="YES" attributeType="String"/>
          <attribute name="photo" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>
        </entity>
      </model>
      """, to: "Other.xcdatamodeld/V1.xcdatamodel/contents")
    let model = try AppModel.load(scene.scene.folder.appending("Other.xcdatamodeld"))
    // Its own model has nothing that this one lacks: a migration leads over, which gives the entity its other number.
    let quarantines = Quarantines(home: scene.scene.home, surroundings: .still())
    let stored = try quarantines.add(scene.scene.store(), model: model)
    let salvaged = try quarantines.salvage(stored.files.main, model: model)
    #expect(salvaged.result.isUsable)
    #expect(salvaged.result.recovered == Int64(SalvagingScene.records))
    _ = try quarantines.install(stored.files.main, model: model)
    let opening = try StoreCoordinator(model: model, home: scene.scene.home, surroundings: .still()).open(
      scene.scene.store())
    #expect(opening.examination.verdict == .compatible)
    #expect(try SalvagingScene.names(opening.store) == SalvagingScene.allNames())
    // Here a car's entity has another number than there.
    #expect(try opening.store.read { try Int.fetchAll($0, sql: "SELECT DISTINCT Z_ENT FROM ZCAR") } == [2])
    #expect(try opening.store.recordCount(of: "Car") == SalvagingScene.records)
    try opening.store.close()
  }

  /// A number as people read it, written apart from the one that is tested.
  private func commas(_ number: Int64) -> String {
    number < 1_000 ? "\(number)" : "\(number / 1_000)," + String("\(1_000 + number % 1_000)".dropFirst())
  }

  @Test func lossesAreCountedAndTold() throws {
    let scene = try SalvagingScene("zero:30", seed: 11, records: 4_000)
    let opening = try scene.coordinator(OpeningPolicy(depth: .full)).open(scene.scene.store())
    let salvage = try #require(opening.salvage)
    #expect(salvage.isInstalled && !salvage.isComplete)
    #expect(salvage.lost > 0 && salvage.recovered > 1_000 && salvage.recovered + salvage.lost < 6_000)
    #expect(opening.isWithLosses)
    let notice = try #require(opening.notice)
    #expect(notice.key == "lazaret.notice.salvaged-with-losses")
    let (all, percent) = (
      salvage.recovered + salvage.lost, 100 * salvage.recovered / (salvage.recovered + salvage.lost)
    )
    let about = salvage.lostIsExact ? "" : "about "
    let words =
      "Recovered \(commas(salvage.recovered)) of \(about)\(commas(all)) records (\(percent) %)"
    #expect(notice.message.contains("Some entries may be missing or incomplete."), "\(notice.message)")
    let digits = notice.message.filter { $0.isNumber }
    #expect(digits.isEmpty, "\(notice.message)")
    // The event and the receipt say the same.
    let stored = try #require(try Quarantines(home: scene.scene.home, surroundings: .still()).stores().first)
    let event = try #require(opening.events.last { $0.kind == .salvage })
    let told = try #require(stored.receipt?.salvage?.result?.words)
    #expect(told.hasPrefix(words) && event.words.hasPrefix(told))
    #expect(Int64(try SalvagingScene.names(opening.store).count) == salvage.recovered)
    try opening.store.close()
  }

  /// An error that neither the store nor the surroundings are to blame for: the store is in its place, as it was, or waits.
  @Test func aSalvageThatFailsByItselfInstallsNoEmptyStore() throws {
    var putBack = 0
    for step in stride(from: 2, through: 200, by: 4) {
      let scene = try SalvagingScene()
      let trouble = Trouble(.failure(.fileExists), atStep: step)
      do {
        let opening = try scene.coordinator(fileSystem: trouble.fileSystem).open(scene.scene.store())
        #expect(!opening.events.contains { $0.kind == .create }, "step \(step)")
        try opening.store.close()
        try scene.expectRescued("step \(step)")
        if trouble.steps < step { break }
      } catch {
        if let stored = try scene.scene.quarantined().first {
          try scene.scene.expectQuarantined(scene.before, in: [stored], "step \(step)")
        }
        if let error = error as? LazaretError, error.kind == .salvageFailed {
          putBack += 1
          #expect(!error.isEnvironmental && error.path == scene.scene.store() && error.hint.contains("in its place"))
          #expect(try scene.scene.quarantined().isEmpty && scene.leftovers().isEmpty, "step \(step)")
        }
        let again = try scene.coordinator().open(scene.scene.store())
        #expect(!again.events.contains { $0.kind == .create }, "step \(step)")
        try again.store.close()
        try scene.expectRescued("step \(step), again")
      }
    }
    #expect(putBack > 3)
  }

  // MARK: Policies

  @Test func laterMeansAnEmptyStoreNowAndTheRecordsWhenAskedFor() throws {
    let scene = try SalvagingScene()
    let place = scene.scene.store()
    let opening = try scene.coordinator(OpeningPolicy(whenDamaged: .salvageLater)).open(place)
    #expect(opening.events.map(\.kind) == [.quarantine, .create])
    #expect(opening.notice?.key == "lazaret.notice.salvage-later")
    #expect(opening.salvage?.state == .pending)
    #expect(opening.salvage?.percent == nil, "nothing is known before it is salvaged")
    try opening.store.write {
      try $0.execute(
        sql:
          "INSERT INTO ZCAR (Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 'since'); "
          + "UPDATE Z_PRIMARYKEY SET Z_MAX = 1")
    }
    try opening.store.close()
    let quarantines = Quarantines(home: scene.scene.home, surroundings: .still())
    let stored = try #require(try quarantines.stores().first)
    #expect(stored.receipt?.salvage?.state == .pending)
    let early = #expect(throws: LazaretError.self) { try quarantines.install(stored.files.main) }
    #expect(early?.kind == .notSalvaged)
    let salvaged = try quarantines.salvage(stored.files.main, model: try scene.scene.appModel())
    #expect(salvaged.result.recovered >= Int64(SalvagingScene.records))
    #expect(salvaged.stored.receipt?.salvage?.state == .salvaged)
    let (installed, replaced) = try quarantines.install(stored.files.main, model: try scene.scene.appModel())
    #expect(installed.main == place)
    // What the app had since is in quarantine, whole.
    let since = try PersistentStore(opening: try #require(replaced).files.main)
    #expect(try SalvagingScene.names(since) == ["since"])
    try since.close()
    let again = try scene.coordinator().open(place)
    #expect(again.events.isEmpty && again.notice == nil)
    #expect(try SalvagingScene.names(again.store) == SalvagingScene.allNames())
    try again.store.close()
  }

  @Test func aPolicyThatRefusesAnEmptyStoreLeavesThePlaceEmpty() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let before = try scene.parts(scene.store())
    let policy = OpeningPolicy(whenSalvageFails: .refuse)
    for _ in 1...2 {
      let error = try #require(throws: LazaretError.self) { try scene.coordinator(policy).open(scene.store()) }
      #expect(error.code == "salvage-failed")
      #expect(!error.isEnvironmental)
      #expect(try scene.parts(scene.store()).isEmpty)
      try scene.expectQuarantined(before, in: try scene.quarantined())
    }
    let opening = try scene.coordinator().open(scene.store())
    #expect(opening.events.map(\.kind) == [.recovery, .salvage, .create])
    #expect(opening.notice?.key == "lazaret.notice.damaged")
    try opening.store.close()
    try scene.expectGoodStore(scene.store())
  }

  @Test func aUserWhoRefusesEverythingIsToldOfASalvageThatWaits() throws {
    let scene = try SalvagingScene()
    let cancelled = #expect(throws: LazaretError.self) {
      try scene.coordinator().open(scene.scene.store(), observer: Self.cancelling(at: .salvaging))
    }
    #expect(cancelled?.kind == .cancelled)
    let refusing = OpeningPolicy(whenDamaged: .refuse, whenIncompatible: .refuse)
    let error = #expect(throws: LazaretError.self) { try scene.coordinator(refusing).open(scene.scene.store()) }
    #expect(error?.kind == .salvagePending)
    #expect(try scene.scene.parts(scene.scene.store()).isEmpty)
    // A user who wants an empty store gets one, and the salvage stays possible.
    let empty = OpeningPolicy(whenDamaged: .emptyStore, whenIncompatible: .emptyStore, whenMigrationFails: .emptyStore)
    let opening = try scene.coordinator(empty).open(scene.scene.store())
    #expect(opening.events.map(\.kind) == [.recovery, .create])
    try opening.store.close()
    let salvage = try #require(try scene.scene.quarantined().first?.receipt?.salvage)
    #expect(salvage.state == .pending && !salvage.isWanted)
  }

  // MARK: Progress and cancellation

  private static func cancelling(at phase: OpeningProgress.Phase) -> OpeningObserver {
    let seen = Platform.Mutex(false)
    return OpeningObserver { progress in
      if progress.phase == phase { seen.withLock { $0 = true } }
    } isCancelled: {
      seen.withLock { $0 }
    }
  }

  @Test func progressGrowsAndTellsThePhases() throws {
    let scene = try SalvagingScene()
    let seen = Platform.Mutex<[OpeningProgress]>([])
    let observer = OpeningObserver { progress in seen.withLock { $0.append(progress) } }
    try scene.coordinator().open(scene.scene.store(), observer: observer).store.close()
    let progress = seen.withLock { $0 }
    var phases: [OpeningProgress.Phase] = []
    for step in progress where phases.last != step.phase { phases.append(step.phase) }
    #expect(phases == [.examining, .creating, .quarantining, .salvaging, .installing, .opening])
    let fractions = progress.filter { $0.phase == .salvaging }.compactMap(\.fraction)
    #expect(fractions.count > 3)
    #expect(fractions == fractions.sorted())
    #expect(fractions.allSatisfy { (0...1).contains($0) })
    #expect(Set(progress.compactMap(\.salvagePhase)).isSuperset(of: [.rows, .rebuild]))
  }

  @Test func cancellingAtAnyMomentKeepsTheStoreAndTheNextOpeningGoesOn() throws {
    final class Counter: Sendable { let value = Atomic<Int>(0) }
    func ending(at step: Int, _ counter: Counter) -> OpeningObserver {
      OpeningObserver { _ in
      } isCancelled: {
        counter.value.add(1, ordering: .relaxed).newValue == step
      }
    }
    let rehearsal = Counter()
    try SalvagingScene().open(observer: ending(at: 0, rehearsal)).store.close()
    let steps = rehearsal.value.load(ordering: .relaxed)
    #expect(steps > 8)
    var inQuarantine = 0
    for step in 1...steps {
      let scene = try SalvagingScene()
      let error = #expect(throws: LazaretError.self, "step \(step)") {
        try scene.open(observer: ending(at: step, Counter()))
      }
      #expect(error?.kind == .cancelled, "step \(step)")
      if let stored = try scene.scene.quarantined().first {
        inQuarantine += 1
        try scene.scene.expectQuarantined(scene.before, in: [stored], "step \(step)")
        #expect(stored.receipt?.salvage?.state == .pending, "step \(step)")
        #expect(try scene.scene.parts(scene.scene.store()).isEmpty, "step \(step)")
      } else {
        #expect(try scene.scene.parts(scene.scene.store()) == scene.before, "step \(step)")
      }
      let opening = try scene.open(observer: OpeningObserver())
      #expect(opening.notice != nil, "step \(step)")
      try opening.store.close()
      try scene.expectRescued("step \(step)")
    }
    #expect(inQuarantine > 3)
  }
}

extension SalvagingScene {
  fileprivate func open(observer: OpeningObserver) throws -> Opening {
    try coordinator().open(scene.store(), observer: observer)
  }
}
