/// A tree with the specified treatment of its fields.
struct CheckedTree {
  struct Rule {
    var isKept = false

    var isDropped = false

    /// Whether only an app's values in the metadata are replaced.
    var isMetadata = false

    var isKey = false
  }

  /// The name; nil for the schema.
  let name: String?

  private(set) var rules: [Rule] = []

  private(set) var other = Rule()

  private(set) var keepsRowids = false

  private(set) var isIndex = false

  var isSchema: Bool { name == nil }

  var isKept: Bool { other.isKept }

  static let schema = CheckedTree(name: nil, keepsRowids: true)

  private init(name: String?, keepsRowids: Bool) {
    self.name = name
    self.keepsRowids = keepsRowids
  }

  init(_ table: CheckedTable, keeping: Set<String>, dropping: Set<String>) {
    name = table.name
    other.isKept = table.isKept && table.name.lowercased() != "sqlite_sequence"
    other.isKey = table.columns.isEmpty || table.isWithoutRowid || table.isKept
    keepsRowids = table.hasOwnRowids || table.keepsKey(keeping)
    rules = table.columns.map { column in
      Rule(
        isKept: other.isKept || Self.names(column.name, in: table, keeping)
          || table.refers(column.name, toAnyOf: keeping), isDropped: Self.names(column.name, in: table, dropping),
        isMetadata: table.isMetadata && column.name.uppercased() == "Z_PLIST", isKey: column.isKey)
    }
    if table.name.lowercased() == "sqlite_sequence" {
      rules = [Rule(isKept: true), Rule(isKept: !keeping.isEmpty, isKey: true)]
    }
    if table.isWithoutRowid, !keeping.isEmpty || !dropping.isEmpty {
      other.isKept = keeping.contains { $0.hasPrefix("\(table.name).") }
      other.isDropped = dropping.contains { $0.hasPrefix("\(table.name).") }
    }
  }

  /// Creates an index, with copies of columns.
  init(index name: String, columns: [String], of table: CheckedTable, keeping: Set<String>, dropping: Set<String>) {
    self.name = name
    isIndex = true
    keepsRowids = true
    other.isKey = true
    rules = columns.map { column in
      Rule(
        isKept: table.isKept || Self.names(column, in: table, keeping) || table.refers(column, toAnyOf: keeping),
        isDropped: Self.names(column, in: table, dropping), isKey: true)
    }
    // Each entry ends with the row's key.
    if table.keepsKey(keeping) { other.isKept = true }
    // An expression index may contain a kept column.
    let isUnknown = columns.isEmpty && !keeping.isEmpty
    other.isKept = other.isKept || table.isKept || isUnknown && keeping.contains { $0.hasPrefix("\(table.name).") }
  }

  /// Whether the caller's attributes include a column.
  private static func names(_ column: String, in table: CheckedTable, _ wanted: Set<String>) -> Bool {
    guard !wanted.isEmpty else { return false }
    if wanted.contains("\(table.name).\(column)") { return true }
    // Core Data's column is Z and the attribute in capitals, with a number against collisions.
    var plain = column.uppercased()
    guard plain.hasPrefix("Z") else { return false }
    plain.removeFirst()
    while let last = plain.last, last.isNumber { plain.removeLast() }
    return wanted.contains { attribute in
      guard let dot = attribute.firstIndex(of: ".") else { return false }
      var name = attribute[attribute.index(after: dot)...].uppercased()
      while let last = name.last, last.isNumber { name.removeLast() }
      return name == plain || name.hasSuffix(".\(plain)")
    }
  }
}

/// The relevant columns of a table.
struct CheckedTable {
  /// A column, in record order.
  struct Column {
    var name: String

    /// Whether it holds rowids or references.
    var isKey: Bool

    /// The tables that it may share values with.
    var targets: [String] = []
  }

  let name: String

  /// The stored columns; empty if unreadable.
  private(set) var columns: [Column] = []

  private(set) var isWithoutRowid = false

  private(set) var hasOwnRowids = false

  /// Whether it is kept bookkeeping of SQLite or Core Data.
  let isKept: Bool

  let isMetadata: Bool

  /// The tables that stay by specification.
  private static let kept: Set<String> = ["Z_PRIMARYKEY", "SQLITE_SEQUENCE", "SQLITE_STAT1"]

  init(name: String, sql: String) {
    self.name = name
    let upper = name.uppercased()
    isKept = Self.kept.contains(upper)
    isMetadata = upper == "Z_METADATA"
    let words = SchemaWords.tokens(of: sql)
    isWithoutRowid = words.suffix(8).contains { $0.uppercased() == "WITHOUT" }
    let isCoreData =
      upper.hasPrefix("Z_") || upper.hasPrefix("ANSCK") || words.contains { $0.uppercased() == "Z_ENT" }
      || ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains(upper)
    let shadows = ["_DATA", "_SEGDIR", "_SEGMENTS", "_STAT", "_NODE", "_CONFIG"]
    hasOwnRowids = isCoreData || isKept || shadows.contains { upper.hasSuffix($0) }
    let hasForeignKeys = words.contains { $0.uppercased() == "FOREIGN" }
    let items = SchemaWords.items(of: sql)
    // FOREIGN KEY columns are not parsed; any may refer.
    let targets = items.filter { $0.first?.uppercased() == "FOREIGN" || $0.first?.uppercased() == "CONSTRAINT" }
      .flatMap(Self.targets)
    for item in items {
      guard let first = item.first, !Self.constraints.contains(first.uppercased()) else { continue }
      let rest = item.dropFirst().map { $0.uppercased() }
      let isAlias = rest.starts(with: ["INTEGER", "PRIMARY", "KEY"]) && !rest.contains("DESC")
      let isName =
        first.lowercased() == "id" || first.lowercased().hasSuffix("_id")
        || first.hasSuffix("Id") || first.hasSuffix("ID")
      columns.append(
        Column(
          name: first,
          isKey: isCoreData || hasForeignKeys || isAlias || isName || rest.contains("REFERENCES")
            || rest.contains("PRIMARY"), targets: targets + Self.targets(item)))
    }
    if isWithoutRowid { columns = [] }
  }

  private static func targets(_ item: [String]) -> [String] {
    zip(item, item.dropFirst()).filter { $0.0.uppercased() == "REFERENCES" }.map(\.1)
  }

  /// Whether a column refers to a table with a kept column.
  func refers(_ column: String, toAnyOf keeping: Set<String>) -> Bool {
    guard !keeping.isEmpty, let column = columns.first(where: { $0.name.lowercased() == column.lowercased() }) else {
      return false
    }
    return column.targets.contains { target in
      keeping.contains { $0.lowercased().hasPrefix("\(target.lowercased()).") }
    }
  }

  /// Whether its key is kept, or refers to a kept one.
  func keepsKey(_ keeping: Set<String>) -> Bool {
    keeping.contains("\(name).rowid")
      || columns.contains { $0.isKey && (keeping.contains("\(name).\($0.name)") || refers($0.name, toAnyOf: keeping)) }
  }

  private static let constraints: Set<String> = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"]
}

/// Splits statements, knowing only names, quotes and brackets.
enum SchemaWords {
  static func tokens(of sql: String) -> [String] { read(sql).map(\.text) }

  /// Returns the words of each column and constraint.
  static func items(of sql: String) -> [[String]] {
    var items: [[String]] = [[]]
    for token in read(sql) where token.depth == 1 {
      if token.text == "," { items.append([]) } else { items[items.count - 1].append(token.text) }
    }
    return items.filter { !$0.isEmpty }
  }

  private static func read(_ sql: String) -> [(text: String, depth: Int)] {
    var tokens: [(String, Int)] = []
    var depth = 0
    var word: [UInt8] = []
    var quote: UInt8 = 0
    func flush(_ tokens: inout [(String, Int)]) {
      if !word.isEmpty { tokens.append((String(decoding: word, as: UTF8.self), depth)) }
      word = []
    }
    for byte in sql.utf8 {
      if quote != 0 {
        if byte == quote {
          flush(&tokens)
          quote = 0
        } else {
          word.append(byte)
        }
        continue
      }
      switch byte {
      case 0x22, 0x27, 0x60, 0x5b:
        flush(&tokens)
        quote = byte == 0x5b ? 0x5d : byte
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x5f, 0x80...0xff: word.append(byte)
      default:
        flush(&tokens)
        if byte == 0x28 { depth += 1 }
        if byte == 0x29 { depth -= 1 }
        if byte == 0x2c { tokens.append((",", depth)) }
      }
    }
    flush(&tokens)
    return tokens
  }
}
