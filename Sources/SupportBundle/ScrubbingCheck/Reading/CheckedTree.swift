/// A tree of the database: the schema, a table or an index, and what is to happen to each field of its records.
struct CheckedTree {
  /// What the specification says of a field.
  struct Rule {
    var isKept = false

    /// Whether it is overwritten with filling.
    var isDropped = false

    /// Whether it is the property list of the metadata, of which only what an app put there is replaced.
    var isMetadata = false

    /// Whether its integers lead to rows.
    var isKey = false
  }

  /// What is said of a finding in it; nil for the schema.
  let name: String?

  /// The rules of the fields; a field behind them is replaced.
  private(set) var rules: [Rule] = []

  /// The rule of what has none of its own.
  private(set) var other = Rule()

  /// Whether the numbers of its rows stay.
  private(set) var keepsRowids = false

  /// Whether it is an index.
  private(set) var isIndex = false

  /// Whether it is the schema's own.
  var isSchema: Bool { name == nil }

  /// Whether all of it stays.
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
          || table.refers(column.name, toAnyOf: keeping),
        isDropped: Self.names(column.name, in: table, dropping),
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

  /// An index, whose fields are copies of the table's columns.
  init(index name: String, columns: [String], of table: CheckedTable, keeping: Set<String>, dropping: Set<String>) {
    self.name = name
    isIndex = true
    keepsRowids = true
    other.isKey = true
    rules = columns.map { column in
      Rule(
        isKept: table.isKept || Self.names(column, in: table, keeping) || table.refers(column, toAnyOf: keeping),
        isDropped: Self.names(column, in: table, dropping),
        isKey: true)
    }
    // Each entry ends with the key of the row.
    if table.keepsKey(keeping) { other.isKept = true }
    // What an index of expressions holds is not known; a column that stays may be in it.
    let isUnknown = columns.isEmpty && !keeping.isEmpty
    other.isKept = other.isKept || table.isKept || isUnknown && keeping.contains { $0.hasPrefix("\(table.name).") }
  }

  /// Whether attributes, by the names that the caller gave them, have a column among them.
  private static func names(_ column: String, in table: CheckedTable, _ wanted: Set<String>) -> Bool {
    guard !wanted.isEmpty else { return false }
    if wanted.contains("\(table.name).\(column)") { return true }
    // Core Data's column of an attribute is its name in capital letters behind a Z, and a number where two would be the same.
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
