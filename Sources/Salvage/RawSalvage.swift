internal import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// The rows as they were found, with what was found out about the store on the way.
struct RawSalvage {
  /// The account of the rows.
  var report: SalvageReport

  /// The store's metadata, where it could be read.
  var metadata: StoreMetadata?

  /// The layout of the version that the store is of; nil where no model is known.
  var layout: StoreLayout?

  /// How that version is known.
  var basis: SalvageReport.Rebuild.Basis

  /// The model that the store carries where its rows go into a version of another one; nil otherwise.
  var foreignModel: ManagedObjectModel?

  /// How the store numbers its entities; nil where it does so as the layout of its model.
  var numbering: EntityNumbering?

  /// What the store calls the tables and columns of the layout.
  var names: StoreNames

  /// The tables, indexes, views and triggers that the store's own schema lists, as far as it could be read.
  var entries: [SchemaEntry]

  /// The header of the file, where it could be read.
  var header: DatabaseHeader?

  /// The encoding of text.
  var encoding: TextEncoding

  /// The size of a page in bytes.
  var pageSize: Int

  /// The new store with the rows that needed nothing done; nil where all are in the database of rows as found.
  var store: NewStore?
}

extension TextEncoding {
  /// The name that SQLite has for it.
  var pragmaName: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }
}
