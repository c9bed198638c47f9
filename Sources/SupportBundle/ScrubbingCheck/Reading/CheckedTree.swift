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

  /// Creates an index, with copies of columns.
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
