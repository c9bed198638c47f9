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
