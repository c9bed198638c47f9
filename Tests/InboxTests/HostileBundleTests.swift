import Foundation
import Inbox
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Hostile bundles on their whole way: each is refused by name, nothing is written outside of the inbox, and it goes on.
@Suite("Hostile bundles in the inbox")
struct HostileBundleTests {
  @Test func eachIsRefusedByName() throws {
    let bundles = HostileBundles()
    let folder = try TemporaryFolder()
    let key = try folder.write(bundles.identity.secretText, to: "key")
    let desk = try InboxDesk(hasIdentity: true)
    var options = WorkerPool.Options()
    options.identity = key
    (options.unpackedBytes, options.unpackedRatio, options.unpackedEntries) = (1 << 20, 100, 50)
    let pool = desk.pool(options: options)
    let cases = try bundles.all()
    #expect(cases.count >= 60)
    var ids: [(String, HostileBundles.Case)] = []
    for item in cases {
      ids.append((try desk.send(item.bytes), item))
      try desk.work(pool)
    }
    for (id, item) in ids {
      let bundle = try #require(try desk.inbox.records.bundle(id))
      let code = bundle.failure?.code ?? "none"
      #expect(bundle.state == .refused, "\(item.name)")
      #expect(item.codes.contains(code), "\(item.name): \(code)")
      let left = try FileSystem().entries(of: desk.folders.bundle(id)).map(\.string)
      #expect(left.count == 1 && left[0].hasPrefix("bundle.lazaret.tar.gz"), "\(item.name): \(left)")
    }
    #expect(try desk.outside() == ["Home"])
    #expect(try FileSystem().entries(of: desk.home).map(\.string) == ["Inbox"])
    // It goes on.
    let good = try desk.send(try bundles.packed(bundles.good()))
    try desk.work(pool)
    let bundle = try #require(try desk.inbox.records.bundle(good))
    #expect(bundle.state == .quarantined, "\(bundle.failure?.words ?? "")")
  }

  @Test func hostileFactsAreBounded() throws {
    let desk = try InboxDesk()
    let long = String(repeating: "x", count: 100_000)
    var facts = InboxDesk.facts(app: long, tables: (0..<10_000).map { "T\($0)" }, store: long)
    facts.pageStates = Dictionary(uniqueKeysWithValues: (0..<5000).map { ("s\($0)", Int64.max) })
    facts.storePath = "../../../../etc/passwd"
    let id = try desk.send(
      try desk.bundle([("facts.json", try InboxDesk.json(facts)), ("store/App.sqlite", Array("no store".utf8))]))
    let deep = String(repeating: "[", count: 100_000)
    let nested = try desk.send(
      try desk.bundle([("facts.json", Array(deep.utf8)), ("salvage.json", Array(deep.utf8))], level: .facts))
    try desk.work(desk.pool())
    let bundle = try #require(try desk.inbox.records.bundle(id))
    #expect(bundle.state == .quarantined)
    #expect(bundle.facts?.store.count == 200 && bundle.facts?.app?.count == 200)
    #expect(bundle.facts?.damagedTables.count == 200 && bundle.facts?.pageStates.count == 50)
    #expect(try desk.inbox.records.bundle(nested)?.state == .unpacked)
    #expect(try desk.outside() == ["Home"])
  }
}
