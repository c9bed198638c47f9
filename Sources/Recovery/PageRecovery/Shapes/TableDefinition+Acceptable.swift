internal import SQLiteFormat

extension TableDefinition {
  /// Makes of a damaged definition one that SQLite accepts: columns of the same name get different ones, and the key has no
  /// column that is not there.
  mutating func makeAcceptable() {
    // The last number that was put behind a name, so that thousands of the same name take no longer than others.
    var numbers: [String: Int] = [:]
    for index in columns.indices {
      let name = columns[index].name
      while let last = numbers[Self.folded(columns[index].name)] {
        numbers[Self.folded(columns[index].name)] = last + 1
        columns[index].name = "\(name)_\(last + 1)"
      }
      numbers[Self.folded(columns[index].name)] = 1
    }
    primaryKeyColumns = primaryKeyColumns.filter { $0.name.flatMap { column(named: $0) } != nil }
  }

  /// A name as SQLite compares it: letters of ASCII are of either case.
  private static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
