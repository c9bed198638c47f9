package import SQLiteFormat
import StoreFiles

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
