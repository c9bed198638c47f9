import Foundation
import GRDB
import Lazaret
import Migration
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Damaged stores of versions that the app cannot migrate, that no order tells of, or that it does not know: damage makes no outcome
/// worse than the records allow.
struct DamagedVersionTests {
  typealias Scene = DamagedVersionScene
  typealias Version = DamagedVersionScene.Version

  private static func text(_ name: String, was identifier: String? = nil) -> String {
    Scene.attribute(name, was: identifier)
  }

  private static let first = Version("V1", text("name"), text("color"))
  private static let withoutWay = Version("V2", text("name"), Scene.attribute("color", "Binary"))

  // MARK: No way leads to the app's version

  @Test func whereNoWayLeadsADamagedStoreStaysAsASoundOneDoes() throws {
    let scene = try Scene(Self.first, ["ZNAME", "ZCOLOR"])
    let model = try scene.model([Self.first, Self.withoutWay])
    for damage in [nil, Scene.Damage.foreignPage] {
      try scene.put(damage)
      let before = try FolderContents(of: scene.folder.appending("Stores"))
      for _ in 1...2 {
        let error = try #require(throws: LazaretError.self) { try scene.open(model) }
        #expect(error.kind == .migrationFailed && error.code == "mapping-not-inferable", "\(error)")
        #expect(error.examination?.verdict == (damage == nil ? .outdated : .damaged))
        #expect(error.hint.contains("damaged") == (damage != nil), "\(error.hint)")
        #expect(try FolderContents(of: scene.folder.appending("Stores")) == before)
      }
      try FileSystem().unlink(scene.store)
    }
  }

  @Test func whatTheSalvageAloneFindsOutToHaveNoWayWaits() throws {
    let scene = try Scene(Self.first, ["ZNAME", "ZCOLOR"])
    let model = try scene.model([Self.first, Self.withoutWay])
    try scene.put(.firstPage)
    for round in 1...3 {
      let error = try #require(throws: LazaretError.self) { try scene.open(model) }
      #expect(error.kind == .migrationFailed && !error.isEnvironmental, "round \(round): \(error)")
      #expect(error.detail.contains("mapping-not-inferable") && error.hint.contains("quarantine"), "\(error)")
      #expect(try scene.isEmpty())
      let salvage = try #require(try scene.quarantined().receipt?.salvage)
      #expect(salvage.state == .salvaged && salvage.isWanted)
      #expect(salvage.failure?.code == Receipt.Salvage.notMigratedCode)
      #expect(salvage.others == nil)
      // It is not salvaged again as long as nothing can come of it.
      #expect(try scene.quarantined().receipt?.history.map(\.kind) == [.quarantined, .salvaged], "round \(round)")
      let path = try #require(try folder(of: scene).result(of: try scene.quarantined())).store.main
      #expect(try scene.values("ZNAME", at: path) == Scene.values(of: "ZNAME"))
      #expect(try scene.values("ZCOLOR", at: path) == Scene.values(of: "ZCOLOR"))
    }
    // Nothing installs it by force.
    let refusal = try #require(throws: LazaretError.self) {
      try Quarantines(home: scene.home, surroundings: .still()).install(scene.quarantined().files.main, model: model)
    }
    #expect(refusal.kind == .salvageUnusable && refusal.detail.contains("could not be migrated"), "\(refusal)")
    // An app to whose version a way leads has every record.
    let next = try scene.model([
      Self.first, Self.withoutWay, Version("V3", Self.text("name"), Self.text("color"), Self.text("age")),
    ])
    let opening = try scene.open(next)
    try opening.store.close()
    #expect(opening.salvage?.isInstalled == true)
    #expect(try scene.values("ZCOLOR", at: scene.store) == Scene.values(of: "ZCOLOR"))
  }

  /// The rule on salvages decides only where no record was recovered.
  @Test(arguments: Scene.Damage.allCases, OpeningPolicy.Fallback.allCases)
  func thePolicyMayReplaceIt(damage: Scene.Damage, whenSalvageFails: OpeningPolicy.Fallback) throws {
    let scene = try Scene(Self.first, ["ZNAME", "ZCOLOR"])
    try scene.put(damage)
    let policy = OpeningPolicy(
      whenMigrationFails: .emptyStore, whenSalvageFails: whenSalvageFails, depth: .full)
    let opening = try scene.open(try scene.model([Self.first, Self.withoutWay]), policy)
    try opening.store.close()
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage, .create])
    let event = try #require(opening.events.first { $0.kind == .salvage })
    #expect(event.words.contains("could not be migrated"), "\(event.words)")
    #expect(event.salvage?.failure?.code == Receipt.Salvage.notMigratedCode)
    #expect(event.salvage?.recovered ?? 0 >= Int64(Scene.count))
    #expect(try scene.values("ZNAME", at: scene.store).isEmpty)
    #expect(try scene.quarantined().receipt?.salvage?.isWanted == false)
    #expect(opening.isWithLosses)
  }

  /// What the migration of a damaged store takes away is named as that of a sound one is, with the same count.
  @Test(arguments: [nil, Scene.Damage.foreignPage, .firstPage])
  func whatTheMigrationLeavesOutIsNamed(damage: Scene.Damage?) throws {
    let scene = try Scene(Self.first, ["ZNAME", "ZCOLOR"])
    try scene.put(damage)
    let opening = try scene.open(try scene.model([Self.first, Version("V2", Self.text("name"))]))
    try opening.store.close()
    #expect(opening.isWithLosses)
    #expect(try scene.values("ZNAME", at: scene.store) == Scene.values(of: "ZNAME"))
    let words = opening.events.map(\.words).joined(separator: " ")
    #expect(words.contains("left out \(Scene.count) values"), "\(words)")
    guard damage != nil else {
      #expect(opening.losses.map(\.property) == ["color"] && opening.losses.map(\.rows) == [Scene.count])
      return
    }
    let salvage = try #require(opening.salvage)
    #expect(salvage.isInstalled && !salvage.isComplete)
    // What the damage took is a row of the table that is none of the model's.
    #expect(salvage.entities.filter { $0.name == "Car" }.map(\.lost) == [0])
    #expect(salvage.migrationLosses?.map(\.entity) == ["Car"])
    #expect(salvage.migrationLosses?.map(\.property) == ["color"])
    #expect(salvage.migrationLosses?.map(\.count) == [Int64(Scene.count)])
    #expect(opening.notice?.message.contains("Some entries may be missing") == true)
    #expect((salvage.percent ?? 0) < 100 && !words.contains("(100 %)"), "\(words)")
    #expect(try report(of: scene).rebuild?.migrationLosses.map(\.property) == ["color"])
  }

  /// Whatever is wrong with the app's migrations, a store of its version is not migrated.
  @Test(arguments: [nil, Scene.Damage.foreignPage, .firstPage])
  func aStoreOfTheCurrentVersionNeedsNoWay(damage: Scene.Damage?) throws {
    let scene = try Scene(Self.first, ["ZNAME", "ZCOLOR"])
    try scene.put(damage)
    var migration = Migrator.Options()
    migration.stages = [MigrationStage(from: "V7", didMigrate: { _ in })]
    let opening = try scene.open(try scene.model([Self.first]), migration: migration)
    try opening.store.close()
    #expect(opening.salvage?.isInstalled == (damage == nil ? nil : true))
    #expect(try scene.values("ZCOLOR", at: scene.store) == Scene.values(of: "ZCOLOR"))
  }

  /// A stage is the app's own way: a sound store goes by it, and so does a damaged one.
  @Test(arguments: [nil, Scene.Damage.foreignPage, .firstPage])
  func stagesOfTheAppAreTaken(damage: Scene.Damage?) throws {
    let scene = try Scene(Self.first, ["ZNAME", "ZCOLOR"])
    try scene.put(damage)
    var migration = Migrator.Options()
    migration.stages = [
      MigrationStage(
        from: "V1", to: "V2",
        didMigrate: { context in
          try context.withDatabase { try $0.execute(sql: "UPDATE ZCAR SET ZCOLOR = 'by the stage ' || Z_PK") }
        })
    ]
    let last = Version("V2", Self.text("name"), Self.text("color"), Self.text("age"))
    let opening = try scene.open(try scene.model([Self.first, last]), migration: migration)
    try opening.store.close()
    #expect(try scene.values("ZCOLOR", at: scene.store) == (1...Scene.count).map { "by the stage \($0)" })
  }

  // MARK: Versions that the bundle lacks

  @Test(arguments: [nil, Scene.Damage.foreignPage, .firstPage])
  func anUnknownOlderVersionIsMigratedByTheModelThatItCarries(damage: Scene.Damage?) throws {
    let scene = try Scene(Version("V2", Self.text("name"), Self.text("color")), ["ZNAME", "ZCOLOR"])
    let model = try scene.model([
      Version("V1", Self.text("name")),
      Version("V3", Self.text("label", was: "name"), Self.text("color"), Self.text("age")),
    ])
    try scene.put(damage)
    let opening = try scene.open(model)
    try opening.store.close()
    #expect(try scene.values("ZLABEL", at: scene.store) == Scene.values(of: "ZNAME"))
    #expect(try scene.values("ZCOLOR", at: scene.store) == Scene.values(of: "ZCOLOR"))
  }

  /// Where its own model leads nowhere, the columns that the app's version has too are better than nothing.
  @Test func anUnknownOlderVersionWithoutAWayKeepsWhatFits() throws {
    let scene = try Scene(Version("V2", Self.text("name"), Self.text("color")), ["ZNAME", "ZCOLOR"])
    let model = try scene.model([
      Version("V1", Self.text("name")),
      Version("V3", Self.text("name"), Scene.attribute("color", "Binary"), Self.text("age")),
    ])
    try scene.put(.firstPage)
    let opening = try scene.open(model)
    try opening.store.close()
    #expect(opening.salvage?.isInstalled == true)
    #expect(try scene.values("ZNAME", at: scene.store) == Scene.values(of: "ZNAME"))
    let report = try report(of: scene)
    #expect(report.rebuild?.fittedBecause?.contains("mapping-not-inferable") == true)
    #expect(!report.isComplete && report.remarks.contains { $0.contains("by the names of tables and columns") })
  }

  /// Values that such a fit has no column for are set aside, counted, and no whole recovery.
  @Test func valuesWithoutAColumnAreCounted() throws {
    let scene = try Scene(Version("V2", Self.text("name"), Self.text("color")), ["ZNAME", "ZCOLOR"])
    let model = try scene.model([
      Version("V1", Self.text("name")),
      Version("V3", Self.text("label", was: "name"), Scene.attribute("color", "Binary")),
    ])
    try scene.put(.firstPage)
    let opening = try scene.open(model)
    try opening.store.close()
    let salvage = try #require(opening.salvage)
    // By the version that was found to fit best, one of both has no column.
    let missing = try ["ZNAME": "ZLABEL", "ZCOLOR": "ZCOLOR"].filter { column, place in
      try scene.values(place, at: scene.store) != Scene.values(of: column)
    }.keys.sorted()
    #expect(salvage.isInstalled && !missing.isEmpty)
    #expect(salvage.valuesSetAside == Int64(missing.count * Scene.count))
    #expect((salvage.percent ?? 0) < 100 && !salvage.isComplete)
    let words = opening.events.first { $0.kind == .salvage }?.words ?? ""
    #expect(!words.contains("100 %"), "\(words)")
    #expect(words.contains("\(missing.count * Scene.count) values that have no column were set aside"), "\(words)")
    #expect(try report(of: scene).rebuild?.valuesSetAside.map(\.property) == missing)
    // Each of them is in the file beside the result.
    let aside = try #require(salvage.setAside?.path)
    let queue = try DatabaseQueue(path: aside.string)
    for column in missing {
      let found = try queue.read {
        try String.fetchSet($0, sql: "SELECT \"\(column)\" FROM lazaret_columns_ZCAR")
      }
      #expect(found == Set(Scene.values(of: column).compactMap(\.self)))
    }
    try queue.close()
  }

  /// A way leads on, and the records do not fit: they wait as they are, and nothing is put into columns by their names.
  @Test(arguments: [nil, Scene.Damage.foreignPage, .firstPage])
  func recordsOfAnUnknownVersionThatDoNotFitWait(damage: Scene.Damage?) throws {
    let scene = try Scene(Version("V2", Self.text("name"), Self.text("color")), ["ZNAME", "ZCOLOR"])
    let queue = try DatabaseQueue(path: scene.whole.string)
    try queue.write { try $0.execute(sql: "UPDATE ZCAR SET ZCOLOR = 'ZCOLOR 3' WHERE Z_PK = 4") }
    try queue.close()
    var colors = Scene.values(of: "ZCOLOR")
    colors[3] = colors[2]
    let unique =
      "<uniquenessConstraints><uniquenessConstraint><constraint value='color'/></uniquenessConstraint>"
      + "</uniquenessConstraints>"
    let first = Version("V1", Self.text("name"))
    let label = Self.text("label", was: "name")
    let model = try scene.model([first, Version("V3", label, Self.text("color"), unique)])
    try scene.put(damage)
    for round in 1...2 {
      let error = try #require(throws: LazaretError.self) { try scene.open(model) }
      #expect(error.kind == .migrationFailed && !error.isEnvironmental, "round \(round): \(error)")
      #expect("\(error.code) \(error.detail)".contains("migration-constraint-violation"), "round \(round): \(error)")
      #expect(try scene.isEmpty() == (damage != nil))
    }
    guard damage != nil else { return }
    let stored = try scene.quarantined()
    #expect(stored.receipt?.salvage?.state == .salvaged)
    #expect(stored.receipt?.salvage?.failure?.code == Receipt.Salvage.notMigratedCode)
    let path = try #require(try folder(of: scene).result(of: stored)).store.main
    #expect(try scene.values("ZNAME", at: path) == Scene.values(of: "ZNAME"))
    #expect(try scene.values("ZCOLOR", at: path) == colors)
    let report = try report(of: scene)
    #expect(report.rebuild?.migrationFailure != nil && report.rebuild?.fittedBecause == nil && !report.isComplete)
    // An app without the constraint has every record.
    let opening = try scene.open(try scene.model([first, Version("V4", label, Self.text("color"))]))
    try opening.store.close()
    #expect(try scene.values("ZLABEL", at: scene.store) == Scene.values(of: "ZNAME"))
    #expect(try scene.values("ZCOLOR", at: scene.store) == colors)
  }

  /// What is wrong with the app's own steps is for the app to mend.
  @Test(arguments: [nil, Scene.Damage.foreignPage, .firstPage])
  func anUnknownVersionWaitsWhereAStepOfTheAppIsWrong(damage: Scene.Damage?) throws {
    let scene = try Scene(Version("V2", Self.text("name"), Self.text("color")), ["ZNAME", "ZCOLOR"])
    let model = try scene.model([
      Version("V1", Self.text("name")), Version("V3", Self.text("label", was: "name"), Self.text("color")),
    ])
    var migration = Migrator.Options()
    migration.stages = [MigrationStage(from: "V7", didMigrate: { _ in })]
    try scene.put(damage)
    for round in 1...2 {
      let error = try #require(throws: LazaretError.self) { try scene.open(model, migration: migration) }
      #expect(error.kind == .migrationFailed, "round \(round): \(error)")
      #expect(try scene.isEmpty() == (damage != nil))
    }
    if damage != nil {
      // It is not salvaged again as long as nothing can come of it.
      #expect(try scene.quarantined().receipt?.history.map(\.kind) == [.quarantined, .salvaged])
    }
    let opening = try scene.open(model)
    try opening.store.close()
    #expect(try scene.values("ZLABEL", at: scene.store) == Scene.values(of: "ZNAME"))
  }

  @Test func anUnknownNewerVersionWaitsWholeForANewerApp() throws {
    let own = Version("V2", Self.text("name"), Self.text("wheels"))
    let scene = try Scene(own, ["ZNAME", "ZWHEELS"])
    let model = try scene.model([Version("V1", Self.text("name"))])
    for damage in [nil, Scene.Damage.foreignPage] {
      try scene.put(damage)
      let error = try #require(throws: LazaretError.self) { try scene.open(model) }
      #expect(error.kind == .unavailable && error.code == "newer-model", "\(error)")
      #expect(try !scene.isEmpty())
      try FileSystem().unlink(scene.store)
    }
    try scene.put(.firstPage)
    for round in 1...2 {
      let error = try #require(throws: LazaretError.self) { try scene.open(model) }
      #expect(error.kind == .unavailable && error.code == "newer-model", "round \(round): \(error)")
      #expect(try scene.isEmpty())
      #expect(try scene.quarantined().receipt?.salvage?.failure?.code == Receipt.Salvage.newerAppCode)
    }
    // A salvage that was asked for puts it into no older version either.
    let asked = try Quarantines(home: scene.home, surroundings: .still()).salvage(
      scene.quarantined().files.main, model: model)
    #expect(!asked.result.isUsable && asked.failure?.code == Receipt.Salvage.newerAppCode)
    #expect(try scene.values("ZWHEELS", at: asked.store) == Scene.values(of: "ZWHEELS"))
    let opening = try scene.open(try scene.model([Version("V1", Self.text("name")), own]))
    try opening.store.close()
    #expect(try scene.values("ZWHEELS", at: scene.store) == Scene.values(of: "ZWHEELS"))
  }

  // MARK: Versions that the order leaves out

  @Test(arguments: [nil, Scene.Damage.foreignPage, .firstPage])
  func aVersionThatTheOrderLeavesOutIsMigrated(damage: Scene.Damage?) throws {
    let draft = Version("Draft", Self.text("title", was: "name"))
    let scene = try Scene(draft, ["ZTITLE"])
    let model = try scene.model(
      [Version("V1", Self.text("color")), Version("V2", Self.text("name"), Self.text("color")), draft],
      order: ["V1", "V2"])
    try scene.put(damage)
    let opening = try scene.open(model)
    try opening.store.close()
    #expect(opening.examination.modelVersion == (damage == .firstPage ? nil : "Draft"))
    #expect(try scene.values("ZNAME", at: scene.store) == Scene.values(of: "ZTITLE"))
  }

  /// Nothing says that it is newer: it is only not listed, and once it is, a way leads on.
  @Test(arguments: [nil, Scene.Damage.foreignPage])
  func aVersionThatTheOrderLeavesOutIsNotCalledNewer(damage: Scene.Damage?) throws {
    let own = Version("Own", Self.text("name"), Self.text("wheels"))
    let versions = [Version("V1", Self.text("color")), Version("V2", Self.text("name"), Self.text("color")), own]
    let scene = try Scene(own, ["ZNAME", "ZWHEELS"])
    try scene.put(damage)
    let before = try FolderContents(of: scene.folder.appending("Stores"))
    let error = try #require(throws: LazaretError.self) {
      try scene.open(try scene.model(versions, order: ["V1", "V2"]))
    }
    #expect(error.isEnvironmental && error.code == "unlisted-version", "\(error)")
    let told = try #require(error.examination)
    #expect(told.verdict == (damage == nil ? .unavailable : .damaged))
    let reason = try #require(told.newer)
    #expect(reason.words.contains("not among the versions whose order was given"), "\(reason.words)")
    #expect(!reason.words.contains("which is newer") && reason.words.contains("wheels"), "\(reason.words)")
    #expect(reason.hint.contains("in the order") && !reason.hint.contains("Update the app"), "\(reason.hint)")
    #expect(try FolderContents(of: scene.folder.appending("Stores")) == before)
    let opening = try scene.open(try scene.model(versions, order: ["V1", "Own", "V2"]))
    try opening.store.close()
    #expect(try scene.values("ZNAME", at: scene.store) == Scene.values(of: "ZNAME"))
  }

  /// What was salvaged of it waits for an order that has its version, and not for a newer app.
  @Test func whatIsSalvagedOfAnUnlistedVersionIsNotSaidToWaitForANewerApp() throws {
    let own = Version("Own", Self.text("name"), Self.text("wheels"))
    let versions = [Version("V1", Self.text("color")), Version("V2", Self.text("name"), Self.text("color")), own]
    let scene = try Scene(own, ["ZNAME", "ZWHEELS"])
    try scene.put(.firstPage)
    let error = try #require(throws: LazaretError.self) {
      try scene.open(try scene.model(versions, order: ["V1", "V2"]))
    }
    #expect(error.isEnvironmental && !error.hint.contains("Update the app"), "\(error)")
    let stored = try scene.quarantined()
    #expect(stored.receipt?.salvage?.failure?.code == "unlisted-version")
    let refused = try #require(throws: LazaretError.self) {
      try Quarantines(home: scene.home, surroundings: .still()).install(FilePath(stored.id))
    }
    #expect(refused.hint.contains("in the order") && !refused.hint.contains("Update"), "\(refused)")
  }

  /// The report of the salvage of the only quarantined store.
  private func report(of scene: Scene) throws -> SalvageReport {
    let path = try #require(try folder(of: scene).result(of: try scene.quarantined())).report
    let bytes = try FileSystem().contents(of: path, limit: 1 << 24)
    return try JSONDecoder().decode(SalvageReport.self, from: Data(bytes))
  }

  private func folder(of scene: Scene) throws -> QuarantineFolder {
    QuarantineFolder(beside: try StoreFileSet.locate(scene.store, in: FileSystem()), surroundings: .still())
  }
}
