import SQLiteFormat
import StoreFiles

extension Examiner {
  /// What shows that a write-ahead log belongs to another database than the file; nil where nothing does.
  ///
  /// A log has no name of its database in it. But all tables of a store never go in one transaction, and the identifier
  /// of a Core Data store never changes.
  static func contradiction(
    between bytes: StoreBytes, and database: Database
  ) throws(FormatError) -> String? {
    guard bytes.main.count > Int64(database.pageSize) else { return nil }
    let alone: Database
    do throws(FormatError) {
      alone = try Database(main: bytes.main, pageSize: database.pageSize)
    } catch  where error.kind == .notADatabase {
      return nil
    }
    guard alone.header?.hasMagic == true else { return nil }
    let own = try alone.schema()
    let laidOver = try database.schema()
    guard !own.tables.isEmpty, !own.findings.hasDamage, !laidOver.tables.isEmpty, !laidOver.findings.hasDamage else {
      return nil
    }
    if Set(own.tables.map(\.name)).isDisjoint(with: laidOver.tables.map(\.name)) {
      return
        "The write-ahead log beside the store belongs to another database: it has none of the tables that the store has."
    }
    guard let identifier = try storeIdentifier(in: alone, own), let other = try storeIdentifier(in: database, laidOver),
      identifier != other
    else { return nil }
    return "The write-ahead log beside the store belongs to another store: it has another identifier in it."
  }

  /// The identifier of a Core Data store; nil where there is none, or it cannot be read.
  private static func storeIdentifier(in database: Database, _ schema: Schema) throws(FormatError) -> String? {
    guard let table = schema.table(named: "Z_METADATA"), table.rootPage > 0, let definition = table.tableDefinition,
      let place = definition.column(named: "Z_UUID")
    else { return nil }
    var rows = try database.rows(root: table.rootPage, payloadLimit: blobLimit)
    guard let row = try rows.next() else { return nil }
    let values = definition.values(of: row)
    guard values.indices.contains(place), let text = values[place].string, text.utf8.count == 36 else { return nil }
    return text
  }
}
