import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

struct OutboxTests {
  private let system = FileSystem()

  @Test(arguments: [false, true])
  func aBundleIsShownAndKept(isEncrypted: Bool) throws {
    let desk = try SendingDesk(level: .full, isEncrypted: isEncrypted)
    let preview = try desk.preview()
    #expect(preview.isEncrypted == isEncrypted)
    #expect(preview.level == (isEncrypted ? nil : .full))
    #expect(preview.showsRecords == !isEncrypted)
    #expect(preview.sha256 == FileDigest(of: try desk.bytes()).hexadecimal)
    let entry = try desk.add()
    #expect(entry.state == .waiting)
    #expect(entry.id == "2026-11-21-10-11-12-\(preview.sha256.prefix(8))")
    let outbox = desk.outbox()
    #expect(try outbox.listing() == .init(entries: [entry], unreadable: []))
    let kept = try #require(try system.status(of: outbox.bundlePath(of: entry.id)))
    let original = try #require(try system.status(of: desk.bundle))
    #expect(kept.identity == original.identity, "a file that is its owner's alone gets a second name")
    #expect(kept.permissions == .ownerReadWrite)
    #expect(try system.status(of: outbox.path)?.permissions == .ownerReadWriteExecute)
    let file = try system.status(of: outbox.path.appending(entry.id).appending("entry.json"))
    #expect(file?.permissions == .ownerReadWrite)
    // The same again is the same.
    #expect(try desk.add() == entry)
    #expect(try outbox.listing().entries.count == 1)
    // For another receiver it is another.
    try desk.add(to: "https://other.example.com/")
    #expect(try outbox.listing().entries.count == 2)
    #expect(try outbox.entry(entry.id) == entry)
    #expect(throws: SupportBundleError.self) { try outbox.entry(String(entry.sha256.prefix(4))) }
    #expect(throws: SupportBundleError.self) { try outbox.entry("") }
    #expect(throws: SupportBundleError.self) { try outbox.entry("../../etc") }
  }

  @Test func aFileThatOthersCanReadIsCopied() throws {
    let desk = try SendingDesk()
    let open = desk.folder.appending("open.tar.gz")
    let file = try system.create(open, permissions: .init(rawValue: 0o644))
    try file.write(try desk.bytes())
    let preview = try BundlePreview(of: open, home: desk.home)
    let entry = try desk.outbox().add(preview, to: try desk.address())
    let kept = try #require(try system.status(of: desk.outbox().bundlePath(of: entry.id)))
    #expect(kept.permissions == .ownerReadWrite)
    #expect(kept.identity != (try system.status(of: open))?.identity)
    #expect(try system.status(of: open)?.permissions == .init(rawValue: 0o644))
  }

  @Test func whatIsNoBundleIsRefused() throws {
    let desk = try SendingDesk()
    try desk.folder.write("SQLite format 3\0 and so on", to: "App.sqlite")
    try desk.folder.write([0x1f, 0x8b, 8, 0, 1, 2, 3], to: "broken.gz")
    try desk.folder.write([], to: "empty")
    for name in ["App.sqlite", "broken.gz", "empty"] {
      let error = #expect(throws: SupportBundleError.self) {
        try BundlePreview(of: desk.folder.appending(name), home: desk.home)
      }
      #expect(error?.code == "bundle-unreadable", "\(name)")
    }
    let missing = #expect(throws: SupportBundleError.self) {
      try BundlePreview(of: desk.folder.appending("none"), home: desk.home)
    }
    #expect(missing?.code == "file-not-found")
    if ChildProcess.exists("tar") {
      _ = try ChildProcess.run("tar", ["czf", "other.tar.gz", "App.sqlite"], in: desk.folder.path)
      #expect(throws: SupportBundleError.self) {
        try BundlePreview(of: desk.folder.appending("other.tar.gz"), home: desk.home)
      }
    }
  }

  @Test func aFileThatChangedSinceItWasShownIsRefused() throws {
    let desk = try SendingDesk()
    let preview = try desk.preview()
    let file = try system.update(desk.bundle)
    try file.write([1, 2, 3], at: 1000)
    let error = #expect(throws: SupportBundleError.self) { try desk.outbox().add(preview, to: try desk.address()) }
    #expect(error?.code == "bundle-changed")
    #expect(try system.entries(of: desk.outbox().path).isEmpty)
  }

  @Test func theSizeOfAllIsLimited() throws {
    let desk = try SendingDesk()
    let size = Int64(try desk.bytes().count)
    let outbox = desk.outbox(limit: size + 10)
    try desk.add(in: outbox)
    let error = #expect(throws: SupportBundleError.self) { try desk.add(to: "https://other.example.com/", in: outbox) }
    #expect(error?.code == "outbox-full")
    #expect(try outbox.listing().entries.count == 1)
    // What was sent takes no room.
    _ = try desk.sender(outbox).send(try outbox.listing().entries[0].id)
    try desk.add(to: "https://other.example.com/", in: outbox)
  }

  @Test func aDamagedEntryIsNamedAndHarmsNoOther() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    let outbox = desk.outbox()
    let other = "2026-11-21-10-11-13-00000000"
    try system.makeDirectory(outbox.path.appending(other))
    #expect(try outbox.listing().unreadable == [other])
    for text in ["", "{}", "[]", "{\"format\": 1}", String(repeating: "[", count: 9000)] {
      try system.writeAtomically(
        Array(text.utf8), to: outbox.path.appending(other).appending("entry.json"), replacing: true)
      #expect(try outbox.listing() == .init(entries: [entry], unreadable: [other]))
    }
    // Neither is an entry that says to be another.
    let bytes = try system.contents(of: outbox.path.appending(entry.id).appending("entry.json"), limit: 1 << 20)
    try system.writeAtomically(bytes, to: outbox.path.appending(other).appending("entry.json"), replacing: true)
    #expect(try outbox.listing().unreadable == [other])
    #expect(try outbox.settle() == 0)
    try system.makeDirectory(outbox.path.appending("not-an-entry"))
    #expect(try outbox.listing().entries == [entry])
  }

  @Test func whatIsOverGoesAfterNinetyDays() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    _ = try desk.sender().send(entry.id)
    let waiting = try desk.add(to: "https://other.example.com/")
    desk.time.pass(89 * 86_400)
    #expect(try desk.outbox().settle() == 0)
    desk.time.pass(2 * 86_400)
    #expect(try desk.outbox().settle() == 1)
    #expect(try desk.outbox().listing().entries.map(\.id) == [waiting.id])
  }

  @Test func oneProcessSendsAnEntry() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    let lock = try FolderLock(desk.outbox().path.appending(entry.id), in: system)
    #expect(try desk.failure(entry.id).code == "outbox-entry-busy")
    #expect(try desk.add() == entry)
    #expect(throws: SupportBundleError.self) { try desk.sender().cancel(entry.id) }
    try desk.outbox().settle()
    _ = consume lock
    _ = try desk.sender().send(entry.id)
  }

  @Test func cancellingTakesTheBundleBack() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    desk.receiver.order(.patch, .cut(1), .unreachable)
    _ = try desk.failure(desk.sender(tries: 1), entry.id)
    #expect(desk.receiver.state.withLock { $0.uploads.count } == 1)
    let (cancelled, isTold) = try desk.sender().cancel(entry.id)
    #expect(cancelled.state == .cancelled && isTold)
    #expect(desk.receiver.state.withLock { $0.deleted } == ["u1"])
    #expect(try system.status(of: desk.outbox().bundlePath(of: entry.id)) == nil)
    #expect(try system.status(of: desk.bundle) != nil)
    #expect(try desk.failure(entry.id).code == "outbox-entry-over")
    // It can be sent again by itself.
    desk.time.pass(1)
    let again = try desk.add()
    #expect(again.id != entry.id)
    _ = try desk.sender().send(again.id)
    try desk.expectArrived()
    #expect(throws: SupportBundleError.self) { try desk.sender().cancel(again.id) }
  }
}
