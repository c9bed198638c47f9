public import SQLiteFormat
public import StoreFiles

/// What a salvage would want to know of a store, noted while the store is healthy: where its tables begin, which pages are
/// theirs and what their bytes add up to, which rowids there are, and how many.
///
/// It holds no value of the user's records: names of the schema, rowids, sums and counts only.
public struct RecoveryKit: Sendable, Hashable {
  /// The number of the form of kits that this version writes, and the latest that it reads.
  public static let currentFormat: UInt8 = 2

  /// When it was made.
  public var date: Timestamp

  /// The identifier of a Core Data store; nil for plain stores.
  public var storeUUID: String?

  /// The generation of the store that it was made of; nil where none was known.
  public var generation: String?

  /// The version hashes of a Core Data store's entities, 32 bytes each; empty for plain stores.
  public var versionHashes: [String: [UInt8]]

  /// How the store's pages are laid out, and how far it had been written.
  public var file: FileFacts

  /// What the store's list of tables says.
  public var entries: [Entry]

  /// The tables, that list itself among them.
  public var tables: [Table]

  /// What a kit knows of the file as a whole.
  public struct FileFacts: Sendable, Hashable {
    /// The page size in bytes.
    public var pageSize: Int

    /// The bytes at the end of each page that SQLite does not use.
    public var reservedBytes: Int

    /// The number of pages.
    public var pageCount: UInt32

    /// The encoding of text.
    public var encoding: TextEncoding

    /// Whether the store has pointer-map pages.
    public var isAutoVacuum: Bool

    /// Whether the store was in write-ahead log mode.
    public var usesWriteAheadLog: Bool

    /// The counter of changes in the header.
    public var changeCounter: UInt32

    /// The counter of changes to the schema.
    public var schemaCookie: UInt32

    /// How far the write-ahead log went; nil where nothing of the store was in it.
    public var log: LogMark?
  }

  /// A place in a write-ahead log.
  public struct LogMark: Sendable, Hashable {
    /// The first salt of the log.
    public var salt1: UInt32

    /// The second salt of the log.
    public var salt2: UInt32

    /// The frames up to the last commit.
    public var frames: UInt32

    /// A place in a log.
    package init(salt1: UInt32, salt2: UInt32, frames: UInt32) {
      self.salt1 = salt1
      self.salt2 = salt2
      self.frames = frames
    }
  }

  /// An entry of the store's list of tables.
  public struct Entry: Sendable, Hashable {
    /// `table`, `index`, `view` or `trigger`.
    public var kind: String

    /// The name.
    public var name: String

    /// The table that it belongs to.
    public var tableName: String

    /// The root page; 0 where it has none.
    public var root: UInt32

    /// The statement that makes it; nil for what SQLite makes by itself.
    public var sql: String?
  }

  /// What a kit knows of a table.
  public struct Table: Sendable, Hashable {
    /// The name.
    public var name: String

    /// The root page.
    public var root: UInt32

    /// Whether its rows have rowids.
    public var hasRowids: Bool

    /// The pages with its rows, in the order of the keys; inner pages of tables without rowids are among them.
    public var leaves: [UInt32]

    /// The sum of each of those pages, in their order; empty for large stores.
    public var sums: [UInt32]

    /// The number of rows.
    public var rows: Int64

    /// Its rows by entity.
    public var groups: [Group]
  }

  /// The rows of one entity in a table.
  public struct Group: Sendable, Hashable {
    /// The entity's number in the store; 0 for a table that is no entity's.
    public var entity: Int64

    /// The number of rows.
    public var rows: Int64

    /// The rowids; nil where there are too many ranges of them, or no rowids.
    public var keys: KeyRanges?
  }
}

extension RecoveryKit {
  /// The number of rows in all tables that are not the store's own books; `Int64.max` stands for that many and more.
  public var rows: Int64 {
    tables.reduce(0) { sum, table in
      let (total, isTooMany) = sum.addingReportingOverflow(table.name.hasPrefix("sqlite_") ? 0 : max(0, table.rows))
      return isTooMany ? .max : total
    }
  }

  /// Whether it has sums of pages.
  public var hasSums: Bool { tables.contains { !$0.sums.isEmpty } }

  /// The table of a name, as SQLite compares names.
  public func table(named name: String) -> Table? {
    let wanted = name.lowercased()
    return tables.first { $0.name.lowercased() == wanted }
  }
}
