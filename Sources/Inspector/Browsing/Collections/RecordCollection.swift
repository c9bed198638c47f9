internal import GRDB
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
    let words = ["name", "title", "label", "subject", "displayname", "fullname", "text"]
    return words.lazy.compactMap { word in texts.first { $0.name.lowercased() == word } }.first ?? texts.first
  }

  /// The condition of every query; nil for the whole table.
  var condition: String? { entityNumbers.map { "Z_ENT BETWEEN \($0.lowerBound) AND \($0.upperBound)" } }

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
      if let attribute = column.attribute(in: layout) {
        names[column.name] = attribute.name
        setKind(attribute.kind, of: column.name)
      } else if case .toOne = column.role {
        names[column.name] = column.role.property?.name
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

  var isDate: Bool { if case .attribute(.date, _) = kind { true } else { false } }

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

  var mayHoldBytes: Bool {
    switch kind {
    case .stored, .attribute(.binary, _), .attribute(.transformable, _): true
    case .attribute, .key, .entity, .toOne: false
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

/// The entities of a store's model, then other tables.
///
/// Columns that SQLite would compute from a store's expression are omitted, but named.
struct CollectionList {
  private(set) var collections: [RecordCollection] = []

  private(set) var entityNames: [Int: String] = [:]

  private(set) var manyToMany: [ManyToMany] = []

  init(_ database: Database, layout: StoreLayout?, hasProvenance: Bool = false) throws {
    let schema = try SQLSchema(database)
    let provenance = try hasProvenance ? TableProvenance.all(database, schema) : [:]
    let apart = Set(provenance.values.flatMap { $0.apart.map(\.name) })
    var taken: Set<String> = []
    if let layout {
      for entity in layout.entities {
        entityNames[entity.number] = entity.name
        guard let table = layout.table(of: entity.name), let real = Self.table(table.name, in: schema),
          Set(["Z_PK", "Z_ENT"]).isSubset(of: real.storedColumns.map { $0.name.uppercased() })
        else { continue }
        taken.insert(real.name)
        var collection = Self.collection(entity, table, real, layout, schema)
        collection.provenance = provenance[real.name]
        collection.computedColumns = real.columns.filter(\.isComputed).map(\.name)
        collections.append(collection)
      }
      collections.sort { $0.name < $1.name }
      for table in layout.joinTables {
        // A join table that lacks a column is shown as a plain table.
        guard let found = Self.manyToMany(table, in: schema), taken.insert(found.table).inserted else { continue }
        manyToMany.append(found.relationship)
      }
      manyToMany.sort { $0.name < $1.name }
    }
    let withoutRowid = try Set(
      String.fetchAll(database, sql: "SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr = 1"))
    for table in schema.tables.values.sorted(by: { $0.name < $1.name }) where !taken.contains(table.name) {
      // Core Data's own tables hold no user records; salvage notes are shown elsewhere.
      let isBookkeeping = layout != nil && StoreLayout.bookkeepingTableNames.contains(table.name.uppercased())
      let isNote = table.name == "lazaret_evidence" || hasProvenance && table.name.hasPrefix("lazaret_browsed_")
      guard !isBookkeeping, !isNote, !apart.contains(table.name), !table.isVirtual, !table.storedColumns.isEmpty else {
        continue
      }
      guard var plain = Self.collection(table, isWithoutRowid: withoutRowid.contains(table.name)) else { continue }
      plain.provenance = provenance[table.name]
      plain.computedColumns = table.columns.filter(\.isComputed).map(\.name)
      if let layout { plain.takeNames(of: layout) }
      collections.append(plain)
    }
  }

  static func table(_ name: String, in schema: SQLSchema) -> SQLTable? {
    schema.tables[name] ?? schema.tables.values.first { $0.name.uppercased() == name.uppercased() }
  }

  // MARK: Entities

  private static func collection(
    _ entity: EntityLayout, _ table: TableLayout, _ real: SQLTable, _ layout: StoreLayout, _ schema: SQLSchema
  ) -> RecordCollection {
    let lineage = Set(layout.lineage(of: entity.name))
    let present = Set(real.storedColumns.map { $0.name.uppercased() })
    var columns = [RecordColumn(name: "Z_PK", kind: .key, sql: "Z_PK")]
    if entity.hasSubentities { columns.append(RecordColumn(name: "Z_ENT", kind: .entity, sql: "Z_ENT")) }
    for column in table.columns where present.contains(column.name.uppercased()) {
      guard let key = column.role.property, let owner = layout.entity(named: key.entityName),
        lineage.contains(owner.name) || entity.numbers.contains(owner.number)
      else { continue }
      if let attribute = column.attribute(in: layout) {
        columns.append(RecordColumn(name: attribute.name, kind: attribute.kind, sql: column.sqlName))
      } else if case .toOne = column.role, case .toOne(_, let entityColumn, _) = layout.storage(of: key),
        let relationship = layout.model.entities[key.entityName]?.properties[key.name]?.relationship
      {
        columns.append(
          RecordColumn(
            name: key.name, kind: .toOne(destination: relationship.destinationEntityName), sql: column.sqlName,
            entitySQL: entityColumn.flatMap { present.contains($0.uppercased()) ? SQLText.identifier($0) : nil }))
      }
    }
    return RecordCollection(
      name: entity.name, isEntity: true, columns: columns, toMany: toMany(of: entity, lineage, layout, schema),
      tableSQL: SQLText.identifier(real.name), keySQL: ["Z_PK"], entityNumbers: entity.isRoot ? nil : entity.numbers,
      numbersByEntity: Dictionary(
        uniqueKeysWithValues: entity.numbers.compactMap { number in
          layout.entity(numbered: number).map { ($0.name, number) }
        }))
  }

  private static func toMany(
    of entity: EntityLayout, _ lineage: Set<String>, _ layout: StoreLayout, _ schema: SQLSchema
  ) -> [RecordCollection.ToMany] {
    var result: [RecordCollection.ToMany] = []
    for (name, inherited) in layout.model.properties(of: entity.name).sorted(by: { $0.key < $1.key }) {
      guard let relationship = inherited.property.relationship else { continue }
      let source: (table: String, own: String, destination: String, order: String?)
      switch layout.storage(of: name, in: entity.name) {
      case .toManyByColumn(let table, let column, let order): source = (table, column, "Z_PK", order)
      case .toManyByJoinTable(let table, let own, let destination, let order): source = (table, own, destination, order)
      case .attribute, .toOne, nil: continue
      }
      guard let table = Self.table(source.table, in: schema),
        let own = column(source.own, of: table), let destination = column(source.destination, of: table)
      else { continue }
      result.append(
        RecordCollection.ToMany(
          name: name, destination: relationship.destinationEntityName, isIncoming: false,
          table: SQLText.identifier(table.name), ownSQL: own, destinationSQL: destination,
          orderSQL: source.order.flatMap { column($0, of: table) }))
    }
    // Incoming relationships without an inverse are listed by the other entity's name for them.
    for other in layout.entities {
      for (name, property) in layout.model.entities[other.name]?.properties ?? [:] {
        guard let relationship = property.relationship, relationship.inverseName == nil,
          lineage.contains(relationship.destinationEntityName),
          case .toOne(let reference, _, _) = layout.storage(of: name, in: other.name),
          let table = Self.table(other.tableName, in: schema), let own = column(reference, of: table)
        else { continue }
        result.append(
          RecordCollection.ToMany(
            name: "\(other.name).\(name)", destination: other.name, isIncoming: true,
            table: SQLText.identifier(table.name), ownSQL: own, destinationSQL: "Z_PK", orderSQL: nil))
      }
    }
    return result.sorted { ($0.isIncoming ? 1 : 0, $0.name) < ($1.isIncoming ? 1 : 0, $1.name) }
  }

  static func column(_ name: String, of table: SQLTable) -> String? {
    table.storedColumns.first { $0.name.uppercased() == name.uppercased() }.map { SQLText.identifier($0.name) }
  }

  // MARK: Plain tables

  private static func collection(_ table: SQLTable, isWithoutRowid: Bool) -> RecordCollection? {
    let primaryKey = table.columns.filter { $0.primaryKeyPosition > 0 }
      .sorted { $0.primaryKeyPosition < $1.primaryKeyPosition }
    let key: [String]
    if isWithoutRowid {
      key = primaryKey.map { SQLText.quotedIdentifier($0.name) }
    } else {
      guard let rowid = table.rowidName else { return nil }
      key = [rowid]
    }
    let alias = isWithoutRowid ? nil : table.rowidAlias
    let columns = table.storedColumns.map { column in
      RecordColumn(
        name: column.name, kind: column.name == alias ? .key : .stored(declaredType: column.declaredType),
        sql: SQLText.quotedIdentifier(column.name))
    }
    return RecordCollection(
      name: table.name, isEntity: false, columns: columns, toMany: [], tableSQL: SQLText.quotedIdentifier(table.name),
      keySQL: key, entityNumbers: nil)
  }
}

extension ColumnLayout {
  /// The name and kind of an attribute's column; nil for others.
  fileprivate func attribute(in layout: StoreLayout) -> (name: String, kind: RecordColumn.Kind)? {
    guard let key = role.property else { return nil }
    switch role {
    case .attribute(_, let type):
      let attribute = layout.model.entities[key.entityName]?.properties[key.name]?.attribute
      return (key.name, .attribute(type, isMarked: attribute?.allowsExternalBinaryDataStorage == true))
    case .compositeLeaf(_, let path, let type):
      return (([key.name] + path).joined(separator: "."), .attribute(type, isMarked: false))
    case .toOne, .primaryKey, .entityNumber, .saveCount, .toOneEntity, .toOneOrder, .owner, .ownerOrder: return nil
    }
  }
}

extension CollectionList {
  /// Returns the relationship and its table; nil if the table or a key column is missing.
  static func manyToMany(_ layout: JoinTableLayout, in schema: SQLSchema) -> (relationship: ManyToMany, table: String)?
  {
    guard let table = table(layout.name, in: schema), let source = column(layout.sourceColumn, of: table),
      let destination = column(layout.destinationColumn, of: table)
    else { return nil }
    func side(_ key: PropertyKey, _ column: String, _ order: String?) -> ManyToMany.Side {
      ManyToMany.Side(
        entity: key.entityName, relationship: key.name, keySQL: column,
        orderSQL: order.flatMap { Self.column($0, of: table) })
    }
    let relationship = ManyToMany(
      side(layout.relationship, source, layout.destinationOrderColumn),
      side(layout.inverse, destination, layout.sourceOrderColumn), tableSQL: SQLText.identifier(table.name))
    return (relationship, table.name)
  }
}

/// A many-to-many relationship and its join table.
///
/// Sides are in alphabetical order, because the join table's name may differ between model versions.
struct ManyToMany: Sendable, Hashable {
  struct Side: Sendable, Hashable {
    var entity: String

    var relationship: String

    /// The SQL column with this entity's primary key.
    var keySQL: String

    /// The SQL column of the position, if ordered.
    var orderSQL: String?

    /// The name, such as `Ship.ports`.
    var name: String { "\(entity).\(relationship)" }
  }

  /// The alphabetically first side.
  var first: Side

  /// The other side; the same relationship if self-inverse.
  var second: Side

  var tableSQL: String

  /// The name, such as `Port.ships-Ship.ports`; a single name if self-inverse.
  var name: String { first.name == second.name ? first.name : "\(first.name)-\(second.name)" }

  init(_ one: Side, _ other: Side, tableSQL: String) {
    let isInOrder = (one.entity, one.relationship) <= (other.entity, other.relationship)
    (first, second) = isInOrder ? (one, other) : (other, one)
    self.tableSQL = tableSQL
  }
}
