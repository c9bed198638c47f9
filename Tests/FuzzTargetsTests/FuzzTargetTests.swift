import FuzzTargets
import Platform
import SystemPackage
import TestSupport
import Testing

/// What fuzzing found, and what it begins with, in the ordinary run.
struct FuzzTargetTests {
  /// `Fuzz/Corpus`, with a folder for each target.
  static let corpus = RealMaterial.projectRoot.appending("Fuzz").appending("Corpus")

  @Test(arguments: FuzzTarget.allCases)
  func readsItsSeeds(_ target: FuzzTarget) throws {
    let seeds = try target.seeds()
    #expect(!seeds.isEmpty)
    #expect(Set(seeds.map(\.name)).count == seeds.count)
    for seed in seeds {
      #expect(!seed.bytes.isEmpty && seed.bytes.count <= target.maximumLength, "\(seed.name): \(seed.bytes.count)")
      try target.run(seed.bytes)
    }
    try target.run([])
  }

  @Test(arguments: FuzzTarget.allCases)
  func readsWhatWasFoundOnce(_ target: FuzzTarget) throws {
    let folder = Self.corpus.appending(target.rawValue)
    guard try FileSystem().status(of: folder) != nil else { return }
    for name in try FileSystem().entries(of: folder) {
      let bytes = try FileSystem().contents(of: folder.appending(name), limit: 1 << 20)
      let time = try processorTime { try target.run(bytes) }
      #expect(time < .seconds(2), "\(name.string): \(time)")
    }
  }

  @Test func corporaBelongToTargets() throws {
    let names = Set(FuzzTarget.allCases.map(\.rawValue))
    for name in try FileSystem().entries(of: Self.corpus) { #expect(names.contains(name.string), "\(name.string)") }
  }

  @Test(arguments: FuzzTarget.allCases)
  func readsOrRefusesDamagedSeeds(_ target: FuzzTarget) throws {
    let seeds = try target.seeds()
    let isSlow = [.examination, .salvage, .rebuild, .scrub].contains(target)
    for number in 0..<mutationCount(usually: isSlow ? 8 : 100) {
      var mutation = Mutation(seed: UInt64(number) &+ 0xF0)
      do {
        try target.run(mutation.apply(to: seeds[number % seeds.count].bytes))
      } catch {
        Issue.record("\(target.rawValue), mutation \(number): \(error)")
      }
    }
  }

  @Test func dictionariesAreOfTheFuzzersForm() {
    for target in FuzzTarget.allCases {
      for line in target.dictionaryText.split(separator: "\n") {
        #expect(line.wholeMatch(of: /"(\\x[0-9a-f]{2})+"/) != nil)
      }
    }
  }
}
