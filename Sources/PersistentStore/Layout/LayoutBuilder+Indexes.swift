internal import ManagedObjectModel
import Platform

extension LayoutBuilder {
  /// Builds the indexes of relationships, hierarchies, join tables, fetch indexes and uniqueness constraints (format
  /// section 3.8, the names of fw 847 and later).
  mutating func buildIndexes() {
    let joinTablesByEntity = Dictionary(grouping: joinTables, by: { place(of: $0.relationship.entityName)?.rootName })
    for table in tables {
      for column in table.columns {
        switch column.role {
        case .toOne(let key), .owner(let key): addIndex(on: column.name, of: table, purpose: .toOne(key))
        case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOneEntity, .toOneOrder, .ownerOrder:
          break
        }
      }
      guard let root = place(of: table.rootEntityName) else { continue }
      for joinTable in joinTablesByEntity[root.name] ?? [] { addIndex(of: joinTable) }
      if root.hasSubentities, !omitsEntityIndex(root) { addIndex(on: "Z_ENT", of: table, purpose: .entityNumber) }
      for entity in entities[(root.number - 1)..<root.lastDescendantNumber] {
        addFetchIndexes(of: entity)
        addUniquenessConstraints(of: entity)
      }
    }
  }

  /// Whether the model wants no index of the numbers of entities, as that of Photos does for some of its hierarchies.
  private func omitsEntityIndex(_ root: EntityLayout) -> Bool {
    model.entities[root.name]?.userInfo["_NSEntityOmitSubentityColumnIndex"] == "YES"
  }

  private mutating func addIndex(on column: String, of table: TableLayout, purpose: IndexLayout.Purpose) {
    indexes.append(
      IndexLayout(
        name: schemaNames.allocate("\(table.name)_\(column)_INDEX"), tableName: table.name, isUnique: false,
        columns: [IndexedColumn(name: column, isAscending: nil)], condition: nil, purpose: purpose))
  }

  private mutating func addIndex(of table: JoinTableLayout) {
    indexes.append(
      IndexLayout(
        name: schemaNames.allocate("\(table.name)_\(table.destinationColumn)_INDEX"), tableName: table.name,
        isUnique: false,
        columns: [table.destinationColumn, table.sourceColumn].map { IndexedColumn(name: $0, isAscending: nil) },
        condition: nil, purpose: .joinTable))
  }

  /// Adds the fetch indexes that an entity declares; the old flag and the old compound indexes count as such.
  ///
  /// Compiled models list fetch indexes of several properties once more as compound indexes; those make no second index
  /// (six real stores of fw 865 to 1333). Of several of one name the first counts (fw 865). Old compound indexes are called
  /// by their attributes (20 real stores of fw 847 to 1145). An attribute with an ascending index of its own has a plain one
  /// besides, and so has each sub-entity (178 indexes of a Photos library of fw 977, real stores up to fw 1338). A fetch index
  /// of a relationship alone makes none: the relationship has its own (14 indexes of fw 977 and later).
  private mutating func addFetchIndexes(of entity: EntityLayout) {
    guard let declared = model.entities[entity.name] else { return }
    var names: Set<String> = Set(declared.fetchIndexes.map(\.name))
    for property in sortedProperties(of: entity.name)
    where property.traits.isIndexed && property.attribute != nil && names.insert(property.name).inserted {
      add(FetchIndex(name: property.name, elements: [FetchIndexElement(propertyName: property.name)]), of: entity)
    }
    for name in inheritedPlainIndexes(of: entity) where names.insert(name).inserted {
      add(FetchIndex(name: name, elements: [FetchIndexElement(propertyName: name)]), of: entity)
    }
    var added: Set<String> = []
    for index in declared.fetchIndexes where added.insert(index.name).inserted && !isOfRelationship(index, entity) {
      add(index, of: entity)
    }
    let covered = Set(declared.fetchIndexes.map { $0.elements.map { $0.propertyName ?? $0.expression } })
    for properties in declared.compoundIndexes where !covered.contains(properties) {
      let name = properties.joined(separator: "_")
      guard names.insert(name).inserted else { continue }
      add(FetchIndex(name: name, elements: properties.map { FetchIndexElement(propertyName: $0) }), of: entity)
    }
  }

  /// The attributes of ancestors that have an ascending index of their own there, in the order of their names.
  private func inheritedPlainIndexes(of entity: EntityLayout) -> [String] {
    var names: Set<String> = []
    for ancestor in model.lineage(of: entity.name).dropFirst() {
      for index in ancestor.fetchIndexes where index.elements.count == 1 && index.partialIndexPredicate == nil {
        guard let element = index.elements.first, element.kind == .binary, element.isAscending,
          let name = element.propertyName, ancestor.properties[name]?.attribute?.traits.isIndexed == true
        else { continue }
        names.insert(name)
      }
    }
    return names.ordered(by: NameOrder.byCodeUnits)
  }

  private func isOfRelationship(_ index: FetchIndex, _ entity: EntityLayout) -> Bool {
    guard index.elements.count == 1, let name = index.elements.first?.propertyName else { return false }
    return property(name, of: entity.name)?.property.relationship != nil
  }

  private mutating func add(_ index: FetchIndex, of entity: EntityLayout) {
    var columns: [IndexedColumn] = []
    for element in index.elements {
      // The expression `entity` is the column that tells the entities apart.
      guard let path = element.propertyName ?? element.expression,
        let column = column(path, of: entity.name)
          ?? (element.propertyName == nil && element.expression == "entity" ? "Z_ENT" : nil)
      else {
        notes.append(note(.indexLeftOut, entity.name, index.name))
        return
      }
      columns.append(IndexedColumn(name: column, isAscending: element.isAscending))
    }
    guard !columns.isEmpty else { return }
    if index.elements.contains(where: { $0.kind == .rTree }) {
      addSpatialIndex(index, columns: columns.map(\.name), of: entity)
      return
    }
    let condition = index.partialIndexPredicate.flatMap { predicate in
      PartialIndexPredicate.sql(predicate) { column($0, of: entity.name) }
    }
    if index.partialIndexPredicate != nil, condition == nil {
      notes.append(note(.partialIndexMadeWhole, entity.name, index.name))
    }
    indexes.append(
      IndexLayout(
        name: schemaNames.allocate("Z_\(entity.name)_\(index.name)"), tableName: entity.tableName, isUnique: false,
        columns: columns, condition: condition, purpose: .fetch(entityName: entity.name, indexName: index.name)))
  }

  private mutating func addUniquenessConstraints(of entity: EntityLayout) {
    for constraint in model.entities[entity.name]?.uniquenessConstraints ?? [] where !constraint.isEmpty {
      let columns = constraint.compactMap { column($0, of: entity.name) }
      guard columns.count == constraint.count else {
        notes.append(note(.constraintLeftOut, entity.name, constraint.joined(separator: ".")))
        continue
      }
      indexes.append(
        IndexLayout(
          name: schemaNames.allocate("Z_\(entity.name)_UNIQUE_\(constraint.joined(separator: "_"))"),
          tableName: entity.tableName, isUnique: true,
          columns: columns.map { IndexedColumn(name: $0, isAscending: true) }, condition: nil,
          purpose: .uniqueness(entityName: entity.name, properties: constraint)))
    }
  }

  /// The one column of an attribute, a to-one relationship or a composite's leaf (`place.latitude`).
  func column(_ path: String, of entityName: String) -> String? {
    let parts = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard let name = parts.first, let found = property(name, of: entityName) else { return nil }
    switch storages[found.key] {
    case .attribute(let columns):
      guard parts.count > 1 else { return columns.count == 1 ? columns.first?.name : nil }
      return columns.first { column in
        if case .compositeLeaf(_, let path, _) = column.role { path == Array(parts.dropFirst()) } else { false }
      }?.name
    case .toOne(let column, _, _): return parts.count == 1 ? column : nil
    case nil, .toManyByColumn?, .toManyByJoinTable?: return nil
    }
  }

  /// Adds an R-tree index and the triggers that fill it.
  ///
  /// The words are those of a Photos library of fw 977, but for spaces. SQLite's R-trees have at most five dimensions.
  private mutating func addSpatialIndex(_ index: FetchIndex, columns: [String], of entity: EntityLayout) {
    guard columns.count <= 5, Set(columns).count == columns.count else {
      notes.append(note(.indexLeftOut, entity.name, index.name))
      return
    }
    let name = schemaNames.allocate("Z_RT_\(entity.name)_\(index.name)")
    for shadow in ["node", "parent", "rowid"] { _ = schemaNames.allocate("\(name)_\(shadow)") }
    spatialIndexes.append(
      SpatialIndexLayout(name: name, entityName: entity.name, tableName: entity.tableName, columns: columns))
    let tree = SQLText.identifier(name)
    let table = SQLText.identifier(entity.tableName)
    let bounds = columns.flatMap { ["\($0)_MIN", "\($0)_MAX"] }.map(SQLText.identifier).joined(separator: ", ")
    let values = columns.map(SQLText.identifier).map { "NEW.\($0), NEW.\($0)" }.joined(separator: ", ")
    let fill = "INSERT OR REPLACE INTO \(tree) (Z_PK, \(bounds)) VALUES (NEW.Z_PK, \(values)) ;"
    let refill =
      "DELETE FROM \(tree) WHERE Z_PK = NEW.Z_PK ; INSERT INTO \(tree) (Z_PK, \(bounds)) VALUES (NEW.Z_PK, \(values)) ;"
    let condition = entityCondition(of: entity, row: "NEW").map { " WHEN \($0)" } ?? ""
    addTrigger(
      "\(name)_INSERT", on: entity.tableName,
      "AFTER INSERT ON \(table) FOR EACH ROW\(condition) BEGIN \(fill) END")
    addTrigger(
      "\(name)_UPDATE", on: entity.tableName,
      "AFTER UPDATE ON \(table) FOR EACH ROW\(condition) BEGIN \(refill) END")
    addTrigger(
      "\(name)_DELETE", on: entity.tableName,
      "AFTER DELETE ON \(table) FOR EACH ROW BEGIN DELETE FROM \(tree) WHERE Z_PK = OLD.Z_PK ; END")
  }

  mutating func addTrigger(
    _ name: String, on tableName: String, _ body: String, derivedAttribute: PropertyKey? = nil
  ) {
    let name = triggerNames.allocate(name)
    triggers.append(
      TriggerLayout(
        name: name, tableName: tableName, statement: "CREATE TRIGGER \(SQLText.identifier(name)) \(body)",
        derivedAttribute: derivedAttribute))
  }

  /// The condition that a row belongs to an entity; nil where all rows of the table do.
  ///
  /// A root needs none: so it is in stores of fw 1344, while fw 1044 wrote the range for roots with sub-entities too. The
  /// form for entities below a root is that of fw 1044.
  func entityCondition(of entity: EntityLayout, row: String?) -> String? {
    guard !entity.isRoot else { return nil }
    let column = row.map { "\($0).Z_ENT" } ?? "Z_ENT"
    return "\(entity.number) <= \(column) AND \(column) <= \(entity.lastDescendantNumber)"
  }
}

/// An entity's place in a store: its number, its ancestors' and descendants' numbers and its table.
public struct EntityLayout: Sendable, Hashable {
  /// The name of the entity.
  public let name: String

  /// The number that stands for it in `Z_ENT`, from 1.
  public let number: Int

  /// The name of the parent entity; nil for a root.
  public let parentName: String?

  /// The number of the parent (`Z_SUPER`); 0 for a root.
  public let parentNumber: Int

  /// The name of the root of its hierarchy, whose table it shares.
  public let rootName: String

  /// The number of its last descendant; its own number where it has none.
  public internal(set) var lastDescendantNumber: Int

  /// The table its records are in.
  public internal(set) var tableName: String

  /// Whether other entities inherit from it.
  public var hasSubentities: Bool { lastDescendantNumber > number }

  /// Whether it stands at the top of its hierarchy.
  public var isRoot: Bool { parentNumber == 0 }

  /// The numbers of the entity and of all that inherit from it.
  ///
  /// Numbers are given depth-first (format section 3.3), so that a hierarchy is one range.
  public var numbers: ClosedRange<Int> { number...max(number, lastDescendantNumber) }
}

/// The predicate of a partial index, translated to the condition of an SQL index.
///
/// Understood are comparisons of a property with a constant, joined by `AND`; Core Data's own words are not known, so
/// everything here is unverified. What is not understood is no predicate, and the index then covers all rows, which is
/// always right and only larger.
package enum PartialIndexPredicate {
  /// The condition as SQL; nil where the predicate is not understood or names a property without a column.
  package static func sql(_ predicate: String, column: (String) -> String?) -> String? {
    guard predicate.utf8.count <= 4096, let tokens = tokens(of: predicate) else { return nil }
    var conditions: [String] = []
    for clause in tokens.split(whereSeparator: { isWord($0, "AND") || $0 == "&&" }) {
      let clause = Array(clause)
      guard clause.count == 3, let column = column(clause[0]),
        let condition = comparison(SQLText.identifier(column), clause[1], clause[2])
      else { return nil }
      conditions.append(condition)
    }
    let joints = tokens.filter { isWord($0, "AND") || $0 == "&&" }.count
    guard !conditions.isEmpty, joints == conditions.count - 1 else { return nil }
    return conditions.joined(separator: " AND ")
  }

  private static func comparison(_ column: String, _ sign: String, _ constant: String) -> String? {
    let sign = ["==": "=", "=": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="][sign]
    guard let sign else { return nil }
    if ["nil", "null"].contains(where: { isWord(constant, $0) }) {
      return sign == "=" ? "\(column) IS NULL" : sign == "<>" ? "\(column) IS NOT NULL" : nil
    }
    return value(constant).map { "\(column) \(sign) \($0)" }
  }

  private static func value(_ constant: String) -> String? {
    if ["YES", "TRUE"].contains(where: { isWord(constant, $0) }) { return "1" }
    if ["NO", "FALSE"].contains(where: { isWord(constant, $0) }) { return "0" }
    if let number = Int64(constant) { return String(number) }
    if let quote = constant.first, quote == "\"" || quote == "'", constant.count >= 2, constant.last == quote {
      return SQLText.literal(String(constant.dropFirst().dropLast()))
    }
    return nil
  }

  private static func isWord(_ token: String, _ word: String) -> Bool { token.uppercased() == word.uppercased() }

  /// Words, signs and quoted texts; nil where there is anything else.
  private static func tokens(of predicate: String) -> [String]? {
    var tokens: [String] = []
    var rest = Substring(predicate)
    while let first = rest.first {
      if first == " " {
        rest.removeFirst()
      } else if first == "\"" || first == "'" {
        guard let end = rest.dropFirst().firstIndex(of: first), !rest[..<end].contains("\\") else { return nil }
        tokens.append(String(rest[...end]))
        rest = rest[rest.index(after: end)...]
      } else if "=<>!&".contains(first) {
        let sign = rest.prefix { "=<>!&".contains($0) }
        tokens.append(String(sign))
        rest = rest.dropFirst(sign.count)
      } else {
        let word = rest.prefix { $0.isLetter || $0.isNumber || "._-".contains($0) }
        guard !word.isEmpty else { return nil }
        tokens.append(String(word))
        rest = rest.dropFirst(word.count)
      }
    }
    return tokens
  }
}
