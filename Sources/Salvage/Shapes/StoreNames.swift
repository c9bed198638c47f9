internal import PersistentStore

/// The store's names for a layout's tables and columns.
///
/// They differ if a name includes another entity number (`Z_2TAGS`, `Z4_OWNER`), or the store has another model with
/// the same entities and properties.
struct StoreNames {
  private var tables: [String: String] = [:]

  private var columns: [String: [String: String]] = [:]

  /// Creates identical names.
  init() {}

  func table(_ name: String) -> String { tables[name.lowercased()] ?? name }

  func column(_ name: String, of table: String) -> String {
    columns[table.lowercased()]?[name.lowercased()] ?? name
  }

  /// Whether a table and its columns have the layout's names.
  func isAsLaidOut(_ table: String) -> Bool {
    tables[table.lowercased()] == nil && columns[table.lowercased()] == nil
  }

  /// The store's differently named tables, in lower case.
  var foreignTables: [String] { tables.values.map { $0.lowercased() } }

  private mutating func note(table: String, _ name: String) {
    if table != name { tables[table.lowercased()] = name }
  }

  private mutating func note(column: String, _ name: String, of table: String) {
    if column != name { columns[table.lowercased(), default: [:]][column.lowercased()] = name }
  }
}

extension StoreNames {
  /// Creates the names for the same model in another numbering.
  init(_ layout: StoreLayout, _ numbering: EntityNames) {
    func renumbered(_ name: String, after prefix: String) -> String {
      let digits = name.dropFirst(prefix.count).prefix { $0.isASCII && $0.isNumber }
      guard name.hasPrefix(prefix), let number = Int(digits), let entity = layout.entity(numbered: number),
        let own = numbering.numbers[entity.name]
      else { return name }
      return prefix + "\(own)" + name.dropFirst(prefix.count + digits.count)
    }
    for table in layout.tables {
      for column in table.columns {
        switch column.role {
        case .toOneEntity, .owner:
          note(column: column.name, renumbered(column.name, after: "Z"), of: table.name)
        case .ownerOrder: note(column: column.name, renumbered(column.name, after: "Z_FOK_"), of: table.name)
        case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .toOneOrder: break
        }
      }
    }
    for table in layout.joinTables {
      note(table: table.name, renumbered(table.name, after: "Z_"))
      for column in [table.sourceColumn, table.destinationColumn] {
        note(column: column, renumbered(column, after: "Z_"), of: table.name)
      }
      for column in [table.sourceOrderColumn, table.destinationOrderColumn].compactMap(\.self) {
        note(column: column, renumbered(column, after: "Z_FOK_"), of: table.name)
      }
    }
  }

  /// Creates the names for another model, matching entities and properties.
  ///
  /// - Parameter names: the store's names for its own model's layout.
  init(_ layout: StoreLayout, in foreign: StoreLayout, _ names: StoreNames) {
    for table in layout.tables {
      guard let theirs = foreign.table(of: table.rootEntityName),
        foreign.entity(named: table.rootEntityName)?.isRoot == true
      else { continue }
      note(table: table.name, names.table(theirs.name))
      var places: [Place: String] = [:]
      for column in theirs.columns { places[Place(column.role)] = names.column(column.name, of: theirs.name) }
      for column in table.columns {
        guard let place = places[Place(column.role)] else { continue }
        note(column: column.name, place, of: table.name)
      }
    }
    for table in layout.joinTables {
      guard
        case .toManyByJoinTable(let name, let own, let destination, let order) = foreign.storage(of: table.relationship),
        let theirs = foreign.joinTable(named: name)
      else { continue }
      note(table: table.name, names.table(name))
      let otherOrder = own == theirs.sourceColumn ? theirs.sourceOrderColumn : theirs.destinationOrderColumn
      for (column, place) in [
        (table.sourceColumn, own), (table.destinationColumn, destination),
        (table.destinationOrderColumn, order), (table.sourceOrderColumn, otherOrder),
      ] {
        guard let column, let place else { continue }
        note(column: column, names.column(place, of: name), of: table.name)
      }
    }
  }

  private struct Place: Hashable {
    var kind: Int
    var key: PropertyKey?
    var path: [String] = []

    init(_ role: ColumnRole) {
      key = role.property
      switch role {
      case .primaryKey: kind = 0
      case .entityNumber: kind = 1
      case .saveCount: kind = 2
      case .attribute: kind = 3
      case .compositeLeaf(_, let leaf, _):
        kind = 4
        path = leaf
      case .toOne: kind = 5
      case .toOneEntity: kind = 6
      case .toOneOrder: kind = 7
      case .owner: kind = 8
      case .ownerOrder: kind = 9
      }
    }
  }
}
