internal import Compatibility
internal import SQLiteFormat
internal import StoreFiles

/// Finds the words of `CREATE TABLE` anywhere in the bytes of a store's files: in free space, old frames, old pages.
enum DefinitionTexts {
  private static let words = Array("CREATE TABLE ".utf8)

  private static let statementLimit = 1 << 16

  private static let limit = 4096

  /// The orders of columns that statements for some tables give, by the names of the tables in upper case; so are columns.
  static func find(_ evidence: Evidence, tables: Set<String>) throws(SalvageError) -> [String: [[String]]] {
    var orders: [String: [[String]]] = [:]
    var count = 0
    for source in [evidence.main, evidence.log, evidence.journal].compactMap(\.self) {
      var start: Int64 = 0
      let piece = 1 << 20
      while start < source.count, count < limit {
        let bytes = try source.piece(at: start, length: piece + statementLimit)
        var offset = 0
        while let hit = next(bytes.span, from: offset, before: min(piece, bytes.count)), count < limit {
          offset = hit + words.count
          guard let statement = statement(bytes, from: hit), let table = TableDefinition(sql: statement),
            tables.contains(table.name.uppercased())
          else { continue }
          count += 1
          let order = table.columns.map { $0.name.uppercased() }
          if orders[table.name.uppercased()]?.contains(order) != true {
            orders[table.name.uppercased(), default: []].append(order)
          }
        }
        start += Int64(piece)
      }
    }
    return orders
  }

  private static func next(_ bytes: Span<UInt8>, from start: Int, before end: Int) -> Int? {
    var offset = start
    let first = words[0]
    while offset < end {
      if bytes[offset] == first, offset + words.count <= bytes.count {
        var length = 1
        while length < words.count, bytes[offset + length] == words[length] { length += 1 }
        if length == words.count { return offset }
      }
      offset += 1
    }
    return nil
  }

  /// The statement that begins at an offset, to the parenthesis that ends it; nil where it does not end, or is not text.
  private static func statement(_ bytes: [UInt8], from start: Int) -> String? {
    var depth = 0
    var quote: UInt8?
    var offset = start
    let end = min(bytes.count, start + statementLimit)
    while offset < end {
      let byte = bytes[offset]
      if byte == 0 { return nil }
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") || byte == UInt8(ascii: "`") {
        quote = byte
      } else if byte == UInt8(ascii: "(") {
        depth += 1
      } else if byte == UInt8(ascii: ")") {
        depth -= 1
        if depth == 0 { return String(utf8: bytes[start...offset]) }
        if depth < 0 { return nil }
      }
      offset += 1
    }
    return nil
  }
}
