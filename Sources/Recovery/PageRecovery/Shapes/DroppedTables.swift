internal import SQLiteFormat

/// Finds the definitions of dropped tables: deleted rows of the schema, in the free space of its pages.
enum DroppedTables {
  private static let limit = 256

  /// The entries of tables, the latest found first; some of them may be older versions of tables that are there.
  static func find(_ reader: PageReader, _ map: PageMap) throws(SalvageError) -> [SchemaEntry] {
    let scan = FreeSpaceScan(
      shape: .schema, geometry: reader.geometry, encoding: reader.layout.encoding, hasAlias: false)
    var entries: [SchemaEntry] = []
    var buffer = reader.makeBuffer()
    guard map.pageCount >= 1 else { return [] }
    for page in 1...map.pageCount
    where page == 1 || map.look(page) == .tableLeaf && map.fieldCount(page) == 5 {
      guard entries.count < limit, try reader.readPlace(page, into: &buffer) else { continue }
      let start = page == 1 && buffer[0] != 13 ? DatabaseHeader.length : 0
      guard buffer[start] == PageKind.tableLeaf.rawValue else { continue }
      for deleted in scan.deletedRecords(buffer.span, start: start) where deleted.overflow == 0 && entries.count < limit
      {
        guard let record = Record(payload: deleted.record[...], encoding: reader.layout.encoding),
          let entry = SchemaEntry(record, rowid: deleted.rowid ?? 0), entry.kind == .table, entry.tableDefinition != nil
        else { continue }
        entries.append(entry)
      }
    }
    return entries
  }
}
