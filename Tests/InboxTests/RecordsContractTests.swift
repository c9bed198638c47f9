import Foundation
import Inbox
import Platform
import SystemPackage
import TestSupport
import Testing

/// What every kind of records has to do, whatever it keeps them in.
@Suite("The records of the inbox")
struct RecordsContractTests {
  private func time(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: 1_000_000 + seconds) }

  private func id() -> String { "\(UniversalIdentifier.random())".lowercased() }

  /// Admits an upload, and makes a bundle of it.
  @discardableResult
  private func receive(
    _ records: any InboxRecords, from sender: String, bytes: Int64 = 10, sum: String? = nil, at seconds: Int64 = 0,
    fileName: String? = nil
  ) throws -> InboxBundle {
    let id = id()
    var upload = InboxUpload(
      id: id, sender: sender, length: bytes, created: time(seconds), expires: time(seconds + 100))
    upload.sha256 = sum
    #expect(try records.admit(upload, quota: 1 << 40, limits: InboxLimits()) == .begun)
    return try records.makeBundle(
      InboxBundle(
        id: id, sender: sender, date: time(seconds), sha256: sum ?? id, bytes: bytes, fileName: fileName, level: nil,
        isEncrypted: false),
      of: id)
  }

  private func add(_ sender: String, _ records: any InboxRecords, quota: Int64 = 1 << 40) throws {
    try records.add(InboxSender(name: sender, quota: quota, created: time(0)), tokenSum: Array(sender.utf8))
  }

  @Test(arguments: RecordsKind.available) func sendersAreKnownByTheirTokensUntilTheseAreRevoked(
    _ kind: RecordsKind
  ) throws {
    let folder = try TemporaryFolder()
    let records = try kind.open(folder).records
    // Bytes of a sum are any bytes; a name may have quotes and what SQL or LIKE take for themselves.
    let names = ["Zoë", "O'Brien; DROP TABLE lazaret.senders; --", "a\\b\"c%_"]
    for (index, name) in names.enumerated() {
      try records.add(
        InboxSender(name: name, quota: .max, created: time(5)), tokenSum: [0, 255, 92, UInt8(index)])
    }
    #expect(throws: InboxError.self) { try add(names[1], records) }
    #expect(throws: InboxError.self) { try add("a\u{0}b", records) }
    let again = try kind.open(folder).records
    #expect(try again.senders().map(\.name) == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    #expect(try again.senders().allSatisfy { $0.quota == .max && $0.created == time(5) && $0.revoked == nil })
    func owner(_ sum: [UInt8]) throws -> String? { try again.sender(withTokenSum: sum)?.sender.name }
    for (index, name) in names.enumerated() { #expect(try owner([0, 255, 92, UInt8(index)]) == name) }
    #expect(try owner([0, 255, 92]) == nil && owner([]) == nil)
    try again.revokeSender(names[1], at: time(7))
    try again.revokeSender(names[1], at: time(9))
    #expect(try again.senders().first { $0.name == names[1] }?.revoked == time(7))
    #expect(try owner([0, 255, 92, 1]) == nil && owner([0, 255, 92, 2]) == names[2])
    let error = #expect(throws: InboxError.self) { try again.revokeSender("none", at: time(7)) }
    #expect(error?.code == "no-such-sender")
  }

  @Test(arguments: RecordsKind.available) func whatCountsAgainstQuotas(_ kind: RecordsKind) throws {
    let records = try kind.open(try TemporaryFolder()).records
    try add("me", records, quota: 1000)
    try add("you", records)
    let limits = InboxLimits(totalBytes: 1500, openUploads: 2)
    func announce(_ sender: String, _ bytes: Int64, sum: String? = nil) throws -> (String, InboxAdmission) {
      var upload = InboxUpload(id: id(), sender: sender, length: bytes, created: time(0), expires: time(100))
      upload.sha256 = sum
      return (upload.id, try records.admit(upload, quota: sender == "me" ? 1000 : 1 << 40, limits: limits))
    }
    func used() throws -> [String: Int64] { try records.usage().filter { $0.value != 0 } }
    let (first, admission) = try announce("me", 400, sum: "aa")
    #expect(admission == .begun)
    #expect(try announce("me", 601).1 == .senderFull)
    #expect(try announce("me", 600).1 == .begun)
    #expect(try announce("me", 0).1 == .tooMany)
    #expect(try announce("you", 501).1 == .full)
    #expect(try used() == ["me": 1000])
    for upload in try records.openUploads() where upload.id != first { try records.drop(upload.id) }
    #expect(try used() == ["me": 400])
    try records.advance(first, to: 100, expires: time(500))
    #expect(try records.upload(first)?.offset == 100 && records.upload(first)?.expires == time(500).secondsSince1970)
    let bundle = InboxBundle(
      id: first, sender: "me", date: time(1), sha256: "aa", bytes: 400, fileName: nil, level: nil, isEncrypted: false)
    #expect(try records.makeBundle(bundle, of: first).id == first)
    // Done again, as after a kill.
    #expect(try records.makeBundle(bundle, of: first).id == first)
    #expect(try used() == ["me": 400])
    #expect(try records.bundleIDs() == [first: false])
    #expect(try records.place(600, of: first, totalBytes: 1500))
    #expect(try !records.place(601, of: first, totalBytes: 1500))
    #expect(try records.placed(of: first) == 600)
    #expect(try records.room(of: "me", totalBytes: 1500) == 0)
    #expect(try records.room(of: "you", totalBytes: 1500) == 500)
    #expect(try records.place(5000, of: first, totalBytes: nil) && records.room(of: "me", totalBytes: 1500) == -4400)
    #expect(try records.place(0, of: first, totalBytes: 1500))
    #expect(try records.place(7, of: "none", totalBytes: 1500))
    // The same again is known, from the same sender alone.
    guard case .known(let known) = try announce("me", 400, sum: "aa").1 else {
      Issue.record("not known")
      return
    }
    #expect(known.id == first && known.bundle == first && known.offset == 400)
    #expect(try announce("you", 400, sum: "aa").1 == .begun)
    try records.remove(first)
    #expect(try records.bundle(first) == nil && records.upload(first)?.state == .dropped)
    #expect(try used() == ["you": 400])
    #expect(try records.bundleCount() == 0)
  }

  @Test(arguments: RecordsKind.available) func anUploadThatIsOverStaysWhatItBecame(_ kind: RecordsKind) throws {
    let records = try kind.open(try TemporaryFolder()).records
    try add("me", records)
    let bundle = try receive(records, from: "me", sum: "aa")
    #expect(try !records.drop(bundle.id) && !records.drop("none"))
    #expect(try records.upload(bundle.id)?.state == .finished && records.bundle(bundle.id) == bundle)
    #expect(try records.makeBundle(bundle, of: bundle.id) == bundle)
    let name = id()
    let upload = InboxUpload(id: name, sender: "me", length: 10, created: time(0), expires: time(100))
    #expect(try records.admit(upload, quota: 1 << 40, limits: InboxLimits()) == .begun)
    #expect(try records.drop(name))
    #expect(try !records.drop(name))
    let late = InboxBundle(
      id: name, sender: "me", date: time(1), sha256: "bb", bytes: 10, fileName: nil, level: nil, isEncrypted: false)
    let error = #expect(throws: InboxError.self) { try records.makeBundle(late, of: name) }
    #expect(error?.kind == .notFound)
    #expect(try records.bundle(name) == nil && records.upload(name)?.state == .dropped)
    // Nor is one whose bundle was discarded a bundle again.
    try records.remove(bundle.id)
    #expect(throws: InboxError.self) { try records.makeBundle(bundle, of: bundle.id) }
    #expect(try records.bundleCount() == 0)
  }

  @Test(arguments: RecordsKind.available) func bundlesAreFoundByTextStateAndDamage(_ kind: RecordsKind) throws {
    let (records, queue) = try kind.open(try TemporaryFolder())
    try add("me", records)
    let names = [
      "Garage 100%.tar", "garage_1\\2.tar", "Ünïcode's \"x\".tar", "nul\u{0}in it",
      String(repeating: "long", count: 50_000),
    ]
    var bundles: [InboxBundle] = []
    for (index, name) in names.enumerated() {
      bundles.append(try receive(records, from: "me", at: Int64(index), fileName: name))
    }
    func found(_ words: String, _ group: String? = nil, _ state: InboxBundle.State? = nil, limit: Int = 10) throws
      -> [Int]
    {
      try records.entries(words: words, group: group, state: state, limit: limit).map { entry in
        bundles.firstIndex { $0.id == entry.bundle.id } ?? -1
      }
    }
    #expect(try found("") == [4, 3, 2, 1, 0])
    #expect(try found("", limit: 2) == [4, 3])
    #expect(try found("100%") == [0] && found("%") == [0] && found("_") == [1] && found("1\\2") == [1])
    #expect(try found("GARAGE") == [1, 0] && found("ünïcode's \"X\"") == [2] && found("longlong") == [4])
    #expect(try found("nul") == [3] && records.bundle(bundles[3].id)?.fileName == "nul\u{0}in it")
    #expect(try records.bundle(bundles[4].id)?.fileName == names[4])
    #expect(try found("no such text").isEmpty)

    var damaged = bundles[1]
    damaged.state = .quarantined
    damaged.fingerprint = DamageFingerprint(InboxDesk.facts())
    damaged.files = [.init(name: "x", bytes: 1)]
    damaged.fileCount = 1
    try records.save(damaged)
    #expect(try records.bundle(damaged.id) == damaged)
    let group = try #require(damaged.fingerprint?.group)
    #expect(
      try found("", group) == [1] && found("", nil, .quarantined) == [1] && found("garage", group, .received).isEmpty)
    #expect(try records.bundleIDs(in: .quarantined) == [damaged.id] && records.bundleIDs(in: .received).count == 4)
    #expect(try records.bundleCounts() == [.received: 4, .quarantined: 1])
    try queue.add(.open, for: damaged.id, at: time(1))
    try queue.add(.salvage, for: damaged.id, at: time(1))
    let entry = try #require(try records.entries(words: "", group: group, state: nil, limit: 5).first)
    #expect(entry.jobs.map(\.kind) == [.open, .salvage] && entry.bundle.files.isEmpty && entry.bundle.fileCount == 1)
    #expect(try records.entry(damaged.id)?.bundle.files.count == 1)
    // One that is gone stays gone.
    try records.remove(damaged.id)
    try records.save(damaged)
    #expect(try records.bundle(damaged.id) == nil && found("", group).isEmpty)
    #expect(try records.entry("none") == nil && records.bundle("none") == nil && records.upload("none") == nil)
  }

  @Test(arguments: RecordsKind.available) func ofVeryManyVersionsTheFirstAreListedAndAllAreCounted(
    _ kind: RecordsKind
  ) throws {
    let records = try kind.open(try TemporaryFolder()).records
    try add("me", records)
    let fingerprint = DamageFingerprint(InboxDesk.facts())
    func see(_ store: Int, _ version: String?) throws {
      try records.note(
        InboxSighting(
          bundle: "b", store: "\(store)", fingerprint: fingerprint, appVersion: version,
          date: time(Int64(store)).rfc3339))
    }
    for number in 0..<205 { try see(number, "7.\(number)" + String(repeating: "x", count: 1000)) }
    let group = try #require(try records.group(fingerprint.group))
    #expect(group.versions.count == 200 && group.furtherCount == 5 && group.count == 205)
    #expect(group.versions.allSatisfy { ($0.version?.count ?? 0) <= 200 })
    // Which was the oldest is not known any more, and is not said.
    #expect(group.words == "seen 205 times")
    // One that is known is counted by its name, and so is none at all where that is known.
    try see(300, "7.3" + String(repeating: "x", count: 1000))
    let again = try #require(try records.group(fingerprint.group))
    #expect(again.versions.count == 200 && again.furtherCount == 5 && again.versions.contains { $0.count == 2 })
  }

  @Test(arguments: RecordsKind.available) func uploadsAreReadSomeAtATime(_ kind: RecordsKind) throws {
    let records = try kind.open(try TemporaryFolder()).records
    try add("me", records)
    let ids = ["d", "a", "e", "c", "b"]
    for id in ids {
      let upload = InboxUpload(id: id, sender: "me", length: 4, created: time(0), expires: time(100))
      #expect(try records.admit(upload, quota: 1000, limits: InboxLimits()) == .begun)
    }
    try records.drop("c")
    var (found, last) = ([String](), String?.none)
    while let page = try Optional(records.openUploads(after: last, limit: 2)), let end = page.last {
      #expect(page.count <= 2)
      (found, last) = (found + page.map(\.id), end.id)
    }
    #expect(found == ["a", "b", "d", "e"])
  }

  @Test(arguments: RecordsKind.available) func equalDamageIsCountedOnceForEachStore(_ kind: RecordsKind) throws {
    let records = try kind.open(try TemporaryFolder()).records
    try add("me", records)
    func see(_ store: String, _ version: String?, _ date: Int64, tables: [String] = ["Car"]) throws {
      let fingerprint = DamageFingerprint(InboxDesk.facts(version: version, tables: tables))
      try records.note(
        InboxSighting(
          bundle: "b", store: store, fingerprint: fingerprint, appVersion: version, date: time(date).rfc3339))
    }
    try see("one", "2.10", 1)
    try see("two", "2.9", 2)
    try see("three", nil, 3)
    try see("four", "2.9", 4)
    try see("one", "2.10", 9)
    try see("other", "1", 5, tables: ["Wheel"])
    let groups = try records.groups(limit: 10)
    #expect(groups.count == 2)
    #expect(groups.map(\.last) == [time(5).rfc3339, time(4).rfc3339])
    let group = try #require(groups.last)
    #expect(group.count == 4 && group.first == time(1).rfc3339 && group.bundlesKept == 0)
    #expect(group.versions.map(\.version) == ["2.9", "2.10", nil] && group.versions.map(\.count) == [2, 1, 1])
    #expect(try records.group(group.id) == group && records.group("none") == nil)
    #expect(try records.groups(limit: 1).count == 1)
    // A store that turns out to have the other damage moves.
    try see("four", "2.9", 4, tables: ["Wheel"])
    #expect(try records.group(group.id)?.count == 3 && records.group(group.id)?.last == time(3).rfc3339)
    var bundle = try receive(records, from: "me")
    bundle.fingerprint = group.fingerprint
    try records.save(bundle)
    #expect(try records.group(group.id)?.bundlesKept == 1)
    try records.remove(bundle.id)
    #expect(try records.group(group.id)?.bundlesKept == 0)
  }

  @Test(arguments: RecordsKind.available) func uploadsThatAreOverAreForgotten(_ kind: RecordsKind) throws {
    let records = try kind.open(try TemporaryFolder()).records
    try add("me", records)
    try add("you", records)
    let limits = InboxLimits()
    var ended: [String] = []
    for number in 0..<1005 {
      let upload = InboxUpload(
        id: id(), sender: "me", length: 1, created: time(0), expires: time(number == 1004 ? 10 : 1000))
      #expect(try records.admit(upload, quota: 1000, limits: limits) == .begun)
      try records.drop(upload.id)
      ended.append(upload.id)
    }
    let open = InboxUpload(id: id(), sender: "you", length: 1, created: time(0), expires: time(5))
    #expect(try records.admit(open, quota: 1000, limits: limits) == .begun)
    try records.pruneUploads(at: time(10))
    let left = try ended.map { try records.upload($0) != nil }
    // The last one was over for long, and the oldest four were too many.
    #expect(left == Array(repeating: false, count: 4) + Array(repeating: true, count: 1000) + [false])
    #expect(try records.openUploads().map(\.id) == [open.id])
  }

  // MARK: Several at a time

  /// Does something on several threads, each with connections of its own.
  private func together(
    _ count: Int, _ kind: RecordsKind, _ folder: TemporaryFolder,
    _ body: @escaping @Sendable (Int, any InboxRecords, any JobQueue) throws -> Void
  ) throws {
    let errors = Mutex<[String]>([])
    let threads = DispatchGroup()
    for number in 0..<count {
      threads.enter()
      WorkThread.start(named: "test \(number)") {
        do {
          let (records, queue) = try kind.open(folder)
          try body(number, records, queue)
        } catch {
          errors.withLock { $0.append("\(error)") }
        }
        threads.leave()
      }
    }
    threads.wait()
    #expect(errors.withLock { $0 } == [])
  }

  @Test(arguments: RecordsKind.available) func eightThreadsTakeEachOf500JobsOnce(_ kind: RecordsKind) throws {
    let folder = try TemporaryFolder()
    let names = (0..<500).map { "bundle \($0)" }
    try kind.open(folder).queue.add(.open, forEach: names, at: time(0))
    let taken = Mutex<[String]>([])
    let (time, date) = (time(1), self.time(2))
    try together(8, kind, folder) { number, _, queue in
      while let job = try queue.lease(by: "worker \(number)", for: 60, at: time) {
        taken.withLock { $0.append(job.bundle) }
        #expect(try queue.end(job, .done, at: date) == .done)
      }
    }
    #expect(taken.withLock { $0.sorted() } == names.sorted())
    let queue = try kind.open(folder).queue
    #expect(try queue.counts() == [.done: 500] && queue.pending().isEmpty)
  }

  @Test(arguments: RecordsKind.available) func threadsThatWantTheLastRoomDoNotGetMoreThanThereIs(
    _ kind: RecordsKind
  ) throws {
    let folder = try TemporaryFolder()
    let records = try kind.open(folder).records
    for sender in 0..<4 { try add("sender \(sender)", records, quota: 250) }
    let begun = Mutex(0)
    let created = time(0)
    try together(8, kind, folder) { number, records, _ in
      for _ in 0..<20 {
        let upload = InboxUpload(
          id: "\(UniversalIdentifier.random())", sender: "sender \(number % 4)", length: 10, created: created,
          expires: created)
        let admission = try records.admit(upload, quota: 250, limits: InboxLimits(totalBytes: 900, openUploads: 1000))
        if admission == .begun { begun.withLock { $0 += 1 } }
      }
    }
    let usage = try records.usage()
    #expect(usage.values.reduce(0, +) == 900 && usage.values.allSatisfy { $0 <= 250 })
    #expect(begun.withLock { $0 } == 90)
    // The same for what is placed.
    let bundles = try (0..<4).flatMap { sender in
      try records.openUploads().filter { $0.sender == "sender \(sender)" }.prefix(2).map { upload in
        try records.makeBundle(
          InboxBundle(
            id: upload.id, sender: upload.sender, date: time(0), sha256: upload.id, bytes: 10, fileName: nil,
            level: nil,
            isEncrypted: false),
          of: upload.id
        ).id
      }
    }
    try together(8, kind, folder) { number, records, _ in
      _ = try records.place(17, of: bundles[number], totalBytes: 950)
    }
    #expect(try records.usage().values.reduce(0, +) == 900 + 2 * 17)
  }

  @Test(arguments: RecordsKind.available) func theSameFileFromManyThreadsIsOneBundle(_ kind: RecordsKind) throws {
    let folder = try TemporaryFolder()
    try add("me", try kind.open(folder).records)
    let kept = Mutex<Set<String>>([])
    let date = time(0)
    try together(6, kind, folder) { _, records, _ in
      let id = "\(UniversalIdentifier.random())"
      let upload = InboxUpload(id: id, sender: "me", length: 10, created: date, expires: date)
      _ = try records.admit(upload, quota: 1000, limits: InboxLimits())
      let bundle = InboxBundle(
        id: id, sender: "me", date: date, sha256: "aa", bytes: 10, fileName: nil, level: nil, isEncrypted: false)
      let one = try records.makeBundle(bundle, of: id).id
      kept.withLock { _ = $0.insert(one) }
    }
    let records = try kind.open(folder).records
    #expect(kept.withLock { $0.count } == 1)
    #expect(try records.bundleCount() == 1)
    #expect(try records.usage() == ["me": 10])
  }
}
