import LazaretTesting
import TestSupport
import Testing

/// Models that people released: every ordered pair of their versions, with generated stores.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealPairTests {
  private struct Counts {
    var pairs = 0
    var migrated = 0
    var lossy = 0
    var conditional = 0
    var conditionalUsual = 0
    var refused = 0
    var records = 0
  }

  /// Each pair of versions once, though some models are there several times over.
  static func pairs() -> [(name: String, from: ModelVersion, to: ModelVersion)] {
    var done: Set<[String]> = []
    var result: [(name: String, from: ModelVersion, to: ModelVersion)] = []
    let paths =
      RealMaterial.folders(below: "models", ending: ".xcdatamodeld")
      + RealMaterial.folders(below: "models", ending: ".momd")
    for path in paths {
      guard let bundle = try? ModelBundle.load(path: path) else { continue }
      for from in bundle.versions {
        for to in bundle.versions where from.versionHashes != to.versionHashes {
          if done.insert([bundle.name, from.checksum, to.checksum]).inserted { result.append((bundle.name, from, to)) }
        }
      }
    }
    return result
  }

  /// All pairs in the long run, a part of them in the ordinary one.
  @Test func everyOrderedPairMigratesOrIsRefused() throws {
    let all = Self.pairs()
    let isLong = environment("LAZARET_MUTATIONS") != nil || environment("LAZARET_LONG") != nil
    let seed = UInt64(mutationCount(usually: 1))
    // Some models have a hundred versions.
    let distance = max(12, all.count / 24)
    let chosen = isLong ? all : all.enumerated().filter { $0.offset % distance == 0 }.map(\.element)
    var counts = Counts()
    for pair in chosen { try check(pair, seed, &counts) }
    print(
      """
      real pairs: seed \(seed), \(counts.pairs) of \(all.count) ordered pairs: \(counts.migrated) migrate \
      (\(counts.lossy) with losses), \(counts.conditional) fail for some records \
      (\(counts.conditionalUsual) for usual ones), \(counts.refused) are refused; \(counts.records) records compared
      """)
    #expect(counts.migrated > 0)
    #expect(counts.refused > 0 || !isLong)
  }

  private func check(
    _ pair: (name: String, from: ModelVersion, to: ModelVersion), _ seed: UInt64, _ counts: inout Counts
  ) throws {
    let place = "\(pair.name) \(pair.from.name) → \(pair.to.name), seed \(seed)"
    let bundle = try #require(
      ModelBundle(
        name: pair.name,
        versions: [
          Fixture.version("from", pair.from.model), Fixture.version("to", pair.to.model, current: true),
        ]))
    counts.pairs += 1
    let folder = try TemporaryFolder()
    guard MappingInference(from: pair.from.model, to: pair.to.model).refusals.isEmpty else {
      counts.refused += 1
      try checkRefusal(bundle, folder, place)
      return
    }
    var options = MigrationVerifier.Options()
    options.records = 8
    options.seed = seed
    options.folder = folder.path
    let report = try MigrationVerifier(bundle, options: options, surroundings: Fixture.surroundings).run()
    let version = try #require(report.versions.first, "\(place)")
    #expect(version.cases.count == StoreProfile.allCases.count)
    for found in version.cases {
      counts.records += found.comparedRecords
      #expect(found.differenceCount == 0, "\(place) \(found.profile): \(found.differences.prefix(3))")
      // Records may break what the version asks for; then the mapping must have said so.
      #expect(
        found.code == nil || found.condition != nil,
        "\(place) \(found.profile): \(found.code ?? "") \(found.detail ?? "")")
      if found.code == nil, found.profile != .empty { #expect(found.records > 0, "\(place) \(found.profile)") }
    }
    // Without records nothing can stand in the way.
    #expect(version.cases.first { $0.profile == .empty }?.outcome == .fine, "\(place)")
    if version.cases.contains(where: { $0.code != nil }) {
      counts.conditional += 1
      if version.cases.contains(where: { $0.profile == .typical && $0.code != nil }) { counts.conditionalUsual += 1 }
    } else {
      counts.migrated += 1
    }
    if !version.losses.isEmpty { counts.lossy += 1 }
  }

  /// What Core Data refuses is refused before anything is touched.
  private func checkRefusal(_ bundle: ModelBundle, _ folder: TemporaryFolder, _ place: String) throws {
    let store = try StoreGenerator(bundle.versions[0].model, options: .init(.typical, records: 2, journal: .log))
      .write(to: folder.appending("Store.sqlite"))
    let before = try FolderContents(of: folder.path)
    do throws(MigrationError) {
      _ = try Migrator(bundle, surroundings: Fixture.surroundings).migrate(store.path)
      Issue.record("\(place) was not refused")
    } catch {
      #expect([.notInferable, .wouldLose].contains(error.kind), "\(place): \(error)")
      #expect(!error.refusals.isEmpty, "\(place)")
    }
    #expect(try FolderContents(of: folder.path) == before, "\(place)")
  }
}
