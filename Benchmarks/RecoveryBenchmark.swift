import ArgumentParser
import Foundation
import Lazaret
import LazaretTesting
import Platform
import Salvage
import SystemPackage

/// Measures what is recovered of damaged stores, beside SQLite's own `.recover`.
struct RecoveryBenchmarkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recovery", abstract: "Measures what is recovered of damaged stores, beside sqlite3's .recover.",
    discussion: """
      Makes a Core Data store and a plain one, damages copies of them with every kind of damage, salvages them with and \
      without the model and lets sqlite3 recover them, and compares every row with the undamaged store. Prints a table in \
      Markdown: of the rows whose pages are not touched by the damage, the share that came back in its own table, the \
      share that came back elsewhere, and rows that were never in the store.
      """)

  @Option(help: "About how many rows each store has.")
  var records = 100_000

  @Option(help: "The seeds of the damage, separated by commas.")
  var seeds = "1"

  @Option(help: "The sqlite3 to compare with; .recover needs one that is built with its page table.")
  var sqlite3 = "sqlite3"

  @Option(help: "The kinds of damage, separated by commas; the usual ones if none are given.")
  var kinds: String?

  @Flag(help: "Only this project's own salvage.")
  var alone = false

  func validate() throws {
    guard records >= 100 else { throw ValidationError("Give at least 100 rows.") }
    guard !numbers.isEmpty else { throw ValidationError("Give seeds as numbers with commas between.") }
    for kind in names { _ = try DamageKind(kind) }
  }

  private var numbers: [UInt64] { seeds.split(separator: ",").compactMap { UInt64($0) } }

  private var names: [String] {
    kinds.map { $0.split(separator: ",").map(String.init) } ?? RecoveryBenchmark.kinds
  }

  func run() throws {
    try RecoveryBenchmark(records: records, seeds: numbers, kinds: names, sqlite3: alone ? nil : sqlite3).run()
  }
}

/// The damaging, recovering and comparing of ``RecoveryBenchmarkCommand``.
struct RecoveryBenchmark {
  /// The kinds that stores without a log or journal can have.
  static let kinds = [
    "none", "zero:1", "zero:5", "zero:25", "rand:5", "rand:25", "bitflip:1", "trunc:10", "trunc:50", "header:zero",
    "header:rand", "page1:zero", "page1:rand", "page1:stale", "roots", "interior", "swap:5", "stale:5", "torn:5",
    "torn1", "freelist", "cell-pointers:10", "overflow", "page-count", "page-size", "encoding", "text", "prefix:1000",
    "embed:28672",
  ]

  let records: Int
  let seeds: [UInt64]
  let kinds: [String]

  /// The shell of SQLite to compare with; nil for none.
  let sqlite3: String?

  /// What one tool made of all seeds of one kind.
  private struct Total {
    var score: (right: Int, elsewhere: Int, wrong: Int) = (0, 0, 0)
    var seconds = 0.0

    mutating func add(_ one: RecoveryScore, _ seconds: Double) {
      score.right += one.right
      score.elsewhere += one.elsewhere
      score.wrong += one.wrong
      self.seconds += seconds
    }

    func words(of untouched: Int, rounds: Int) -> String {
      let right = 100 * Double(score.right) / Double(max(1, untouched))
      let anywhere = 100 * Double(score.right + score.elsewhere) / Double(max(1, untouched))
      return "\(rounded(right)) / \(rounded(anywhere)) | \(score.wrong) | \(rounded(seconds / Double(rounds)))"
    }
  }

  func run() throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path)
      .appending("lazaret-recovery-\(ProcessInfo.processInfo.processIdentifier)")
    try FileSystem().makeDirectory(folder)
    defer { Self.remove(folder) }
    for kind in RecoveryStore.Kind.allCases {
      let store = try RecoveryStore(kind, records: records, in: folder)
      print("\n### \(kind == .plain ? "Plain store" : "Core Data store"), \(store.count) rows, ", terminator: "")
      print("\((try FileSystem().status(of: store.path)?.size ?? 0) / 1_000_000) MB, seeds \(seeds)\n")
      let tools = ["with its model", "without"] + (sqlite3 == nil ? [] : ["`.recover`"])
      print(
        "| damage | rows on untouched pages | "
          + tools.map { "\($0): own table / anywhere, % | false | s" }
          .joined(separator: " | ") + " |")
      print("|---|---|" + tools.map { _ in "---|---|---" }.joined(separator: "|") + "|")
      for name in kinds { try measure(name, store, in: folder) }
    }
  }

  private func measure(_ name: String, _ store: RecoveryStore, in folder: FilePath) throws {
    let kind = try DamageKind(name)
    var totals = [Total(), Total(), Total()]
    var untouched = 0
    let work = folder.appending("work")
    for seed in seeds {
      Self.remove(work)
      try FileSystem().makeDirectory(work)
      let copy = work.appending("damaged.sqlite")
      let damage = try DamagedCopy.make(of: store.path, at: copy, kinds: [kind], seed: seed)
      untouched += try survivors(store, damage, copy)
      for (index, knowledge) in [store.knowledge, nil].enumerated() {
        let output = work.appending("ours\(index).sqlite")
        let seconds = try Self.seconds {
          do {
            _ = try Salvager().salvageRaw(copy, to: output, model: knowledge)
          } catch let error as SalvageError where error.kind == .nothingFound {
            // Then there is nothing to score.
          }
        }
        totals[index].add(RecoveryScore(output, truth: store.truth), seconds)
      }
      guard let sqlite3 else { continue }
      let output = work.appending("recovered.sqlite")
      let command =
        "'\(sqlite3)' '\(copy.string)' .recover 2>/dev/null | '\(sqlite3)' '\(output.string)' >/dev/null 2>&1"
      let seconds = try Self.seconds {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        try process.run()
        process.waitUntilExit()
      }
      totals[2].add(RecoveryScore(output, truth: store.truth), seconds)
    }
    let columns = totals.prefix(sqlite3 == nil ? 2 : 3).map { $0.words(of: untouched, rounds: seeds.count) }
    print("| \(name) | \(untouched / seeds.count) | \(columns.joined(separator: " | ")) |")
  }

  /// How many rows stand on pages that no damage touched, wherever those pages are now.
  private func survivors(_ store: RecoveryStore, _ damage: DamagedCopy, _ copy: FilePath) throws -> Int {
    let original = try FileSystem().contents(of: store.path, limit: 1 << 31)
    let damaged = try FileSystem().contents(of: copy, limit: 1 << 31)
    let size = 4096
    // Pages that changed places survive; so do those of a file that is longer at its beginning.
    var there: Set<UInt64> = []
    let shift =
      (damage.kinds.first ?? "").hasPrefix("prefix") || (damage.kinds.first ?? "").hasPrefix("embed")
      ? Int(damage.places.first?.length ?? 0) : 0
    for start in stride(from: shift, to: damaged.count, by: size) where start + size <= damaged.count {
      there.insert(Self.digest(damaged, start, size))
    }
    var isThere: [Bool] = [true]
    for start in stride(from: 0, to: original.count, by: size) {
      isThere.append(start + size <= original.count && there.contains(Self.digest(original, start, size)))
    }
    return store.places.count { place in
      place.pages.allSatisfy { $0 == 1 || Int($0) < isThere.count && isThere[Int($0)] }
    }
  }

  private static func digest(_ bytes: [UInt8], _ start: Int, _ count: Int) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for index in start..<(start + count) { hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01b3 }
    return hash
  }

  private static func seconds(_ body: () throws -> Void) rethrows -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    try body()
    let elapsed = clock.now - start
    return Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
  }

  private static func remove(_ folder: FilePath) {
    // A folder that is not there is removed.
    try? FileManager.default.removeItem(atPath: folder.string)
  }
}
