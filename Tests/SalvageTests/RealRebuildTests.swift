import Foundation
import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Real stores, salvaged as they are and damaged in every way: the result is sound, and no record has a value that it did
/// not have.
@Suite(.serialized, .enabled(if: RealMaterial.isAvailable, Comment(rawValue: RealMaterial.skipped)))
struct RealRebuildTests {
  private static let isLong = environment("LAZARET_LONG") != nil

  /// One real store, its copy, and what SQLite says is in it.
  private struct Subject {
    let folder: TemporaryFolder
    let name: String
    let store: FilePath
    let bundle: ModelBundle?
    let before: RealContents

    init(_ original: FilePath) throws {
      folder = try TemporaryFolder()
      name = "\(original.folder.lastComponent?.string ?? "")/\(original.lastComponent?.string ?? "")"
      store = try RealMaterial.copy(original, into: folder)
      let looked = try RealMaterial.copy(original, into: folder, as: "Looked.sqlite")
      before = try RealContents(looked)
      bundle = try Self.bundle(for: looked, beside: original)
    }

    /// The bundle among the real models that has the store's version.
    private static func bundle(for store: FilePath, beside original: FilePath) throws -> ModelBundle? {
      guard let kind = original.folder.lastComponent?.string, RealMaterial.isAvailable else { return nil }
      let metadata: StoreMetadata?
      do {
        let opened = try PersistentStore(opening: store)
        metadata = try opened.metadata()
        try opened.close()
      } catch {
        // Stores without metadata, and those that cannot be opened, have no version.
        return nil
      }
      guard let metadata else { return nil }
      for ending in [".xcdatamodeld", ".momd"] {
        for path in RealMaterial.folders(below: "models/\(kind)", ending: ending) {
          guard let bundle = try? ModelBundle.load(path: path), bundle.version(matching: metadata.versionHashes) != nil
          else { continue }
          return bundle
        }
      }
      return nil
    }
  }

  /// The histories of Apple's own apps keep text and integers in columns that are declared as BLOB.
  private static let historiesOfApple = ["/plaso-apple/", "/osxphotos/"]

  @Test("Undamaged stores equal themselves, record for record, with their model and without")
  func undamaged() throws {
    var count = 0
    for original in RealMaterial.stores {
      guard let subject = try? Subject(original) else { continue }
      for model in [subject.bundle.map(SalvageModel.coreData), nil] {
        let out = subject.folder.appending("Out-\(count).sqlite")
        count += 1
        let report: SalvageReport
        do {
          report = try Salvager().salvage(subject.store, to: out, model: model, options: .init(migrates: false))
        } catch {
          Issue.record("\(subject.name): \(error)")
          continue
        }
        let after = try RealContents(out)
        #expect(after.isSound, "\(subject.name)")
        #expect(after.missing(from: subject.before) == [], "\(subject.name)")
        func expectWhole() {
          #expect(subject.before.missing(from: after) == [], "\(subject.name)")
          #expect(report.lost == 0, "\(subject.name)")
        }
        expectWhole()
        if subject.bundle == nil { break }
      }
    }
    print("\(count) salvages of undamaged real stores")
    #expect(count > 20)
  }

  /// Kinds that change values within pages in a way that no reader can tell from what was written.
  ///
  /// A log that is gone, or lacks its end, takes what was in it along and leaves no trace.
  private static let undetectable: Set<DamageKind.Name> = [.bitFlips, .logMissing, .logTail]

  @Test("Damaged stores become sound ones, and no record has a value that it did not have")
  func damaged() throws {
    var count = 0
    var random = SeededGenerator(seed: 1)
    for (place, original) in RealMaterial.stores.enumerated() {
      guard let subject = try? Subject(original), subject.before.rowCount > 0 else { continue }
      for (number, kind) in Self.kinds.enumerated() {
        // Every kind comes up, and every store, whatever the time allows.
        guard Self.isLong || number % 10 == place % 10 else { continue }
        for seed in Self.isLong ? [UInt64(1), 2, 3] : [1] {
          let damaged = subject.folder.appending("Damaged-\(count).sqlite")
          let out = subject.folder.appending("Out-\(count).sqlite")
          count += 1
          let comment: Comment = "\(subject.name), \(kind), seed \(seed)"
          do {
            _ = try DamagedCopy.make(of: subject.store, at: damaged, kinds: [kind], seed: seed)
          } catch {
            // Some kinds need a log, a journal or pages that the store does not have.
            continue
          }
          let model = Bool.random(using: &random) ? subject.bundle.map(SalvageModel.coreData) : nil
          do {
            let report = try Salvager().salvage(damaged, to: out, model: model, options: .init(migrates: false))
            let after = try RealContents(out)
            #expect(after.isSound, comment)
            // The text of a long value goes as far as its pages are there, which is told.
            let tellsParts = report.records.contains { $0.doubts[.longValue] != nil }
            let strangers = after.strangers(to: subject.before, admitsBeginnings: tellsParts)
            let isToldLess = report.isComplete && subject.before.missing(from: after) != []
            let isOfApple = Self.historiesOfApple.contains { original.string.contains($0) }
            if !Self.undetectable.contains(kind.name) {
              withKnownIssue("stale pages of Apple's own stores are not all told", isIntermittent: true) {
                #expect(strangers == [], comment)
                #expect(!isToldLess, comment)
              } when: {
                isOfApple
              }
            }
          } catch let error as SalvageError {
            #expect(error.kind == .nothingFound, "\(comment): \(error)")
          }
        }
      }
    }
    print("\(count) salvages of damaged real stores")
  }

  private static let kinds: [DamageKind] = [
    "zero:10", "rand:10", "bitflip:2", "trunc:20", "header:zero", "header:rand", "page1:zero", "page1:rand",
    "page1:stale", "roots", "interior", "swap:10", "torn:10", "torn1", "freelist", "stale:10", "cell-pointers:20",
    "pointer-maps", "overflow", "page-count", "page-size", "encoding", "text", "prefix:1000", "embed:4096",
    "wal-missing", "wal-badsum", "wal-header", "wal-tail", "wal-foreign", "journal-missing", "journal-header",
  ].compactMap { try? DamageKind($0) }
}

/// The rows of a store's tables as SQLite gives them, without Core Data's bookkeeping.
struct RealContents {
  private var tables: [String: [String: [String: DatabaseValue]]] = [:]
  private(set) var isSound = true
  private(set) var rowCount = 0

  /// What triggers set: values that are derived from others, and computed anew where those are gone.
  private var derived: [String] = []

  init(_ path: FilePath) throws {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    let queue = try DatabaseQueue(path: path.string, configuration: configuration)
    try queue.writeWithoutTransaction { database in
      isSound = try String.fetchAll(database, sql: "PRAGMA integrity_check") == ["ok"]
      let names = try String.fetchAll(
        database,
        sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' "
          + "AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT IN ('Z_METADATA', 'Z_MODELCACHE', 'Z_PRIMARYKEY')")
      derived = try String.fetchAll(database, sql: "SELECT upper(sql) FROM sqlite_master WHERE type = 'trigger'")
      for name in names where !["_node", "_rowid", "_parent"].contains(where: name.hasSuffix) {
        var rows: [String: [String: DatabaseValue]] = [:]
        let quoted = "\"\(name)\""
        let columns = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info('\(name)')")
        for row in try Row.fetchAll(database, sql: "SELECT rowid AS lazaret_key, * FROM \(quoted)") {
          var values: [String: DatabaseValue] = [:]
          for column in columns { values[column.uppercased()] = row[column] }
          // The pairs of a join table have no key but themselves.
          let isJoin = name.hasPrefix("Z_")
          let key: DatabaseValue = row["lazaret_key"]
          rows[isJoin ? "\(values.sorted { $0.key < $1.key })" : "\(key)"] = values
        }
        rowCount += rows.count
        tables[name.uppercased()] = rows
      }
    }
    try queue.close()
  }

  /// The rows of another that are not here, or have other values here.
  func missing(from other: RealContents) -> [String] {
    var result: [String] = []
    for (name, rows) in tables {
      for (key, row) in rows {
        guard let there = other.tables[name]?[key] else {
          result.append("\(name) \(key)")
          continue
        }
        for (column, value) in row where there[column] ?? .null != value { result.append("\(name) \(key) \(column)") }
      }
    }
    return Array(result.sorted().prefix(5))
  }

  /// The values here that are not those of the other; what is gone does not count.
  func strangers(to other: RealContents, admitsBeginnings: Bool = false) -> [String] {
    var result: [String] = []
    for (name, rows) in tables where other.tables[name] != nil {
      for (key, row) in rows {
        guard let there = other.tables[name]?[key] else {
          result.append("\(name) \(key)")
          continue
        }
        for (column, value) in row where !value.isNull && there[column] ?? .null != value {
          if other.derived.contains(where: { $0.contains("SET \(column) ") }) { continue }
          if admitsBeginnings, let text = String.fromDatabaseValue(value),
            let whole = there[column].flatMap({ String.fromDatabaseValue($0) }), whole.hasPrefix(text)
          {
            continue
          }
          result.append("\(name) \(key) \(column)")
        }
      }
    }
    return Array(result.sorted().prefix(5))
  }
}
