/// The table of a hierarchy of entities: that of the root entity, which all its descendants share.
public struct TableLayout: Sendable, Hashable {
  /// The name, `Z` and the upper-cased name of the root entity.
  public let name: String

  /// The entity at the top of the hierarchy.
  public let rootEntityName: String

  /// The columns in the order of a fresh table (format section 3.5).
  ///
  /// The order is for looks only: columns are always addressed by name.
  public let columns: [ColumnLayout]

  /// The statement that creates it, as Core Data writes it.
  public var statement: String {
    let list = columns.map { column in
      "\(column.sqlName) \(column.type.rawValue)\(column.role == .primaryKey ? " PRIMARY KEY" : "")"
    }
    return "CREATE TABLE \(SQLText.identifier(name)) ( \(list.joined(separator: ", ")) )"
  }

  /// The column of that name, without regard to the case of ASCII letters, as SQLite compares names.
  public func column(named name: String) -> ColumnLayout? {
    let key = NameAllocator.key(name)
    return columns.first { NameAllocator.key($0.name) == key }
  }
}

/// A join table: the pairs of records that a many-to-many relationship connects (format section 3.6).
public struct JoinTableLayout: Sendable, Hashable {
  /// The name, `Z_`, a number and the upper-cased name of the relationship.
  public let name: String

  /// The relationship that names the table.
  public let relationship: PropertyKey

  /// Its inverse; the same relationship where it is its own inverse.
  public let inverse: PropertyKey

  /// The column with the primary key of the naming side's own record.
  public let sourceColumn: String

  /// The column with the primary key of the destination; `REFLEXIVE` where the relationship is its own inverse.
  public let destinationColumn: String

  /// The source's place in the inverse, where that is ordered.
  public let sourceOrderColumn: String?

  /// The destination's place in the relationship, where that is ordered.
  public let destinationOrderColumn: String?

  /// Whether the relationship is its own inverse; both directions are rows then (unverified).
  public var isReflexive: Bool { relationship == inverse }

  /// The names of its columns, all of them integers, in the order of a fresh table.
  public var columns: [String] {
    [sourceColumn, destinationColumn] + [sourceOrderColumn, destinationOrderColumn].compactMap(\.self)
  }

  /// The statement that creates it, as Core Data writes it.
  public var statement: String {
    let list = columns.map { "\(SQLText.identifier($0)) INTEGER" }.joined(separator: ", ")
    let key = [sourceColumn, destinationColumn].map(SQLText.identifier).joined(separator: ", ")
    return "CREATE TABLE \(SQLText.identifier(name)) ( \(list), PRIMARY KEY (\(key)) )"
  }
}

/// Names given out once: a name that is taken gets the suffix 1, 2, … (format section 3.5, collision rule).
///
/// SQLite compares names without regard to the case of ASCII letters, so this does too.
struct NameAllocator {
  private var taken: Set<[UInt8]> = []
  private var nextSuffixes: [[UInt8]: Int] = [:]

  init(reserving names: [String] = []) {
    for name in names { taken.insert(Self.key(name)) }
  }

  /// Gives out the name, with a suffix where it is taken.
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

  /// The name as SQLite compares it: ASCII letters upper-cased.
  static func key(_ name: String) -> [UInt8] {
    name.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 &- 32 : $0 }
  }
}
