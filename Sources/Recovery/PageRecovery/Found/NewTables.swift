package import PersistentStore
package import RecoveryKit
package import SQLiteFormat

/// A new store that takes rows while they are found, so that they are written only once.
package protocol NewTables: AnyObject {
  /// The table that rows of a definition go into; nil where they all go into the database of rows as found.
  func table(for definition: TableDefinition) -> (any NewTable)?

  /// Ends the taking of rows.
  func finish() throws(SalvageError)
}

/// A table of a new store into which records go as the bytes that they are.
package protocol NewTable: AnyObject {
  /// Takes a row; false where it is for SQLite to insert.
  func insert(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) -> Bool

  /// Whether there is a row of that rowid.
  func hasRow(_ rowid: Int64) throws(SalvageError) -> Bool

  /// Whether there is exactly that row.
  func holds(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) -> Bool

  /// How many rows have a rowid in a range, as far as there was memory to keep them.
  func count(above: Int64, upTo: Int64) -> Int64

  /// How many rows have an entity number.
  func count(ofEntity number: Int64) -> Int64

  /// The keys of its rows; nil where not all of them could be kept.
  var takenKeys: KeyRanges? { get }
}

/// What a new store is made by: what is known of the store that the rows are from.
package struct StoreFacts {
  /// The layout of its version; nil where no model is known.
  package var layout: StoreLayout?

  /// The entries of its own schema.
  package var entries: [SchemaEntry]

  /// The header of the file, where it could be read.
  package var header: DatabaseHeader?

  /// The encoding of text.
  package var encoding: TextEncoding

  /// The size of a page in bytes.
  package var pageSize: Int
}
