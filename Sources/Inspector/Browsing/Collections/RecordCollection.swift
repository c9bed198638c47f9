internal import ManagedObjectModel
internal import PersistentStore
internal import Salvage

/// Records browsed together: of an entity with its subentities, or of a table.
package struct RecordCollection: Sendable, Hashable {
  package struct ToMany: Sendable, Hashable {
    /// The relationship's name, or the incoming one's without an inverse.
    package var name: String

    var destination: String

    /// Whether it is an incoming to-one relationship without an inverse.
    var isIncoming: Bool

    var table: String

    /// The SQL column with this side's key.
    var ownSQL: String

    /// The SQL column with the destination's key.
    var destinationSQL: String

    /// The SQL column of the order, if any.
    var orderSQL: String?
  }

  package var name: String

  /// The displayed title, if not the name.
  var title: String?

  package var isEntity: Bool

  /// The columns, key first.
  package var columns: [RecordColumn]

  /// The to-many relationships by name.
  package var toMany: [ToMany]

  /// The columns omitted because SQLite would evaluate the store's expressions for them.
  package var computedColumns: [String] = []

  /// The SQL table; for found rows, the live ones.
  var tableSQL: String

  /// The SQL columns of the key: the rowid, or a WITHOUT ROWID table's primary key.
  var keySQL: [String]

  /// The entity numbers, if the table holds others too.
  var entityNumbers: ClosedRange<Int>?

  var numbersByEntity: [String: Int] = [:]

  var provenance: TableProvenance?

  var hasStates: Bool { provenance != nil }

  func column(_ name: String) -> RecordColumn? { columns.first { $0.name == name } }

  /// - Throws: `unknown-property`.
  func existing(_ name: String) throws(PersistentStoreError) -> RecordColumn {
    guard let column = column(name) else { throw .unknownColumn(name, in: self) }
    return column
  }

  /// The column that names a record: a name or title, else the first text.
  var labelColumn: RecordColumn? {
    let texts = columns.filter(\.isText)
    for word in ["name", "title", "label", "subject", "displayname", "fullname", "text"] {
      if let column = texts.first(where: { $0.name.lowercased() == word }) { return column }
    }
    return texts.first
  }

  /// The condition of every query; nil for the whole table.
  var condition: String? {
    entityNumbers.map { "Z_ENT BETWEEN \($0.lowerBound) AND \($0.upperBound)" }
  }

  /// The SQL source of rows in some states; nil means live ones.
  func source(_ states: Set<RowState>?) -> String {
    guard let states, let provenance else { return tableSQL }
    return provenance.source(states) ?? tableSQL
  }

  var everyRow: String { source(Set(RowState.allCases)) }

  /// The SQL source of the row, in any state, with a key as arguments.
  var rowOfKey: String {
    everyRow + PageStatement.whereClause([condition].compactMap(\.self) + keySQL.map { "\($0) = ?" })
  }

  /// The condition for some states; nil if all rows of ``source(_:)`` meet it.
  func condition(_ states: Set<RowState>?) -> String? {
    guard let states, let provenance, let key = keySQL.first, provenance.source(states) == nil else { return nil }
    return provenance.condition(states, key: key)
  }
}

extension RecordCollection {
  /// Table prefixes of a salvage's extra file, with the kind of rows.
  private static let kinds = [
    (OutputRole.other.name(""), "other rows"), (OutputRole.deleted.name(""), "deleted rows"),
    ("lazaret_set_aside_", "set aside"),
  ]

  /// Applies the model's names to a salvage's extra table.
  ///
  /// Keys stay numbers, because the records are in another file.
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

  /// Renames columns, except to names already taken.
  private mutating func rename(_ names: [String: String]) {
    for (name, new) in names.sorted(by: { $0.key < $1.key }) {
      guard !columns.contains(where: { $0.name == new }),
        let index = columns.firstIndex(where: { $0.name.uppercased() == name.uppercased() })
      else { continue }
      columns[index].name = new
    }
  }
}

/// A column of a collection: an entity's property or a table column.
package struct RecordColumn: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case key

    case entity

    /// An attribute's value; marked if it may be external.
    case attribute(AttributeType, isMarked: Bool)

    /// The primary key of a record of that entity or a subentity.
    case toOne(destination: String)

    case stored(declaredType: String)
  }

  /// The property (a composite leaf's path) or column.
  package var name: String

  var kind: Kind

  var sql: String

  /// The SQL column with the destination's entity number.
  var entitySQL: String?

  var isText: Bool {
    switch kind {
    case .attribute(.string, _), .attribute(.uri, _): true
    case .stored(let type):
      // SQLite's affinity rules; an untyped column may hold anything.
      type.isEmpty || ["CHAR", "CLOB", "TEXT"].contains { type.uppercased().contains($0) }
    case .key, .entity, .attribute, .toOne: false
    }
  }

  var isDate: Bool {
    if case .attribute(.date, _) = kind { true } else { false }
  }

  var isNumeric: Bool {
    switch kind {
    case .attribute(.integer16, _), .attribute(.integer32, _), .attribute(.integer64, _), .attribute(.double, _),
      .attribute(.float, _), .attribute(.decimal, _):
      true
    case .stored(let type):
      // SQLite's affinity rules (https://sqlite.org/datatype3.html): with these types compared text becomes a number.
      !isText && ["INT", "REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"].contains { type.uppercased().contains($0) }
    case .key, .entity, .attribute, .toOne: false
    }
  }

  /// Whether it holds bytes, which don't usefully sort or compare.
  var isBinary: Bool {
    switch kind {
    case .attribute(.binary, _), .attribute(.transformable, _): true
    case .attribute, .key, .entity, .toOne, .stored: false
    }
  }

  var mayHoldBytes: Bool {
    switch kind {
    case .stored: true
    case .attribute, .key, .entity, .toOne: isBinary
    }
  }

  /// The name of the type, such as `string`, `date` or `to-one`.
  package var typeName: String {
    switch kind {
    case .key: "key"
    case .entity: "entity"
    case .toOne: "to-one"
    case .stored(let type): type.isEmpty ? "any" : type.lowercased()
    case .attribute(let type, _):
      switch type {
      case .integer16, .integer32, .integer64: "integer"
      case .decimal: "decimal"
      case .double, .float: "real"
      case .string: "string"
      case .boolean: "boolean"
      case .date: "date"
      case .binary: "binary"
      case .uuid: "uuid"
      case .uri: "uri"
      case .transformable: "transformable"
      case .composite: "composite"
      case .objectID: "object-identifier"
      case .undefined: "undefined"
      }
    }
  }
}
