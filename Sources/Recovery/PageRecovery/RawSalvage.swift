package import ManagedObjectModel
package import PersistentStore
package import SQLiteFormat

/// The rows as they were found, with what was found out about the store on the way.
package struct RawSalvage {
  /// The account of the rows.
  package var report: SalvageReport

  /// The store's metadata, where it could be read.
  package var metadata: StoreMetadata?

  /// The layout of the version that the store is of; nil where no model is known.
  package var layout: StoreLayout?

  /// How that version is known.
  package var basis: SalvageReport.Rebuild.Basis

  /// The model that the store carries where its rows go into a version of another one; nil otherwise.
  package var foreignModel: ManagedObjectModel?

  /// How the store numbers its entities; nil where it does so as the layout of its model.
  package var numbering: EntityNumbering?

  /// What the store calls the tables and columns of the layout.
  package var names: StoreNames

  /// The names of the tables that rows are in where they could not be made under their own.
  package var otherNames: [String: String]

  /// The tables, indexes, views and triggers that the new store is to have: those of the schema that was given, and those that
  /// the store's own lists besides, as far as it could be read.
  package var entries: [SchemaEntry]

  /// The names, in lower case, of indexes that have no entries.
  package var emptyIndexes: Set<String>

  /// The highest keys that were given, by the names of their tables, as `sqlite_sequence` has them.
  package var sequences: [String: Int64]

  /// The header of the file, where it could be read.
  package var header: DatabaseHeader?

  /// The encoding of text.
  package var encoding: TextEncoding

  /// The size of a page in bytes.
  package var pageSize: Int
}

extension TextEncoding {
  /// The name that SQLite has for it.
  package var pragmaName: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }
}
