import Platform
package import SQLiteFormat

extension VerdictReason {
  /// What to do where a salvage helps.
  package static let salvageHint =
    "Have it salvaged: every record that is still in its bytes is put into a new store. What the app cannot use of them is kept beside that."

  /// The code in receipts of earlier versions for a store that lacked tables or columns of the model that its metadata
  /// names.
  package static let tablesMissingCode = "tables-missing"

  /// The main file has no byte, or no byte but zeros.
  static func blank(_ kind: FileKind, hasPagesElsewhere: Bool) -> VerdictReason {
    let isEmpty = kind == .empty
    if hasPagesElsewhere {
      return VerdictReason(
        isEmpty ? "empty-file" : "zeroed",
        words:
          "The store's main file \(isEmpty ? "has no byte in it" : "is nothing but zeros"), but its write-ahead log or journal is there and has pages of the store in it.",
        hint: isEmpty
          ? "Do not open it with SQLite, which would delete them. Open it with the app's model: they are quarantined, and what is in them is salvaged."
          : salvageHint,
        coreData: isEmpty ? nil : 259, sqlite: isEmpty ? nil : 26)
    }
    if isEmpty {
      return VerdictReason(
        "empty-file",
        words:
          "The file is empty: it has no byte in it, and so no record. SQLite takes such a file for a new database without tables.",
        hint: "Open it with the app's model: the empty file is quarantined and a new store is created in its place.")
    }
    return VerdictReason(
      "zeroed", words: "The file begins with nothing but zeros, as after a write that never reached the disk.",
      hint: salvageHint, coreData: 259, sqlite: 26)
  }

  static func wrongPageSize(_ size: Int) -> VerdictReason {
    VerdictReason(
      "page-size-invalid",
      words: "The header says that pages have \(grouped(size)) bytes, which is no page size of SQLite's.",
      hint: salvageHint,
      coreData: 259, sqlite: 26)
  }

  /// The header is damaged, but page 1 behind it is there.
  static func headerDamaged(_ remains: HeaderlessDatabase) -> VerdictReason {
    VerdictReason(
      "header-damaged",
      words:
        "The first 100 bytes, where SQLite's header should be, are damaged; what follows is a SQLite database with pages of \(grouped(remains.pageSize)) bytes.",
      hint: salvageHint, coreData: 259, sqlite: 26)
  }

  /// Page 1 is lost as a whole, but pages behind it are there.
  static func firstPageLost(_ remains: HeaderlessDatabase, _ kind: FileKind) -> VerdictReason {
    VerdictReason(
      "first-page-lost",
      words:
        "The first page, with the header and the list of tables, is \(kind == .zeros ? "nothing but zeros" : "destroyed"); \(grouped(remains.treePages)) of the \(grouped(remains.pagesSeen)) pages looked at behind it are those of a SQLite database, with \(grouped(remains.pageSize)) bytes each.",
      hint: salvageHint, coreData: 259, sqlite: 26)
  }

  /// The file is a database behind other bytes.
  static func embedded(behind bytes: Int64) -> VerdictReason {
    VerdictReason(
      "embedded",
      words:
        "\(counted(bytes, "other byte")) \(bytes == 1 ? "stands" : "stand") before the database: it is embedded in another file, or something was written before it.",
      hint: salvageHint, coreData: 259, sqlite: 26)
  }

  static func pageSizeContradicted(stated: Int, found: Int) -> VerdictReason {
    VerdictReason(
      "page-size-wrong",
      words:
        "The header says that pages have \(grouped(stated)) bytes, but the pages themselves have \(grouped(found)).",
      hint: salvageHint, coreData: 259, sqlite: 11)
  }

  static func cutInHeader(bytes: Int64) -> VerdictReason {
    VerdictReason(
      "truncated", words: "The file is cut off: it has \(counted(bytes, "byte")), and its header alone needs 100.",
      hint: salvageHint, coreData: 259, sqlite: 26)
  }

  static func unreadable(_ error: FormatError) -> VerdictReason {
    VerdictReason(
      error.code, words: "The store cannot be read: \(error.detail).", hint: salvageHint, coreData: 259, sqlite: 11)
  }

  static func damagedPages(_ report: IntegrityReport) -> VerdictReason {
    let kinds = report.findings.damage
    let worst = kinds.max { ($0.value, $1.key.rawValue) < ($1.value, $0.key.rawValue) }?.key
    let count = kinds.values.reduce(0, +)
    let place = count == 1 ? "one place" : "\(grouped(count)) places"
    return VerdictReason(
      "pages-damaged",
      words: "Its pages are damaged in \(place)\(count == 1 ? "" : "; most often"): \(worst?.words ?? "").",
      hint: salvageHint, coreData: 259, sqlite: 11)
  }

  /// Indexes do not have the rows of their tables, whose pages are whole.
  ///
  /// - Parameter names: the indexes; empty where that is not known.
  package static func damagedIndexes(_ names: [String], _ findings: Findings) -> VerdictReason {
    let found = findings.damage.keys.sorted { $0.rawValue < $1.rawValue }.map(\.words).joined(separator: "; ")
    let indexes = names.isEmpty ? "" : " (\(Examination.list(names)))"
    return VerdictReason(
      "indexes-damaged",
      words:
        "Only \(names.count == 1 ? "an index is" : "indexes are") damaged\(indexes), and every page of the tables is sound: \(found).",
      hint: salvageHint, coreData: 259, sqlite: 11)
  }

  static func damage(_ code: String, _ words: String, sqlite: Int? = 11) -> VerdictReason {
    VerdictReason(code, words: words, hint: salvageHint, coreData: 259, sqlite: sqlite)
  }

  /// SQLite's result code for trouble of the surroundings.
  static func sqliteCode(of error: any ReportableError) -> Int? {
    switch error.code {
    case "locked", "in-use", "changed-meanwhile", "store-locked": 5
    case "permission-denied": 14
    case "read-only-file-system": 8
    case "no-space": 13
    case "io-error": 10
    case "out-of-memory": 7
    case "no-locks": 10
    case "cannot-open", "too-many-open-files": 14
    case "is-a-directory", "not-a-regular-file", "dangling-link", "not-downloaded": 14
    default: nil
    }
  }
}

extension Examination {
  /// The reason to call the store damaged that header, log and sizes give, in the order of nearness to the cause.
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
      return .damage(
        "file-format-unknown", "The header asks for a file format that no known SQLite has.", sqlite: 26)
    }
    guard let first = findings.first else { return nil }
    return .damage(first.code, "\(first.words.capitalizedFirst).")
  }
}

extension String {
  /// The text with its first letter in upper case.
  var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}

/// What is said where no store is: nothing, parts of one, another kind of file, or an encrypted one.
extension VerdictReason {
  /// Nothing is at the path.
  static let missing = VerdictReason(
    "no-store", words: "There is no store at this path.", hint: "Open it with the app's model to create one.")

  /// Nothing but what SQLite kept beside a store.
  static let orphanedParts = VerdictReason(
    "no-store-but-leftovers",
    words: "There is no store at this path, but a write-ahead log, an index of one or a journal is left over from one.",
    hint: "Open it with the app's model: the leftovers are quarantined and a store is created.")

  /// The main file is not there, but pages of the store are in its log or journal.
  static let mainFileMissing = VerdictReason(
    "main-file-missing",
    words:
      "The store's main file is missing, but its write-ahead log or journal is there and has pages of the store in it.",
    hint:
      "If the main file can be brought back, put it beside them before anything opens the store: SQLite deletes them otherwise. Else open it with the app's model: they are quarantined, and what is in them is salvaged.",
    coreData: 259, sqlite: nil)

  /// A process goes on writing to a log whose name is gone.
  static func deletedLog(_ holder: String) -> VerdictReason {
    VerdictReason(
      "log-deleted-in-use",
      words:
        "The store's write-ahead log was deleted while \(holder) had the store open: what it has written since is in the deleted file alone.",
      hint:
        "Save the data from within that process before it ends, such as by an export; the records that are in the log alone go with it. Then look again.",
      coreData: nil, sqlite: nil)
  }

  /// Pages may be in it, but it does not begin as a database does.
  static func notSQLite(_ kind: FileKind) -> VerdictReason {
    VerdictReason(
      "not-sqlite", words: "The file is not a SQLite database: it is \(kind.words).", hint: salvageHint, coreData: 259,
      sqlite: 26)
  }

  /// The file is plainly of another kind, and has no page of a database in it.
  static func foreign(_ kind: FileKind) -> VerdictReason {
    VerdictReason(
      "not-sqlite", words: "The file is not a SQLite database: it is \(kind.words).",
      hint: "Check that it is the right file; it is as it was.",
      coreData: 259, sqlite: 26)
  }

  /// No page can be read, and the bytes have no pattern: nothing tells an encrypted store from noise.
  static let encryptedOrRandom = VerdictReason(
    "encrypted-or-random",
    words:
      "No page of the file can be read, and its bytes have no pattern: it is an encrypted database, such as SQLCipher's, or another encrypted or compressed file, or random bytes.",
    hint:
      "It stays where it is. If it is a SQLCipher database, decrypt it with its key first: give sqlcipher the key, ATTACH a new file with KEY '' and SELECT sqlcipher_export. A wrong or lost key looks the same. If it comes from an encrypted backup or device, restore it from there decrypted. To have it moved away all the same: lazaret quarantine add.",
    coreData: 259, sqlite: 26)
}

extension VerdictReason {
  /// The code for a sound store that lacks something of the model that its metadata names.
  package static let repairableCode = "repairable"

  /// What the store lacks of its own model, and that it can be made good; or what to do instead where a repair refuses it.
  static func repairable(_ drift: StoreDrift, isBeyondRepair: Bool) -> VerdictReason {
    VerdictReason(
      repairableCode,
      words: "The store's pages are sound, but it is not as its own model wants it: \(drift.summary(showing: 5)).",
      hint: isBeyondRepair
        ? "A repair refuses it: the entity of some records, or what is missing, cannot be told for certain. Have it salvaged: a clean store of its records is made, and this one is left as it is."
        : "Have it repaired: what is missing is added on a copy, and the original is kept.",
      sqlite: drift.concernsRecords ? 1 : nil)
  }
}

extension StoreDrift {
  /// The first differences in words, and how many more there are.
  func summary(showing most: Int) -> String {
    // Names in a store can be very long.
    let shown = differences.prefix(most).map { difference in
      difference.words.count > 200 ? difference.words.prefix(199) + "…" : difference.words
    }.joined(separator: "; ")
    return differences.count > most ? "\(shown); and \(grouped(differences.count - most)) more" : shown
  }
}

/// What can be done with a store, in one word.
package enum Verdict: String, Sendable, Hashable, Codable {
  /// It opens with the app's model as it is.
  case compatible

  /// Every page is sound, but it lacks something of the model that its own metadata names, or its bookkeeping is wrong;
  /// that can be made good on a copy.
  case repairable

  /// It was written with an earlier model, from which it can be migrated.
  case outdated

  /// It is sound, but no way leads from it to the app's model.
  case incompatible

  /// It is damaged, or is no store at all.
  case damaged

  /// Nothing is wrong with it, but it is unavailable: locked, forbidden, out of reach, or newer than the app.
  case unavailable

  /// There is no store.
  case missing
}

/// What kind of store a file is.
package enum ExaminedKind: String, Sendable, Hashable, Codable {
  /// A Core Data or SwiftData store.
  case coreData = "core-data"

  /// A SQLite database without Core Data's tables.
  case sqlite

  case unknown
}

/// Why a verdict was given.
package struct VerdictReason: Sendable, Hashable, Encodable {
  /// A stable, machine-readable word, such as `not-sqlite`; part of the command line's contract.
  package var code: String

  /// The reason in plain words, one or two full sentences.
  package var words: String

  /// What to do next, as a full sentence.
  package var hint: String

  /// The code that Core Data reports in such a case, where there is one (`NSCocoaErrorDomain`).
  package var coreDataCode: Int?

  /// The result code that SQLite reports in such a case, where there is one.
  package var sqliteCode: Int?

  /// A reason; words and hint are full sentences that hold no value of a record.
  package init(_ code: String, words: String, hint: String, coreData: Int? = nil, sqlite: Int? = nil) {
    self.code = code
    self.words = words
    self.hint = hint
    coreDataCode = coreData
    sqliteCode = sqlite
  }
}
