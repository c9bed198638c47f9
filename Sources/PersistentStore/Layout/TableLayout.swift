/// A hierarchy's table, shared by the root entity and its descendants.
public struct TableLayout: Sendable, Hashable {
  /// The name: `Z` and the upper-cased root entity.
  public let name: String

  /// The hierarchy's root entity.
  public let rootEntityName: String

  /// The columns in a fresh table's order (format section 3.5).
  ///
  /// Columns are always addressed by name.
  public let columns: [ColumnLayout]

  /// The `CREATE` statement in Core Data's form.
  public var statement: String {
    let list = columns.map { column in
      "\(column.sqlName) \(column.type.rawValue)\(column.role == .primaryKey ? " PRIMARY KEY" : "")"
    }
    return "CREATE TABLE \(SQLText.identifier(name)) ( \(list.joined(separator: ", ")) )"
  }

  /// Returns a column by name, ignoring ASCII case as SQLite does.
  public func column(named name: String) -> ColumnLayout? {
    let key = NameAllocator.key(name)
    return columns.first { NameAllocator.key($0.name) == key }
  }
}

/// A join table with the record pairs of a many-to-many relationship (format section 3.6).
public struct JoinTableLayout: Sendable, Hashable {
  /// The name: `Z_`, a number and the upper-cased relationship.
  public let name: String

  /// The naming relationship.
  public let relationship: PropertyKey

  /// The inverse, possibly the same relationship.
  public let inverse: PropertyKey

  /// The column of the naming side's primary key.
  public let sourceColumn: String

  /// The column of the destination's primary key; `REFLEXIVE` for a self-inverse relationship.
  public let destinationColumn: String

  /// The source's position in an ordered inverse.
  public let sourceOrderColumn: String?

  /// The destination's position in an ordered relationship.
  public let destinationOrderColumn: String?

  /// Whether the relationship is its own inverse; both directions are rows then (unverified).
  public var isReflexive: Bool { relationship == inverse }

  /// The integer columns in a fresh table's order.
  public var columns: [String] {
    [sourceColumn, destinationColumn] + [sourceOrderColumn, destinationOrderColumn].compactMap(\.self)
  }

  /// The `CREATE` statement in Core Data's form.
  public var statement: String {
    let list = columns.map { "\(SQLText.identifier($0)) INTEGER" }.joined(separator: ", ")
    let key = [sourceColumn, destinationColumn].map(SQLText.identifier).joined(separator: ", ")
    return "CREATE TABLE \(SQLText.identifier(name)) ( \(list), PRIMARY KEY (\(key)) )"
  }
}

/// Unique names, ignoring ASCII case: a taken name gets the suffix 1, 2, … (format section 3.5, collision rule).
struct NameAllocator {
  private var taken: Set<[UInt8]> = []
  private var nextSuffixes: [[UInt8]: Int] = [:]

  init(reserving names: [String] = []) {
    for name in names { taken.insert(Self.key(name)) }
  }

  mutating func allocate(_ name: String) -> String {
    let key = Self.key(name)
    guard !taken.insert(key).inserted else { return name }
    var suffix = nextSuffixes[key] ?? 1
    while true {
      let candidate = "\(name)\(suffix)"
      suffix &+= 1
      if taken.insert(Self.key(candidate)).inserted {
        nextSuffixes[key] = suffix
        return candidate
      }
    }
  }

  static func key(_ name: String) -> [UInt8] {
    name.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 &- 32 : $0 }
  }
}
