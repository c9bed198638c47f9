import Foundation
import Inbox
import ObjectStorage
import Platform
import StorageServers
import SystemPackage
import TestSupport
import Testing

/// What every storage of bundles does, in a folder and in object storage.
@Suite("Where bundles lie")
struct BundleStorageTests {
  private static func bundle(_ bytes: [UInt8], id: String? = nil) -> InboxBundle {
    InboxBundle(
      id: id ?? "\(UniversalIdentifier.random())".lowercased(), sender: "me",
      date: Timestamp(secondsSince1970: 1_795_255_872), sha256: FileDigest(of: bytes).hexadecimal,
      bytes: Int64(bytes.count), fileName: nil, level: nil, isEncrypted: false)
  }

  /// Lays a bundle's file where a process that receives has it.
  private static func lay(_ bytes: [UInt8], of bundle: InboxBundle, in home: FilePath) throws {
    let folders = InboxFolders(home: home)
    try FileSystem().makeDirectory(folders.bundle(bundle.id))
    let file = try FileSystem().create(folders.received(bundle.id, encrypted: false), truncating: true)
    try file.write(bytes)
  }

  /// The file that was laid there.
  private static func file(_ bundle: InboxBundle, in home: FilePath) -> FilePath {
    InboxFolders(home: home).received(bundle.id, encrypted: false)
  }

  private static func content(_ path: FilePath) throws -> [UInt8] {
    try FileSystem().contents(of: path, limit: 1 << 28)
  }

  private static func noise(_ count: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: 9)
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  @Test(arguments: BundleStorageKind.present, [100, 20 << 20])
  func whatIsKeptIsThereOnEveryMachineUntilItIsRemoved(_ kind: BundleStorageKind, _ size: Int) throws {
    let site = try kind.make()
    let bytes = Self.noise(size)
    let bundle = Self.bundle(bytes)
    let storage = try site.storage("a")
    #expect(try storage.isEmpty())
    try Self.lay(bytes, of: bundle, in: site.home("a"))
    // A process that was killed does it again.
    for _ in 0..<2 { try storage.keep(bundle, from: Self.file(bundle, in: site.home("a"))) }
    try storage.release(bundle)
    #expect(try Self.content(storage.received(bundle)) == bytes)
    let other = try site.storage("b")
    #expect(!(try other.isEmpty()))
    for _ in 0..<2 { #expect(try Self.content(other.received(bundle)) == bytes) }
    for _ in 0..<2 { try storage.remove(bundle.id) }
    #expect(try other.isEmpty())
    let error = #expect(throws: InboxError.self) { try site.storage("c").received(bundle) }
    #expect(error?.kind == .missing)
    #expect(try site.keys().isEmpty)
  }

  @Test(arguments: BundleStorageKind.present)
  func theMarkOfAnInboxIsGivenOnce(_ kind: BundleStorageKind) throws {
    let site = try kind.make()
    let (first, second) = (
      "\(UniversalIdentifier.random())".lowercased(), "\(UniversalIdentifier.random())".lowercased()
    )
    #expect(try site.storage("a").mark() == nil)
    #expect(try site.storage("a").makeMark(first) == first)
    #expect(try site.storage("b").makeMark(second) == first)
    #expect(try site.storage("c").mark() == first)
  }

  // MARK: Shared storage

  /// A result of a job that opens a bundle.
  private static func result(of bundle: InboxBundle, _ home: FilePath, _ text: String) throws -> MadeResult {
    let folders = InboxFolders(home: home)
    let folder = folders.bundle(bundle.id)
    try FileSystem().makeDirectory(folder.appending("bag/data"))
    try FileSystem().writeAtomically(Array(text.utf8), to: folder.appending("bag/data/x"), replacing: true)
    // What a hostile worker would like to have read.
    try FileManager.default.createSymbolicLink(
      atPath: folder.appending("bag/link").string, withDestinationPath: "/etc/passwd")
    let opened = "{\"level\":\"full\",\"store\":\"App\",\"files\":[],\"fileCount\":1}"
    return MadeResult(
      folders: folders, opened: try JSONDecoder().decode(WorkResult.Opened.self, from: Data(opened.utf8)),
      placedBytes: 8192)
  }

  private static func making(_ bundle: InboxBundle) throws -> BundleMaking {
    let sum = FileDigest(of: Array(bundle.sha256.utf8)).hexadecimal
    let text = "{\"kind\":\"open\",\"bundle\":\"\(bundle.id)\",\"sum\":\"\(sum)\"}"
    return try JSONDecoder().decode(BundleMaking.self, from: Data(text.utf8))
  }

  @Test(arguments: BundleStorageKind.shared)
  func whatIsMadeOfTheSameIsKeptOnce(_ kind: BundleStorageKind) throws {
    let site = try kind.make()
    var bundle = Self.bundle([1, 2, 3])
    let making = try Self.making(bundle)
    let (first, second) = (try site.storage("a"), try site.storage("b"))
    #expect(try first.result(of: making) == nil)
    let stored = try first.keep(try Self.result(of: bundle, site.folder.appending("w1"), "first"), of: making)
    #expect(try second.keep(try Self.result(of: bundle, site.folder.appending("w2"), "second"), of: making) == stored)
    #expect(try second.result(of: making) == stored)
    #expect(try site.keys().count == 2)
    bundle.opened = stored.archive
    let other = try site.storage("c")
    try other.place(bundle)
    let folder = InboxFolders(home: try site.home("c")).bundle(bundle.id)
    #expect(try Self.content(folder.appending("bag/data/x")) == Array("first".utf8))
    #expect(try FileSystem().entries(of: folder.appending("bag")).map(\.string) == ["data"])
    // Another worker may be about to say that it counts.
    try other.removeResults(of: bundle.id)
    #expect(try first.result(of: making) == stored)
    try site.storage("d").place(bundle)
    try other.remove(bundle.id)
    #expect(try first.result(of: making) == nil)
    #expect(throws: InboxError.self) { try site.storage("e").place(bundle) }
  }

  @Test(arguments: [[1, 2, 3], nil] as [[UInt8]?])
  func aResultWhoseArchiveIsNotItIsMadeAnew(_ bytes: [UInt8]?) throws {
    let site = try BundleStorageKind.memory.make()
    var bundle = Self.bundle([1, 2, 3])
    let (storage, making) = (try site.storage("a"), try Self.making(bundle))
    bundle.opened = try storage.keep(try Self.result(of: bundle, site.folder.appending("w"), "x"), of: making).archive
    let place = try #require(site.place)
    let key = place.address.key(try #require(try site.keys().first { $0.hasSuffix(".tar.gz") }))
    if let bytes { try place.client.put(key, bytes[...]) } else { try place.client.delete(key) }
    let error = #expect(throws: InboxError.self) { try storage.place(bundle) }
    #expect(error?.kind == .altered || error?.kind == .missing)
    #expect(try storage.result(of: making) == nil)
    let stored = try storage.keep(try Self.result(of: bundle, site.folder.appending("v"), "x"), of: making)
    #expect(stored.archive?.mark != bundle.opened?.mark)
    bundle.opened = stored.archive
    try storage.place(bundle)
  }

  @Test func aResultWithoutItsArchiveIsMadeAnew() throws {
    let site = try BundleStorageKind.memory.make()
    let bundle = Self.bundle([1, 2, 3])
    let (storage, making) = (try site.storage("a"), try Self.making(bundle))
    _ = try storage.keep(try Self.result(of: bundle, site.folder.appending("w1"), "first"), of: making)
    let place = try #require(site.place)
    for key in try site.keys() where key.hasSuffix(".tar.gz") { try place.client.delete(place.address.key(key)) }
    #expect(try storage.result(of: making) == nil)
    let stored = try storage.keep(try Self.result(of: bundle, site.folder.appending("w2"), "second"), of: making)
    #expect(try storage.result(of: making) == stored)
  }

  @Test func bytesThatWereAlteredAreNeverHandedOn() throws {
    let site = try BundleStorageKind.memory.make()
    let bundle = Self.bundle([1, 2, 3])
    try Self.lay([1, 2, 3], of: bundle, in: site.home("a"))
    try site.storage("a").keep(bundle, from: Self.file(bundle, in: site.home("a")))
    let place = try #require(site.place)
    for bytes: [UInt8] in [[1, 2, 4], [1, 2], [1, 2, 3, 4]] {
      try place.client.put(place.address.key("bundles/\(bundle.id)/bundle.lazaret.tar.gz"), bytes[...])
      let storage = try site.storage("b")
      if bytes.count == 4 {
        // What was kept is the beginning of it.
        #expect(try Self.content(storage.received(bundle)) == [1, 2, 3])
        try storage.remove(bundle.id)
        continue
      }
      let error = #expect(throws: InboxError.self) { try storage.received(bundle) }
      #expect(error?.kind == .altered)
      let folder = InboxFolders(home: try site.home("b")).bundle(bundle.id)
      #expect(try FileSystem().entries(of: folder).isEmpty)
    }
  }

  @Test func copiesGoThatThereIsNoRoomFor() throws {
    let site = try BundleStorageKind.memory.make()
    let storage = try site.storage("a", copyBytes: 250_000)
    let folders = InboxFolders(home: try site.home("a"))
    let bundles = try (0..<5).map { number in
      let bytes = Self.noise(100_000 + number)
      let bundle = Self.bundle(bytes)
      try Self.lay(bytes, of: bundle, in: site.home("a"))
      try storage.keep(bundle, from: Self.file(bundle, in: site.home("a")))
      try storage.release(bundle)
      return bundle
    }
    #expect(try FileSystem().entries(of: folders.bundles).count == 2)
    for bundle in bundles {
      #expect(try FileDigest(of: FileSystem().open(storage.received(bundle))).hexadecimal == bundle.sha256)
      #expect(try FileSystem().entries(of: folders.bundles).count <= 2)
    }
  }

  @Test func copiesStayThatAPageReadsOrThatSomethingIsWorkingAt() throws {
    let site = try BundleStorageKind.memory.make()
    let folders = InboxFolders(home: try site.home("a"))
    func bundles(_ storage: any BundleStorage) throws -> [InboxBundle] {
      try (0..<3).map { number in
        let bytes = Self.noise(100_000 + number)
        let bundle = Self.bundle(bytes)
        try Self.lay(bytes, of: bundle, in: site.home("elsewhere"))
        try storage.keep(bundle, from: Self.file(bundle, in: site.home("elsewhere")))
        return bundle
      }
    }
    func copies() throws -> Set<String> { Set(try FileSystem().entries(of: folders.bundles).map(\.string)) }
    let storage = try site.storage("a", copyBytes: 150_000)
    let worked = try bundles(storage)
    let first = worked[0].id
    storage.uses.ask { $0 == first }
    for bundle in worked { _ = try storage.received(bundle) }
    #expect(try copies() == [first, worked[2].id])
    for id in try copies() { try FileSystem().removeTree(folders.bundle(id)) }
    // Those that were read a moment ago: more than there is room for, and no more than they once the moment is over.
    let reading = try site.storage("a", copyBytes: 150_000, copiesStay: .seconds(3))
    let read = try bundles(reading)
    for bundle in read { _ = try reading.received(bundle) }
    #expect(try copies() == Set(read.map(\.id)))
    Thread.sleep(forTimeInterval: 3.1)
    _ = try reading.received(read[2])
    #expect(try copies() == [read[2].id])
  }

  @Test(arguments: RecordsKind.available)
  func leftoversGoAndNothingElse(_ kind: RecordsKind) throws {
    let bucket = try MemoryBucket()
    let site = try StorageSite((try S3Address("s3://bucket/inbox"), bucket.client()), holder: bucket)
    let desk = try SharedDesk(site, kind)
    let front = try desk.inbox("front", receives: true)
    try desk.records.add(
      InboxSender(name: "me", quota: 1 << 30, created: desk.clock.now), tokenSum: [1])
    func upload(_ bytes: [UInt8]) throws -> InboxUpload {
      var upload = InboxUpload(
        id: "\(UniversalIdentifier.random())".lowercased(), sender: "me", length: Int64(bytes.count),
        created: desk.clock.now, expires: Timestamp(secondsSince1970: desk.clock.now.secondsSince1970 + 1_000_000))
      upload.frontEnd = "front"
      _ = try desk.records.admit(upload, quota: 1 << 30, limits: front.limits)
      return upload
    }
    // One that the records know, one on its way, and one that no record knows.
    var known = Self.bundle([1], id: try upload([1]).id)
    let coming = Self.bundle([2], id: try upload([2]).id)
    let unknown = Self.bundle([3])
    for (bundle, bytes) in [(known, [1] as [UInt8]), (coming, [2]), (unknown, [3])] {
      try Self.lay(bytes, of: bundle, in: site.home("front"))
      try front.storage.keep(bundle, from: Self.file(bundle, in: site.home("front")))
    }
    known = try desk.records.makeBundle(known, of: known.id)
    let making = try Self.making(known)
    _ = try front.storage.keep(try Self.result(of: known, site.folder.appending("w"), "x"), of: making)
    let place = try #require(site.place)
    let older = "bundles/\(unknown.id)/results/\(String(repeating: "a", count: 64))"
    for suffix in [".json", "-\(UniversalIdentifier.random()).tar.gz".lowercased()] {
      try place.client.put(place.address.key(older + suffix), [1])
    }
    func sweep() throws { for _ in 0..<32 { try front.storage.removeLeftovers(desk.records) } }
    let before = try site.keys()
    #expect(before.count == 7)
    try sweep()
    #expect(try site.keys() == before, "all of it may be on its way")
    bucket.advance(seconds: 86_401)
    try sweep()
    let after = try site.keys()
    #expect(after == before.filter { !$0.contains(unknown.id) }, "\(after)")
    // What the records do not name yet is there for who comes to it only now.
    let stored = try #require(try front.storage.result(of: making))
    known.opened = stored.archive
    try site.storage("other").place(known)
  }
}
