internal import GRDB

extension BrowsedStore {
  /// The most characters of a value in an export; longer ones are cut, and the record says so in JSON.
  private static let exportLimit = 1_000_000

  /// About how much text is handed out at once.
  private static let pieceSize = 64 * 1024

  /// Hands out all records that fit a query, piece by piece, so that memory stays flat.
  ///
  /// - Parameters:
  ///   - format: the form.
  ///   - body: called with each piece of text; false ends the export.
  /// - Throws: as a page does.
  public func export(
    _ collection: RecordCollection, _ query: RecordQuery, as format: ExportFormat, _ body: (String) throws -> Bool
  ) throws(RecordBrowsingError) {
    let columns = try shownColumns(of: collection, query)
    let statement = try PageStatement(collection, query, columns: columns, isLimited: false)
    let names = columns.map { JSONText.string($0.name) }
    try read(limits.export) { database in
      var text = ""
      switch format {
      case .csv: text = columns.map { CSVText.header($0.name) }.joined(separator: ",") + "\r\n"
      case .json: text = "["
      case .jsonLines: break
      }
      var count = 0
      let cursor = try Row.fetchCursor(database, sql: statement.sql, arguments: StatementArguments(statement.arguments))
      while let found = try cursor.next() {
        let row = self.row(found, statement, columns, collection, limit: Self.exportLimit)
        switch format {
        case .csv: text += row.values.map(CSVText.field).joined(separator: ",") + "\r\n"
        case .json: text += (count == 0 ? "\n" : ",\n") + Self.object(row, names)
        case .jsonLines: text += Self.object(row, names) + "\n"
        }
        count += 1
        if text.utf8.count >= Self.pieceSize {
          guard try body(text) else { return }
          text = ""
        }
      }
      if format == .json { text += count == 0 ? "]\n" : "\n]\n" }
      if !text.isEmpty { _ = try body(text) }
    }
  }

  private static func object(_ row: RecordPage.Row, _ names: [String]) -> String {
    let fields = zip(names, row.values).map { name, value in "\(name):\(JSONText.value(value))" }
    return "{\(fields.joined(separator: ","))}"
  }
}
