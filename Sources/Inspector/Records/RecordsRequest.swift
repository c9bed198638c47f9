import HTTPServer

/// A record list's query from URL parameters, or from the form without scripts.
struct RecordsRequest: Sendable {
  let query: RecordQuery

  /// The number of form lines, each with `_column1`, `_is1`, `_value1`.
  static let fields = 12

  /// - Throws: `bad-query` and `unknown-property`.
  init(_ query: Query, of collection: RecordCollection) throws {
    var parameters: [(name: String, value: String)] = []
    var shown: [String] = []
    for item in query.items {
      if item.name == "_show" {
        shown.append(item.value)
      } else if !Self.isField(item.name) {
        parameters.append((item.name, item.value))
      }
    }
    for number in 1...Self.fields {
      guard let column = query["_column\(number)"], !column.isEmpty else { continue }
      let comparison = query["_is\(number)"] ?? RecordFilter.Comparison.exact.rawValue
      let name = comparison == RecordFilter.Comparison.exact.rawValue ? column : "\(column)__\(comparison)"
      parameters.append((name, query["_value\(number)"] ?? ""))
    }
    var result = try RecordQuery(parameters, of: collection)
    if !shown.isEmpty {
      let all = collection.columns.map(\.name)
      let wanted = Set(shown)
      result.columns = wanted.count == all.count ? nil : all.filter(wanted.contains)
      if result.columns?.isEmpty == true { result.columns = nil }
    }
    self.query = result
  }

  private static func isField(_ name: String) -> Bool {
    ["_column", "_is", "_value"].contains { prefix in
      guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)) else { return false }
      return (1...fields).contains(number)
    }
  }
}

extension RecordQuery {
  var items: [Query.Item] { parameters.map { Query.Item($0.name, $0.value) } }

  /// Changes the query and returns to its first page.
  func changed(_ change: (inout RecordQuery) -> Void) -> RecordQuery {
    var copy = self
    copy.next = nil
    copy.countsAll = false
    change(&copy)
    return copy
  }
}

extension RecordFilter.Comparison {
  var words: String {
    switch self {
    case .exact: "is"
    case .not: "is not"
    case .contains: "contains"
    case .startsWith: "begins with"
    case .endsWith: "ends with"
    case .greater: "is after, greater than"
    case .greaterOrEqual: "is at least"
    case .less: "is before, less than"
    case .lessOrEqual: "is at most"
    case .isNull: "is null"
    case .isNotNull: "is not null"
    }
  }
}
