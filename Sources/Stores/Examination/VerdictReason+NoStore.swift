import SQLiteFormat
import StoreFiles

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
