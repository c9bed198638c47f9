import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Seeded damage: no crash, no hang, nothing touched")
struct MutationTests {
  /// Real stores that are small enough to be damaged many times.
  static let realStores = RealMaterial.stores.filter { path in
    let size = (try? FileSystem().status(of: path))??.size ?? 0
    return size < 200_000
  }

  /// Damages one of a store's files, or all of them.
  static func damage(_ specimen: Specimen, seed: UInt64) -> Specimen {
    var mutation = Mutation(seed: seed)
    var result = specimen
    switch seed % 4 {
    case 0 where result.log != nil: result.log = result.log.map { mutation.apply(to: $0) }
    case 0 where result.journal != nil: result.journal = result.journal.map { mutation.apply(to: $0) }
    case 1:
      // Most of a store's sense is in its first pages.
      result.main = result.main.map { mutation.apply(to: Array($0.prefix(4096))) + $0.dropFirst(4096) }
    case 2:
      result.main = result.main.map { mutation.apply(to: $0) }
      result.log = result.log.map { mutation.apply(to: $0) }
      result.journal = result.journal.map { mutation.apply(to: $0) }
    case 3: result = damageContent(specimen, &mutation) ?? damage(specimen, seed: seed &+ 2)
    default: result.main = result.main.map { mutation.apply(to: $0) }
    }
    return result
  }

  /// Damages the bytes of the property list or the model cache where they stand in the file.
  private static func damageContent(_ specimen: Specimen, _ mutation: inout Mutation) -> Specimen? {
    guard let main = specimen.main, let start = firstPlace(of: Array("bplist00".utf8), in: main) else { return nil }
    let end = min(main.count, start + 2000)
    let damaged = mutation.apply(to: Array(main[start..<end]))
    // The length stays, so that everything around the content is sound.
    let fitting = Array(damaged.prefix(end - start)) + [UInt8](repeating: 0, count: max(0, end - start - damaged.count))
    return specimen.overwriting(start, with: fitting)
  }

  private static func firstPlace(of needle: [UInt8], in bytes: [UInt8]) -> Int? {
    guard bytes.count >= needle.count else { return nil }
    return (0...(bytes.count - needle.count)).first { start in
      bytes[start] == needle[0] && bytes[start..<(start + needle.count)].elementsEqual(needle)
    }
  }

  private func examine(_ specimens: [Specimen], model: AppModel, count: Int, name: String) throws {
    let first = environment("LAZARET_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64(UInt32.max))
    print("examination of \(name): \(count) mutations from seed \(first)")
    let folder = try TemporaryFolder()
    var verdicts: [Verdict: Int] = [:]
    var slowest = Duration.zero
    for seed in first..<(first + UInt64(count)) {
      let own = try TemporaryFolder(in: folder.path)
      let path = try Self.damage(specimens[Int(seed / 4 % UInt64(specimens.count))], seed: seed).place(in: own)
      let before = try own.contentsQuickly()
      for depth in Examination.Depth.allCases {
        var examination: Examination?
        let time = try processorTime { examination = try examiner().look(path, seed % 3 == 0 ? nil : model, depth) }
        slowest = max(slowest, time)
        #expect(time < longestLook, "seed \(seed), \(depth): \(time)")
        let found = try #require(examination)
        verdicts[found.verdict, default: 0] += 1
        VerdictCase.checkWords(found)
        #expect(found.verdict != .missing, "seed \(seed): \(found.reason)")
      }
      #expect(try own.contentsQuickly() == before, "seed \(seed)")
    }
    print("  slowest \(slowest); \(verdicts.map { "\($0.key.rawValue) \($0.value)" }.sorted().joined(separator: ", "))")
  }

  @Test("Our own stores")
  func own() throws {
    let specimens = [
      try Specimen.sound(), try Specimen.sound(cars: 200), try Specimen.sound().running(Specimen.insert(30, from: 100)),
      try LogVerdictTests.hot(), try .store(Models.future, cached: Models.future),
      try .store(Models.first, cached: nil),
      try Specimen.sound(cars: 200).running("DELETE FROM ZCAR WHERE Z_PK > 50", "PRAGMA wal_checkpoint(TRUNCATE)"),
    ]
    try examine(specimens, model: Models.bundle(), count: mutationCount(usually: 400), name: "our own stores")
  }

  @Test(
    "Real stores",
    .enabled(if: RealMaterial.isAvailable, Comment(rawValue: "skipped: " + RealMaterial.skipped)))
  func real() throws {
    let specimens = try Self.realStores.map { try Specimen(of: $0) }
    let model = try #require(RealStoreTests.bundles.first { $0.name == "BookmarksModel" })
    try examine(specimens, model: .coreData(model), count: mutationCount(usually: 400), name: "real stores")
  }
}

extension TemporaryFolder {
  /// Names, sizes and times, without reading the files: enough to see that none was written.
  fileprivate func contentsQuickly() throws -> [String] {
    try FileSystem().entries(of: path).map { name in
      let status = try FileSystem().status(of: path.appending(name))
      return
        "\(name) \(status?.size ?? 0) \(status?.modified.secondsSince1970 ?? 0) \(status?.modified.nanoseconds ?? 0)"
    }
  }
}
