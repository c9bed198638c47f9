internal import Foundation
internal import GRDB
internal import PersistentStore
internal import StoreFiles

extension BrowsedStore {
  /// The records of a query as a query in SQL, which gives the same rows in the same order, by the names of the model where it
  /// can.
  ///
  /// - Returns: nil where it has more characters than a query may have.
  /// - Throws: `unknown-property`, `bad-query`.
  package func selection(
    of collection: RecordCollection, _ query: RecordQuery
  ) throws(RecordBrowsingError) -> StoreQuery? {
    let hasName = try catalog().views[collection.name.caseFolded] != nil
    // A name stands for live records alone; the notes on the others are known by the columns of the table.
    let named = hasName && (query.states == nil || !collection.hasStates) ? collection.byName : collection
    var selected = try shownColumns(of: named, query).map(\.sql)
    let isWhole =
      query.columns == nil && collection.computedColumns.isEmpty && named.source(query.states) == named.tableSQL
    if isWhole, hasName || !collection.isEntity { selected = ["*"] }
    var order = named.keySQL
    if let name = query.sort {
      guard let column = named.column(name) else { throw .unknownColumn(name, in: collection) }
      let isKey = order == [column.sql]
      order = ["\(column.sql)\(query.isDescending ? " DESC" : "")"] + (isKey ? [] : order)
    }
    let (parts, arguments) = try query.conditions(in: named)
    let sql = """
      SELECT \(selected.joined(separator: ", "))
      FROM \(named.source(query.states))\(parts.isEmpty ? "" : "\nWHERE \(parts.joined(separator: "\n  AND "))")
      ORDER BY \(order.joined(separator: ", "))
      """
    let text = Self.filled(sql, arguments)
    guard text.count <= StoreQuery.longest else { return nil }
    var result = try StoreQuery(text)
    result.size = query.size
    return result
  }

  /// A statement with values in place of its parameters.
  private static func filled(_ sql: String, _ arguments: [DatabaseValue]) -> String {
    var result = ""
    var rest = arguments[...]
    var quotation: Character?
    for character in sql {
      if let open = quotation {
        if character == open { quotation = nil }
      } else if character == "'" || character == "\"" {
        quotation = character
      } else if character == "?", let value = rest.popFirst() {
        result += literal(value)
        continue
      }
      result.append(character)
    }
    return result
  }

  private static func literal(_ value: DatabaseValue) -> String {
    switch value.storage {
    case .null: "NULL"
    case .int64(let number): String(number)
    case .double(let number): "\(number)"
    case .string(let text): SQLText.literal(text)
    case .blob(let data): "x'\(data.hexadecimal)'"
    }
  }
}

extension RecordCollection {
  /// The same records by the names that a query has for an entity and its properties.
  fileprivate var byName: RecordCollection {
    var named = self
    named.tableSQL = SQLText.readableIdentifier(name)
    named.columns = columns.map { column in
      var column = column
      column.sql = SQLText.readableIdentifier(column.name)
      column.entitySQL = nil
      return column
    }
    // The name stands for the records of the entity alone.
    named.entityNumbers = nil
    named.provenance = nil
    return named
  }
}
