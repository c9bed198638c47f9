import Platform
package import SQLiteFormat

/// The usability of a store in one word.
package enum Verdict: String, Sendable, Hashable, Codable {
  /// It opens with the app's model.
  case compatible

  /// Every page is sound, but schema or bookkeeping deviate from the metadata's model; a repair works on a copy.
  case repairable

  /// An earlier version's store, to be migrated.
  case outdated

  /// Sound, but without a path to the app's model.
  case incompatible

  case damaged

  /// Intact, but locked, forbidden, unreachable or newer than the app.
  case unavailable

  case missing
}

package enum ExaminedKind: String, Sendable, Hashable, Codable {
  /// Core Data or SwiftData.
  case coreData = "core-data"

  /// A SQLite database without Core Data tables.
  case sqlite

  case unknown
}

package struct VerdictReason: Sendable, Hashable, Encodable {
  /// The stable code, part of the command line's contract.
  package var code: String

  package var words: String

  package var hint: String

  /// Core Data's error code (`NSCocoaErrorDomain`), if any.
  package var coreDataCode: Int?

  /// SQLite's result code, if any.
  package var sqliteCode: Int?

  /// Creates a reason; words and hint are full sentences without record values.
  package init(_ code: String, _ words: String, hint: String, coreData: Int? = nil, sqlite: Int? = nil) {
    self.code = code
    self.words = words
    self.hint = hint
    coreDataCode = coreData
    sqliteCode = sqlite
  }
}

// MARK: Damage

extension VerdictReason {
  package static let salvageHint =
    "Have it salvaged: every record that is still in its bytes is put into a new store. What the app cannot use of them is kept beside that."

  /// The code in earlier receipts for missing tables or columns.
  package static let tablesMissingCode = "tables-missing"

  static func blank(_ kind: FileKind, hasPagesElsewhere: Bool) -> VerdictReason {
    let isEmpty = kind == .empty
    if hasPagesElsewhere {
      return VerdictReason(
        isEmpty ? "empty-file" : "zeroed",
        "The store's main file \(isEmpty ? "has no byte in it" : "is nothing but zeros"), but its write-ahead log or journal is there and has pages of the store in it.",
        hint: isEmpty
          ? "Do not open it with SQLite, which would delete them. Open it with the app's model: they are quarantined, and what is in them is salvaged."
          : salvageHint,
        coreData: isEmpty ? nil : 259, sqlite: isEmpty ? nil : 26)
    }
    if isEmpty {
      return VerdictReason(
        "empty-file",
        "The file is empty: it has no byte in it, and so no record. SQLite takes such a file for a new database without tables.",
        hint: "Open it with the app's model: the empty file is quarantined and a new store is created in its place.")
    }
    return damage(
      "zeroed", "The file begins with nothing but zeros, as after a write that never reached the disk.", sqlite: 26)
  }

  static func wrongPageSize(_ size: Int) -> VerdictReason {
    damage(
      "page-size-invalid",
      "The header says that pages have \(grouped(size)) bytes, which is no page size of SQLite's.", sqlite: 26)
  }

  /// Page 1 has a damaged header, but a readable b-tree.
  static func headerDamaged(_ remains: HeaderlessDatabase) -> VerdictReason {
    damage(
      "header-damaged",
      "The first 100 bytes, where SQLite's header should be, are damaged; what follows is a SQLite database with pages of \(grouped(remains.pageSize)) bytes.",
      sqlite: 26)
  }

  static func firstPageLost(_ remains: HeaderlessDatabase, _ kind: FileKind) -> VerdictReason {
    damage(
      "first-page-lost",
      "The first page, with the header and the list of tables, is \(kind == .zeros ? "nothing but zeros" : "destroyed"); \(grouped(remains.treePages)) of the \(grouped(remains.pagesSeen)) pages looked at behind it are those of a SQLite database, with \(grouped(remains.pageSize)) bytes each.",
      sqlite: 26)
  }

  static func embedded(behind bytes: Int64) -> VerdictReason {
    damage(
      "embedded",
      "\(counted(bytes, "other byte")) \(bytes == 1 ? "stands" : "stand") before the database: it is embedded in another file, or something was written before it.",
      sqlite: 26)
  }

  static func pageSizeContradicted(stated: Int, found: Int) -> VerdictReason {
    damage(
      "page-size-wrong",
      "The header says that pages have \(grouped(stated)) bytes, but the pages themselves have \(grouped(found)).")
  }

  static func cutInHeader(bytes: Int64) -> VerdictReason {
    damage(
      "truncated", "The file is cut off: it has \(counted(bytes, "byte")), and its header alone needs 100.", sqlite: 26)
  }

  static func unreadable(_ error: FileError) -> VerdictReason {
    damage(error.code, "The store cannot be read: \(error.detail).")
  }

  static func damagedPages(_ report: IntegrityReport) -> VerdictReason {
    let kinds = report.findings.damage
    let worst = kinds.max { ($0.value, $1.key.rawValue) < ($1.value, $0.key.rawValue) }?.key
    let count = kinds.values.reduce(0, +)
    let place = count == 1 ? "one place" : "\(grouped(count)) places"
    return damage(
      "pages-damaged", "Its pages are damaged in \(place)\(count == 1 ? "" : "; most often"): \(worst?.words ?? "").")
  }

  /// Indexes disagree with sound tables.
  ///
  /// - Parameter names: the indexes; empty if unknown.
  package static func damagedIndexes(_ names: [String], _ findings: Findings) -> VerdictReason {
    let found = findings.damage.keys.sorted { $0.rawValue < $1.rawValue }.map(\.words).joined(separator: "; ")
    if findings.damage.keys.contains(.keyOrder) {
      return damage("pages-damaged", "Not every row can be found by its key: \(found).")
    }
    let indexes = names.isEmpty ? "" : " (\(Examination.list(names)))"
    return damage(
      "indexes-damaged",
      "Every page of the tables is sound, but \(names.count == 1 ? "an index disagrees with its table" : "indexes disagree with their tables")\(indexes): \(found)."
    )
  }

  static func damage(_ code: String, _ words: String, sqlite: Int? = 11) -> VerdictReason {
    VerdictReason(code, words, hint: salvageHint, coreData: 259, sqlite: sqlite)
  }

  /// Returns SQLite's code for an environmental error.
  static func sqliteCode(of error: any ReportableError) -> Int? {
    switch error.code {
    case "locked", "in-use", "changed-meanwhile", "store-locked": 5
    case "out-of-memory": 7
    case "read-only-file-system": 8
    case "io-error", "no-locks": 10
    case "no-space": 13
    case "permission-denied", "cannot-open", "too-many-open-files", "is-a-directory", "not-a-regular-file",
      "dangling-link", "not-downloaded":
      14
    default: nil
    }
  }
}

extension Examination {
  /// Returns the reason from header, log and sizes that is closest to the cause.
  func physicalReason(_ database: Database, fileBytes: Int64) -> VerdictReason? {
    let findings = health.notes.filter { $0.severity == .damage }
    func has(_ kind: Finding.Kind) -> Bool { findings.contains { $0.code == kind.rawValue } }
    if has(.fileTooShort) || has(.logMissingPages) || has(.headerTruncated) {
      let expected = Int64(database.pageCount) * Int64(database.pageSize)
      return .damage(
        "truncated",
        "The file is cut off: it has \(counted(fileBytes, "byte")), and by its \(database.isLogApplied ? "log" : "header") its pages need \(grouped(expected))."
      )
    }
    if has(.readVersionUnknown) {
      return .damage("file-format-unknown", "The header asks for a file format that no known SQLite has.", sqlite: 26)
    }
    guard let first = findings.first else { return nil }
    return .damage(first.code, "\(first.words.capitalizedFirst).")
  }
}

extension String {
  var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}

extension VerdictReason {
  static let missing = VerdictReason(
    "no-store", "There is no store at this path.", hint: "Open it with the app's model to create one.")

  /// Only SQLite's companion files remain.
  static let orphanedParts = VerdictReason(
    "no-store-but-leftovers",
    "There is no store at this path, but a write-ahead log, an index of one or a journal is left over from one.",
    hint: "Open it with the app's model: the leftovers are quarantined and a store is created.")

  static let mainFileMissing = VerdictReason(
    "main-file-missing",
    "The store's main file is missing, but its write-ahead log or journal is there and has pages of the store in it.",
    hint:
      "If the main file can be brought back, put it beside them before anything opens the store: SQLite deletes them otherwise. Else open it with the app's model: they are quarantined, and what is in them is salvaged.",
    coreData: 259)

  /// A process still writes to an unlinked log.
  static func deletedLog(_ holder: String) -> VerdictReason {
    VerdictReason(
      "log-deleted-in-use",
      "The store's write-ahead log was deleted while \(holder) had the store open: what it has written since is in the deleted file alone.",
      hint:
        "Save the data from within that process before it ends, such as by an export; the records that are in the log alone go with it. Then look again."
    )
  }

  /// The file may have pages but lacks a database header.
  static func notSQLite(_ kind: FileKind) -> VerdictReason {
    damage("not-sqlite", "The file is not a SQLite database: it is \(kind.words).", sqlite: 26)
  }

  /// Another format, without a database page.
  static func foreign(_ kind: FileKind) -> VerdictReason {
    VerdictReason(
      "not-sqlite", "The file is not a SQLite database: it is \(kind.words).",
      hint: "Check that it is the right file; it is as it was.", coreData: 259, sqlite: 26)
  }

  /// No readable page and no pattern: an encrypted store looks like noise.
  static let encryptedOrRandom = VerdictReason(
    "encrypted-or-random",
    "No page of the file can be read, and its bytes have no pattern: it is an encrypted database, such as SQLCipher's, or another encrypted or compressed file, or random bytes.",
    hint:
      "It stays where it is. If it is a SQLCipher database, decrypt it with its key first: give sqlcipher the key, ATTACH a new file with KEY '' and SELECT sqlcipher_export. A wrong or lost key looks the same. If it comes from an encrypted backup or device, restore it from there decrypted. To have it moved away all the same: lazaret quarantine add.",
    coreData: 259, sqlite: 26)
}

extension VerdictReason {
  package static let repairableCode = "repairable"

  /// Describes the drift with its repair or, if refused, the alternative.
  static func repairable(_ drift: StoreDrift, isBeyondRepair: Bool) -> VerdictReason {
    VerdictReason(
      repairableCode,
      "The store's pages are sound, but it is not as its own model wants it: \(drift.summary(showing: 5)).",
      hint: isBeyondRepair
        ? "A repair refuses it: the entity of some records, or what is missing, cannot be told for certain. Have it salvaged: a clean store of its records is made, and this one is left as it is."
        : "Have it repaired: what is missing is added on a copy, and the original is kept.",
      sqlite: drift.concernsRecords ? 1 : nil)
  }
}

extension StoreDrift {
  func summary(showing most: Int) -> String {
    let shown = differences.prefix(most).map { difference in
      difference.words.count > 200 ? difference.words.prefix(199) + "…" : difference.words
    }.joined(separator: "; ")
    return differences.count > most ? "\(shown); and \(grouped(differences.count - most)) more" : shown
  }
}
