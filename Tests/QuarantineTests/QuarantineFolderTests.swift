import Foundation
import Lazaret
import Platform
import SystemPackage
import TestSupport
import Testing

/// A store of several files, and what a quarantine does to it.
struct QuarantineFolderTests {
  let folder: TemporaryFolder
  let system = FileSystem()

  init() throws { folder = try TemporaryFolder() }

  static let facts = QuarantineCase(
    reason: .init(code: "not-sqlite", words: "The file is not a SQLite database."),
    error: .init(coreData: 259, sqlite: 26),
    model: .init(version: "V1", identifiers: [""]), entities: [.init(name: "Car", table: "ZCAR", rows: 115)],
    versions: .init(app: "2.3", library: "0.1", operatingSystem: "test"))

  /// Makes a store with every part a store can have.
  func makeStore(_ name: String = "App.sqlite", content: String = "main") throws -> StoreFileSet {
    let set = StoreFileSet(main: folder.appending(name))
    try folder.write(content, to: name)
    try folder.write("wal", to: name + "-wal")
    try folder.write("shm", to: name + "-shm")
    try folder.write("journal", to: name + "-journal")
    let stem = name.split(separator: ".").first.map(String.init) ?? name
    try folder.write("large value", to: ".\(stem)_SUPPORT/_EXTERNAL_DATA/0A1B")
    try folder.write("another", to: ".\(stem)_SUPPORT/_EXTERNAL_DATA/deeper/0A1C")
    return set
  }

  /// The contents of a store's files by part, wherever they lie; external data by relative path.
  func contents(of set: StoreFileSet) throws -> [String: String] {
    var result: [String: String] = [:]
    for member in try set.members(in: system) {
      if member.part == .externalData {
        for file in try system.descendants(of: member.path).files {
          let name = file.relative.map(\.string).joined(separator: "/")
          result[name] = String(decoding: try system.contents(of: file.path, limit: 100), as: UTF8.self)
        }
      } else {
        result[member.part.rawValue] = String(decoding: try system.contents(of: member.path, limit: 100), as: UTF8.self)
      }
    }
    return result
  }

  static let whole = [
    "main": "main", "wal": "wal", "shm": "shm", "journal": "journal", "_EXTERNAL_DATA/0A1B": "large value",
    "_EXTERNAL_DATA/deeper/0A1C": "another",
  ]

  func quarantine(_ surroundings: Surroundings = .still()) -> QuarantineFolder {
    QuarantineFolder(folder.appending("Incompatible"), surroundings: surroundings)
  }

  @Test("A store that made room comes back where no other took its place")
  func replacementTakenBack() throws {
    let set = try makeStore()
    let quarantine = quarantine()
    try quarantine.noteReplacing(set)
    _ = try quarantine.add(set, because: Self.facts)
    #expect(try quarantine.hasInterrupted())
    #expect(try quarantine.finishInterrupted().map(\.isDone) == [false])
    #expect(try contents(of: set) == Self.whole)
    try quarantine.noteReplacing(set)
    #expect(try quarantine.finishInterrupted().isEmpty && !quarantine.hasInterrupted())
    #expect(try contents(of: set) == Self.whole)
  }

  @Test func leavesTheLargeValuesOfANeighbour() throws {
    let set = try makeStore("App.store")
    // Another database of the same name but for its extension refers to files of the same folder.
    try folder.write("SQLite format 3\0 and so on", to: "App.sqlite")
    let values = folder.appending(".App_SUPPORT")
    let before = try FolderContents(of: values)
    let stored = try quarantine().add(set, because: Self.facts)
    #expect(try FolderContents(of: values) == before)
    #expect(try contents(of: stored.files) == Self.whole)
    #expect(try system.status(of: set.main) == nil)
    // Alone it takes them along.
    try folder.write("no database", to: "App.sqlite")
    try folder.write("main", to: "App.store")
    _ = try quarantine().add(set, because: Self.facts)
    #expect(try system.status(of: values) == nil)
  }

  @Test func aLargeValueThatIsALinkIsNotedByWhatIsRead() throws {
    let set = try makeStore()
    let link = folder.appending(".App_SUPPORT/_EXTERNAL_DATA/0A1B")
    try folder.write("large value", to: "volume/0A1B")
    try system.unlink(link)
    try FileManager.default.createSymbolicLink(
      atPath: link.string, withDestinationPath: folder.appending("volume/0A1B").string)
    let stored = try quarantine().add(set, because: Self.facts)
    let noted = stored.receipt?.files.first { $0.name.text.hasSuffix("/0A1B") }
    #expect(noted?.bytes == Int64("large value".utf8.count))
    #expect(try contents(of: stored.files) == Self.whole)
    #expect(try quarantine().check(evidenceOf: stored, .content)?.differences.isEmpty == true)
  }

  @Test(arguments: [".App_SUPPORT", ".App_SUPPORT/_EXTERNAL_DATA"])
  func aLinkInThePlaceOfTheFolderOfLargeValuesIsRefused(name: String) throws {
    let set = try makeStore()
    let values = folder.appending(name)
    try system.rename(values, to: folder.appending("elsewhere"))
    try FileManager.default.createSymbolicLink(
      atPath: values.string, withDestinationPath: folder.appending("elsewhere").string)
    let before = try FolderContents(of: folder.appending("elsewhere"))
    let error = #expect(throws: FileError.self) { try quarantine().add(set, because: Self.facts) }
    #expect(error?.kind == .notRegularFile)
    #expect(try FolderContents(of: folder.appending("elsewhere")) == before)
    for part in [StoreFileSet.Part.main, .wal, .journal] {
      #expect(try system.status(of: set.path(of: part)) != nil)
    }
  }

  @Test func movesTheWholeSetUnderTheTime() throws {
    let set = try makeStore()
    let stored = try quarantine().add(set, because: Self.facts)
    #expect(stored.id == "2026-11-21-10-11-12")
    #expect(stored.files.main == folder.appending("Incompatible/2026-11-21-10-11-12.sqlite"))
    #expect(try contents(of: stored.files) == Self.whole)
    #expect(try set.members(in: system).isEmpty)
    let names = try system.entries(of: folder.appending("Incompatible")).map(\.string)
    #expect(
      names == [
        ".2026-11-21-10-11-12_SUPPORT", "2026-11-21-10-11-12.json", "2026-11-21-10-11-12.sqlite",
        "2026-11-21-10-11-12.sqlite-journal", "2026-11-21-10-11-12.sqlite-shm", "2026-11-21-10-11-12.sqlite-wal",
      ])
  }

  @Test func theReceiptProvesEveryFile() throws {
    let set = try makeStore()
    let stored = try quarantine().add(set, because: Self.facts)
    let receipt = try Receipt(at: stored.receiptPath, in: system)
    #expect(receipt.version == 1)
    #expect(receipt.date == "2026-11-21T10:11:12Z")
    #expect(receipt.reason == Self.facts.reason)
    #expect(receipt.error.sqlite == 26)
    #expect(receipt.originalPath.path == set.main)
    #expect(receipt.entities == Self.facts.entities)
    #expect(receipt.files.count == 6)
    #expect(receipt.files.first?.name.text == "2026-11-21-10-11-12.sqlite")
    for file in receipt.files {
      let path = folder.appending("Incompatible").pushing(try #require(file.name.path))
      #expect(try FileDigest(of: system.open(path)).hexadecimal == file.sha256)
      #expect(try system.status(of: path)?.size == file.bytes)
    }
  }

  @Test func twoInOneSecondDoNotCollide() throws {
    let ids = try (1...3).map { number in
      try quarantine().add(try makeStore(content: "main \(number)"), because: Self.facts).id
    }
    #expect(ids == ["2026-11-21-10-11-12", "2026-11-21-10-11-12-2", "2026-11-21-10-11-12-3"])
    #expect(try quarantine().stores().map(\.id) == ids.reversed())
    #expect(try contents(of: quarantine().store(named: ids[1]).files)["main"] == "main 2")
  }

  @Test func leftoversWithoutAMainFileAreTakenToo() throws {
    try folder.write("orphan", to: "App.sqlite-wal")
    let set = StoreFileSet(main: folder.appending("App.sqlite"))
    let stored = try quarantine().add(set, because: Self.facts)
    #expect(try contents(of: stored.files) == ["wal": "orphan"])
    #expect(try quarantine().stores().map(\.id) == [stored.id])
  }

  @Test func nothingIsNothing() throws {
    let error = #expect(throws: LazaretError.self) {
      try quarantine().add(StoreFileSet(main: folder.appending("none.sqlite")), because: Self.facts)
    }
    #expect(error?.code == "nothing-to-quarantine")
    #expect(try system.entries(of: folder.path).isEmpty)
  }

  @Test func goesAcrossFileSystemsByVerifiedCopy() throws {
    let other = FilePath("/tmp")
    guard try system.status(of: other)?.identity.device != system.status(of: folder.path)?.identity.device else {
      try Test.cancel("the machine has one file system only")
    }
    let elsewhere = try TemporaryFolder(in: other)
    let set = try makeStore()
    let quarantine = QuarantineFolder(elsewhere.path, surroundings: .still())
    let stored = try quarantine.add(set, because: Self.facts)
    #expect(try contents(of: stored.files) == Self.whole)
    #expect(try set.members(in: system).isEmpty)
    #expect(try system.entries(of: elsewhere.path).count == 6)
    #expect(try quarantine.release(stored.id) == set)
    #expect(try contents(of: set) == Self.whole)
  }

  @Test func aStoreWithASecondNameIsCopiedSoThatTheEvidenceStandsStill() throws {
    let set = try makeStore()
    try system.link(set.main, to: folder.appending("second-name"))
    let stored = try quarantine().add(set, because: Self.facts)
    let file = try system.create(folder.appending("second-name"), truncating: true)
    try file.write(Array("changed".utf8))
    #expect(try contents(of: stored.files) == Self.whole)
  }

  @Test func releasePutsItBack() throws {
    let set = try makeStore()
    let stored = try quarantine().add(set, because: Self.facts)
    #expect(try quarantine().release(stored.id) == set)
    #expect(try contents(of: set) == Self.whole)
    #expect(try quarantine().stores().isEmpty)
    let receipt = try Receipt(
      at: folder.appending("Incompatible/2026-11-21-10-11-12.released.json"), in: system)
    #expect(receipt.released?.path.path == set.main)
  }

  @Test func releaseRefusesATakenPlaceAndChangedEvidence() throws {
    let set = try makeStore()
    let stored = try quarantine().add(set, because: Self.facts)
    try folder.write("leftover", to: "App.sqlite-wal")
    #expect(throws: LazaretError.self) { try quarantine().release(stored.id) }
    try system.unlink(set.path(of: .wal))
    try folder.write("changed", to: "Incompatible/2026-11-21-10-11-12.sqlite")
    let error = #expect(throws: LazaretError.self) { try quarantine().release(stored.id) }
    #expect(error?.code == "evidence-changed")
    #expect(try set.members(in: system).isEmpty)
  }

  @Test func whatIsNoLongerAsQuarantinedIsTold() throws {
    let stored = try quarantine().add(try makeStore(), because: Self.facts)
    func check(_ depth: EvidenceCheck.Depth) throws -> EvidenceCheck {
      try #require(try quarantine().check(evidenceOf: stored, depth))
    }
    let whole = try check(.content)
    #expect(whole.differences.isEmpty && !whole.isMissing && whole.words == nil)
    #expect(try check(.size).differences.isEmpty)
    try folder.write("MAIN", to: "Incompatible/\(stored.id).sqlite")
    // Of other content a look at sizes says nothing.
    #expect(try check(.size).differences.isEmpty)
    #expect(try check(.size).digest == nil)
    let changed = try check(.content)
    #expect(changed.differences.map(\.kind) == [.content])
    #expect(changed.differences.first?.name.text == "\(stored.id).sqlite")
    #expect(changed.digest != whole.digest)
    try folder.write("longer", to: "Incompatible/\(stored.id).sqlite")
    try system.unlink(stored.files.path(of: .journal))
    let kinds = Dictionary(uniqueKeysWithValues: try check(.size).differences.map { ($0.name.text, $0.kind) })
    #expect(kinds == ["\(stored.id).sqlite": .size, "\(stored.id).sqlite-journal": .missing])
  }

  @Test func aLogThatCameLaterIsNoEvidence() throws {
    try folder.write("main", to: "App.sqlite")
    let stored = try quarantine().add(StoreFileSet(main: folder.appending("App.sqlite")), because: Self.facts)
    try folder.write("later", to: "Incompatible/\(stored.id).sqlite-wal")
    let check = try #require(try quarantine().check(evidenceOf: stored, .size))
    #expect(check.differences.map(\.kind) == [.added])
    let error = #expect(throws: LazaretError.self) { try quarantine().release(stored.id) }
    #expect(error?.code == "evidence-changed")
  }

  @Test func aStoreWhoseFilesAreGoneIsListedByItsReceipt() throws {
    let stored = try quarantine().add(try makeStore(), because: Self.facts)
    for part in [StoreFileSet.Part.main, .wal, .sharedMemory, .journal] {
      try system.unlink(stored.files.path(of: part))
    }
    try system.removeTree(stored.files.path(of: .externalData))
    #expect(try quarantine().stores().isEmpty)
    let listed = try quarantine().stores(includingMissing: true)
    #expect(listed.map(\.id) == [stored.id])
    #expect(listed.first?.receipt == stored.receipt)
    #expect(try quarantine().check(evidenceOf: stored, .size)?.isMissing == true)
    let error = #expect(throws: LazaretError.self) { try quarantine().store(named: stored.id) }
    #expect(error?.code == "evidence-missing")
    let release = #expect(throws: LazaretError.self) { try quarantine().release(stored.id) }
    #expect(release?.code == "evidence-missing")
    try quarantine().discard(stored.id)
    #expect(try quarantine().stores(includingMissing: true).isEmpty)
    #expect(!(try system.entries(of: folder.appending("Incompatible"))).contains { $0.string.hasPrefix(stored.id) })
  }

  @Test func aReleasedStoreIsNotMissing() throws {
    let stored = try quarantine().add(try makeStore(), because: Self.facts)
    _ = try quarantine().release(stored.id)
    #expect(try quarantine().stores(includingMissing: true).isEmpty)
  }

  @Test func discardRemovesEverythingOfThatStoreOnly() throws {
    let first = try quarantine().add(try makeStore(), because: Self.facts)
    let second = try quarantine().add(try makeStore(content: "second"), because: Self.facts)
    for name in ["salvaged.sqlite", "salvaged-2.sqlite", "salvaged.sqlite-set-aside", "salvage.json", "released.json"] {
      try folder.write("salvaged", to: "Incompatible/\(first.id).\(name)")
    }
    try folder.write("a large one", to: "Incompatible/.\(first.id).salvaged-2_SUPPORT/_EXTERNAL_DATA/0A1B")
    let before = Set(try system.entries(of: folder.appending("Incompatible")).map(\.string))
    let told = try quarantine().discarding(first)
    try quarantine().discard(first.id)
    // What was told is what went, and no more.
    let after = Set(try system.entries(of: folder.appending("Incompatible")).map(\.string))
    #expect(Set(told.items.map(\.name.text)) == before.subtracting(after))
    #expect(told.items.first { $0.name.text.hasSuffix("salvaged-2_SUPPORT") }?.bytes == 11)
    #expect(told.items.first { $0.name.text == ".\(first.id)_SUPPORT" }?.bytes == 18)
    #expect(told.installed == nil && told.words.contains("no installed copy"))
    #expect(try quarantine().stores().map(\.id) == [second.id])
    #expect(try contents(of: second.files)["main"] == "second")
    let names = try system.entries(of: folder.appending("Incompatible")).map(\.string)
    #expect(!names.contains { $0.hasPrefix("\(first.id).") })
  }

  @Test(arguments: [
    "", "..", "../App", "2026-11-21-10-11-12/../x", "2026-11-21-10-11-12-", "2026-11-21-10-11-12-x", "x",
  ])
  func namesThatAreNoneNeverReachTheFileSystem(id: String) throws {
    let error = #expect(throws: LazaretError.self) { try quarantine().discard(id) }
    #expect(error?.code == "not-in-quarantine")
  }

  @Test func anUnreadableReceiptHidesNoStore() throws {
    let stored = try quarantine().add(try makeStore(), because: Self.facts)
    try folder.write("{", to: "Incompatible/\(stored.id).json")
    let listed = try quarantine().stores()
    #expect(listed.map(\.id) == [stored.id])
    #expect(listed.first?.receipt == nil)
  }

  @Test func theCatalogueFindsEveryFolder() throws {
    let home = folder.appending("home")
    let catalogue = QuarantineCatalogue(home: home, surroundings: .still())
    #expect(try catalogue.stores().isEmpty)
    let stored = try quarantine().add(try makeStore(), because: Self.facts)
    try catalogue.add(quarantine())
    try catalogue.add(quarantine())
    #expect(try catalogue.folders().count == 1)
    #expect(try catalogue.stores().map(\.id) == [stored.id])
  }

  @Test func aFolderOfManyTakesOneLineInTheCatalogue() throws {
    let home = folder.appending("home")
    let catalogue = QuarantineCatalogue(home: home, surroundings: .still())
    try catalogue.add(quarantine())
    let store = try makeStore()
    let many = home.appending("Many")
    func add(_ name: String) throws {
      try FileSystem().makeDirectory(many)
      try FileSystem().makeDirectory(many.appending(name))
      let copy = StoreFileSet(main: many.appending(name).appending("App.sqlite"))
      try FileSystem().writeAtomically(
        try FileSystem().contents(of: store.main, limit: 1 << 20), to: copy.main, replacing: false)
      _ = try QuarantineFolder(beside: copy, surroundings: .still()).add(copy, because: Self.facts)
    }
    try add("b")
    let early = QuarantineFolder(many.appending("b").appending(QuarantineFolder.name), surroundings: .still())
    try catalogue.add(early)
    #expect(try catalogue.listedFolders().count == 1)
    try catalogue.add(parent: many)
    let bytes = try FileSystem().contents(of: home.appending("Quarantines.json"), limit: 1 << 20)
    try add("a")
    try catalogue.add(parent: many)
    #expect(try FileSystem().contents(of: home.appending("Quarantines.json"), limit: 1 << 20) == bytes)
    #expect(try catalogue.listedFolders().isEmpty)
    #expect(try catalogue.folders().map(\.path.folder.lastComponent?.string) == ["a", "b"])
    #expect(try catalogue.stores().count == 2)
    // A catalogue without parents is one too.
    try FileSystem().removeTree(many)
    #expect(try catalogue.folders().isEmpty)
  }
}
