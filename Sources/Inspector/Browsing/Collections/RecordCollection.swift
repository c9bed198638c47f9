import ManagedObjectModel
internal import PersistentStore
internal import Salvage

/// Records that are browsed together: those of an entity and of all that inherit from it, or the rows of a plain table.
package struct RecordCollection: Sendable, Hashable {
  /// A to-many relationship of an entity.
  package struct ToMany: Sendable, Hashable {
    /// The name of the relationship, or of the one that leads here where only that has one.
    package var name: String

    /// The collection it leads to.
    package var destination: String

    /// Whether it is a to-one relationship of the destination seen from its other end, without a name of its own.
    package var isIncoming: Bool

    /// The table that connects both sides.
    package var table: String

    /// The column of that table with the key of this side's record, as SQL.
    package var ownSQL: String

    /// The column of that table with the key of the destination, as SQL.
    package var destinationSQL: String

    /// The column to sort by, where the relationship has an order, as SQL.
    package var orderSQL: String?
  }

  /// The name of the entity, or of the table.
  package var name: String

  /// What it is called where its name is that of a table with rows of an entity beside the store's; nil where it is its name.
  package var title: String?

  /// Whether it is an entity of a model; else a table.
  package var isEntity: Bool

  /// The columns, the key first.
  package var columns: [RecordColumn]

  /// The relationships to any number of records, by name.
  package var toMany: [ToMany]

  /// The names of columns that are left out: SQLite would compute their values by expressions of the store, which do not
  /// run here.
  package var computedColumns: [String] = []

  /// The table, as it stands in SQL; in a store of found rows that of the live ones.
  package var tableSQL: String

  /// The columns that tell the rows apart, as SQL: the rowid's, or the primary key of a table without one.
  package var keySQL: [String]

  /// The numbers of the entities in it, where the table holds others too.
  package var entityNumbers: ClosedRange<Int>?

  /// The numbers of the entities that its records may be of, by their names.
  package var numbersByEntity: [String: Int] = [:]

  /// What is noted of its rows, in a store of found rows.
  var provenance: TableProvenance?

  /// Whether each of its rows has a state: how far it is to be believed.
  package var hasStates: Bool { provenance != nil }

  /// The column of that name.
  package func column(_ name: String) -> RecordColumn? { columns.first { $0.name == name } }

  /// The column that says best what a record is: a name or a title, else the first with text.
  package var labelColumn: RecordColumn? {
    let texts = columns.filter(\.isText)
    for word in ["name", "title", "label", "subject", "displayname", "fullname", "text"] {
      if let column = texts.first(where: { $0.name.lowercased() == word }) { return column }
    }
    return texts.first
  }

  /// The condition that every query of it has; nil where the whole table is meant.
  package var condition: String? {
    entityNumbers.map { "Z_ENT BETWEEN \($0.lowerBound) AND \($0.upperBound)" }
  }

  /// The table of SQL with its rows in some states; nil for all live ones.
  func source(_ states: Set<RowState>?) -> String {
    guard let states, let provenance else { return tableSQL }
    return provenance.source(states) ?? tableSQL
  }

  /// The table of SQL with all its rows, those that are no live ones among them.
  var everyRow: String { source(Set(RowState.allCases)) }

  /// The condition that its rows are in some states, as SQL, which those of ``source(_:)`` meet in any case where it is nil.
  func condition(_ states: Set<RowState>?) -> String? {
    guard let states, let provenance, let key = keySQL.first, provenance.source(states) == nil else { return nil }
    return provenance.condition(states, key: key)
  }
}

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
