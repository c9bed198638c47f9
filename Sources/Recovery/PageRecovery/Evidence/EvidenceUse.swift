/// Which of the files beside a database file are read, and how, and where the database begins.
struct EvidenceUse: Hashable {
  /// How the write-ahead log is used.
  enum Log: Hashable {
    /// Its newest committed images count.
    case newest

    /// It is older than the file: only what the file lacks is taken from it, and marked.
    case whereFileLacks

    case none
  }

  /// How the write-ahead log is used.
  var log = Log.newest

  /// Whether a rollback journal is undone.
  var undoesJournal = true

  /// Where the database begins in the file; nil for the one that is to be taken.
  var offset: Int64?
}
