import Lazaret
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Kills and failures at every write of the outbox.
struct InterruptedSendingTests {
  private static let troubles: [Trouble.Kind] = [.death, .failure(.noSpace), .failure(.ioError)]
  private let system = FileSystem()

  /// Whatever happened, the next runs bring it to an end: the receiver has the bundle, once, and the entry says so.
  private func expectArrival(_ desk: SendingDesk, _ what: Comment) throws {
    try desk.outbox().settle()
    let entry = try desk.add()
    let outcome = try desk.sender().send(entry.id)
    #expect(outcome.receipt.sha256 == entry.sha256, what)
    try desk.expectArrived(what)
    try desk.outbox().settle()
    let listing = try desk.outbox().listing()
    #expect(listing.entries.count == 1 && listing.unreadable.isEmpty, what)
    #expect(listing.entries.first?.state == .sent, what)
    let names = try system.descendants(of: desk.outbox().path)
    #expect(names.files.count == 1 && names.folders.count == 1, what)
  }

  private func atEveryStep(
    of kinds: [Trouble.Kind] = troubles, _ prepare: (SendingDesk) throws -> Void = { _ in },
    job: (SendingDesk, FileSystem) throws -> Void,
    check: (SendingDesk, Comment) throws -> Void
  ) throws {
    let rehearsal = Trouble(.death, atStep: 0)
    let first = try SendingDesk()
    try prepare(first)
    try job(first, rehearsal.fileSystem)
    #expect(rehearsal.steps >= 4)
    for kind in kinds {
      for step in 1...rehearsal.steps {
        let desk = try SendingDesk()
        try prepare(desk)
        do { try job(desk, Trouble(kind, atStep: step).fileSystem) } catch is SupportBundleError {}
        try check(desk, "\(kind) at step \(step)")
      }
    }
  }

  @Test func addingIsWholeOrNotDone() throws {
    try atEveryStep { desk, fileSystem in
      _ = try desk.add(in: desk.outbox(fileSystem))
    } check: { desk, what in
      let listing = try desk.outbox().listing()
      #expect(listing.unreadable.isEmpty && listing.entries.count <= 1, what)
      #expect(try system.status(of: desk.bundle) != nil, what)
      try expectArrival(desk, what)
    }
  }

  @Test func sendingIsGoneOnWith() throws {
    try atEveryStep { desk in
      try desk.add()
    } job: { desk, fileSystem in
      let outbox = desk.outbox(fileSystem)
      _ = try desk.sender(outbox).send(try desk.outbox().listing().entries[0].id)
    } check: { desk, what in
      // A receipt is never lost once it is there, and the bundle never goes before.
      let entry = try #require(try desk.outbox().listing().entries.first)
      if entry.state != .sent { #expect(try system.status(of: desk.outbox().bundlePath(of: entry.id)) != nil, what) }
      try expectArrival(desk, what)
      // No byte was sent twice: the offset is the receiver's to say.
      #expect(desk.receiver.state.withLock { $0.received } <= 2 * entry.bytes, what)
    }
  }

  @Test func cancellingIsEndedLater() throws {
    try atEveryStep { desk in
      let entry = try desk.add()
      desk.receiver.order(.patch, .cut(0.5))
      _ = try desk.failure(desk.sender(tries: 1), entry.id)
    } job: { desk, fileSystem in
      _ = try desk.sender(desk.outbox(fileSystem)).cancel(try desk.outbox().listing().entries[0].id)
    } check: { desk, what in
      try desk.outbox().settle()
      let entry = try #require(try desk.outbox().listing().entries.first)
      #expect(entry.state == .cancelled || entry.state == .waiting, what)
      let bundle = try system.status(of: desk.outbox().bundlePath(of: entry.id))
      #expect((bundle == nil) == (entry.state == .cancelled), what)
    }
  }

  @Test func pruningTakesWholeEntries() throws {
    try atEveryStep { desk in
      _ = try desk.sender().send(try desk.add().id)
      desk.time.pass(100 * 86_400)
    } job: { desk, fileSystem in
      _ = try desk.outbox(fileSystem).settle()
    } check: { desk, what in
      #expect(try desk.outbox().listing().unreadable.isEmpty, what)
      try desk.outbox().settle()
      #expect(try system.entries(of: desk.outbox().path).isEmpty, what)
    }
  }

  /// A quarantined store that a bundle was made of.
  private func quarantine(_ desk: SendingDesk) throws -> QuarantineFolder {
    let surroundings = desk.time.surroundings()
    try desk.folder.write("a store", to: "Stores/App.sqlite")
    let folder = QuarantineFolder(desk.folder.appending("Stores/Incompatible"), surroundings: surroundings)
    let stored = try folder.add(
      StoreFileSet(main: desk.folder.appending("Stores/App.sqlite")),
      because: QuarantineCase(
        reason: .init(code: "not-sqlite", words: "It is none."), error: .init(), model: nil, entities: nil,
        versions: .init(app: nil, library: "0", operatingSystem: "test")))
    try QuarantineCatalogue(home: desk.home, surroundings: surroundings).add(folder)
    let preview = try desk.preview()
    try folder.update(stored.id) { receipt in
      receipt.add(
        Receipt.Export(
          at: surroundings.now(), level: "scrubbed", path: PathText(desk.bundle), bytes: preview.bytes,
          sha256: preview.sha256, isEncrypted: true), at: surroundings.now())
    }
    return folder
  }

  @Test func theReceiptIsNotedWithTheQuarantinedStore() throws {
    let desk = try SendingDesk(isEncrypted: true)
    let folder = try quarantine(desk)
    #expect(try desk.preview().level == .scrubbed, "the receipt tells what an encrypted bundle holds")
    let entry = try desk.add()
    // Another process is salvaging: the receipt is noted later, and until then the bundle stays.
    let lock = try folder.salvageLock()
    let outcome = try desk.sender().send(entry.id)
    #expect(outcome.quarantined.isEmpty)
    #expect(try system.status(of: desk.outbox().bundlePath(of: entry.id)) != nil)
    _ = consume lock
    let id = try folder.stores()[0].id
    #expect(try desk.sender().send(entry.id).quarantined == [id])
    #expect(try system.status(of: desk.outbox().bundlePath(of: entry.id)) == nil)
    let receipt = try #require(try folder.stores()[0].receipt)
    #expect(receipt.deliveries?.map(\.id) == ["u1"])
    #expect(receipt.deliveries?.first?.receiver == "https://support.example.com")
    #expect(receipt.history.last?.kind == .sent)
  }

  @Test func aCatalogueThatCannotBeReadKeepsNothingFromBeingSent() throws {
    let desk = try SendingDesk(isEncrypted: true)
    _ = try quarantine(desk)
    let catalogue = desk.home.appending("Quarantines.json")
    let good = try system.contents(of: catalogue, limit: 1 << 20)
    try system.writeAtomically([1, 2, 3], to: catalogue, replacing: true)
    #expect(try desk.preview().level == nil)
    let outcome = try desk.sender().send(try desk.add().id)
    #expect(outcome.problem?.code == "catalogue-unreadable")
    try desk.expectArrived()
    try desk.outbox().settle()
    // It is noted as soon as it can be.
    try system.writeAtomically(good, to: catalogue, replacing: true)
    try desk.outbox().settle()
    let folder = QuarantineFolder(desk.folder.appending("Stores/Incompatible"), surroundings: .still())
    #expect(try folder.stores().first?.receipt?.deliveries?.count == 1)
  }

  @Test func aReceiptIsNotedOnceWhateverHappens() throws {
    try atEveryStep(of: [.death]) { desk in
      _ = try quarantine(desk)
      try desk.add()
    } job: { desk, fileSystem in
      _ = try desk.sender(desk.outbox(fileSystem)).send(try desk.outbox().listing().entries[0].id)
    } check: { desk, what in
      try expectArrival(desk, what)
      let folder = QuarantineFolder(desk.folder.appending("Stores/Incompatible"), surroundings: .still())
      #expect(try folder.stores().first?.receipt?.deliveries?.count == 1, what)
    }
  }
}
