internal import ManagedObjectModel
internal import PageRecovery
internal import PersistentStore

extension RecordCollection {
  /// What the tables of a file of what was set aside begin with, and what their rows are.
  private static let kinds = [
    (OutputRole.other.name(""), "other rows"), (OutputRole.deleted.name(""), "deleted rows"),
    ("lazaret_set_aside_", "set aside"),
  ]

  /// Takes the names of a model for a table with rows that a salvage put beside the store: of the entity and its attributes,
  /// or of a many-to-many relationship.
  ///
  /// Keys of other records stay numbers: the records are in another file.
  mutating func takeNames(of layout: StoreLayout) {
    guard let (prefix, words) = Self.kinds.first(where: { name.hasPrefix($0.0) }) else { return }
    let own = name.dropFirst(prefix.count).uppercased()
    if let table = layout.tables.first(where: { $0.name.uppercased() == own }) {
      let entities = layout.entities.filter { $0.tableName == table.name }.map(\.name)
      title = "\(entities.count == 1 ? entities[0] : table.rootEntityName): \(words)"
      takeNames(of: table, layout)
    } else if let table = layout.joinTables.first(where: { $0.name.uppercased() == own }) {
      let sides = [table.relationship, table.inverse]
      let names = table.isReflexive ? [sides[0]] : sides.sorted { ($0.entityName, $0.name) < ($1.entityName, $1.name) }
      title = names.map { "\($0.entityName).\($0.name)" }.joined(separator: " and ") + ": pairs, \(words)"
      guard sides[0].entityName != sides[1].entityName else { return }
      rename([table.sourceColumn: sides[0].entityName, table.destinationColumn: sides[1].entityName])
    }
  }

  private mutating func takeNames(of table: TableLayout, _ layout: StoreLayout) {
    var names: [String: String] = [:]
    for column in table.columns {
      guard let key = column.role.property else { continue }
      let isMarked =
        layout.model.entities[key.entityName]?.properties[key.name]?.attribute?.allowsExternalBinaryDataStorage == true
      switch column.role {
      case .attribute(_, let type):
        names[column.name] = key.name
        setKind(.attribute(type, isMarked: isMarked), of: column.name)
      case .compositeLeaf(_, let path, let type):
        names[column.name] = ([key.name] + path).joined(separator: ".")
        setKind(.attribute(type, isMarked: false), of: column.name)
      case .toOne: names[column.name] = key.name
      case .primaryKey, .entityNumber, .saveCount, .toOneEntity, .toOneOrder, .owner, .ownerOrder: continue
      }
    }
    rename(names)
  }

  private mutating func setKind(_ kind: RecordColumn.Kind, of name: String) {
    guard let index = columns.firstIndex(where: { $0.name.uppercased() == name.uppercased() }) else { return }
    columns[index].kind = kind
  }

  /// Renames columns; one whose new name another has keeps its own.
  private mutating func rename(_ names: [String: String]) {
    for (name, new) in names.sorted(by: { $0.key < $1.key }) {
      guard !columns.contains(where: { $0.name == new }),
        let index = columns.firstIndex(where: { $0.name.uppercased() == name.uppercased() })
      else { continue }
      columns[index].name = new
    }
  }
}
