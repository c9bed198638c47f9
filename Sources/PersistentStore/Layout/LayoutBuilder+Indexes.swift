internal import ManagedObjectModel
import Platform

extension LayoutBuilder {
  /// Builds all indexes and R-trees (format section 3.8, names since fw 847).
  mutating func buildIndexes() {
    let joinTablesByEntity = Dictionary(grouping: joinTables, by: { place(of: $0.relationship.entityName)?.rootName })
    for table in tables {
      for column in table.columns {
        switch column.role {
        case .toOne(let key), .owner(let key): addIndex(on: column.name, of: table.name, purpose: .toOne(key))
        case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOneEntity, .toOneOrder, .ownerOrder:
          break
        }
      }
      guard let root = place(of: table.rootEntityName) else { continue }
      for join in joinTablesByEntity[root.name] ?? [] {
        addIndex(on: join.destinationColumn, join.sourceColumn, of: join.name, purpose: .joinTable)
      }
      if root.hasSubentities, !omitsEntityIndex(root) { addIndex(on: "Z_ENT", of: table.name, purpose: .entityNumber) }
      for entity in entities[(root.number - 1)..<root.lastDescendantNumber] {
        addFetchIndexes(of: entity)
        addUniquenessConstraints(of: entity)
      }
    }
  }

  /// Returns whether the model omits an entity number index, as Photos sometimes does.
  private func omitsEntityIndex(_ root: EntityLayout) -> Bool {
    model.entities[root.name]?.userInfo["_NSEntityOmitSubentityColumnIndex"] == "YES"
  }

  /// Adds an index that is named by its first column.
  private mutating func addIndex(
    on column: String, _ others: String..., of table: String, purpose: IndexLayout.Purpose
  ) {
    indexes.append(
      IndexLayout(
        name: schemaNames.allocate("\(table)_\(column)_INDEX"), tableName: table, isUnique: false,
        columns: ([column] + others).map { IndexLayoutColumn(name: $0, isAscending: nil) }, condition: nil,
        purpose: purpose))
  }

  /// Adds an entity's fetch indexes, including old indexed flags and compound indexes.
  ///
  /// Compiled models repeat multi-property fetch indexes as compound indexes, which create no second index (six real
  /// stores of fw 865 to 1333). Of equal names the first wins (fw 865). Old compound indexes are named by attributes
  /// (20 real stores of fw 847 to 1145). An attribute with its own ascending index also has a plain one, in
  /// sub-entities too (178 indexes of a Photos library of fw 977, real stores up to fw 1338). A fetch index of one
  /// relationship creates none: the relationship has its own (14 indexes of fw 977 and later).
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

  /// Returns ancestors' attributes with their own ascending index, by name.
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
    var columns: [IndexLayoutColumn] = []
    for element in index.elements {
      // The expression `entity` is the entity number column.
      guard let path = element.propertyName ?? element.expression,
        let column = column(path, of: entity.name)
          ?? (element.propertyName == nil && element.expression == "entity" ? "Z_ENT" : nil)
      else {
        notes.append(note(.indexLeftOut, entity.name, index.name))
        return
      }
      columns.append(IndexLayoutColumn(name: column, isAscending: element.isAscending))
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
          columns: columns.map { IndexLayoutColumn(name: $0, isAscending: true) }, condition: nil,
          purpose: .uniqueness(entityName: entity.name, properties: constraint)))
    }
  }

  /// Returns the only column of a path such as `place.latitude`.
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

  /// Adds an R-tree index and its triggers.
  ///
  /// The wording, except for spaces, is a Photos library's (fw 977). SQLite allows five dimensions.
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
      "\(name)_INSERT", on: entity.tableName, "AFTER INSERT ON \(table) FOR EACH ROW\(condition) BEGIN \(fill) END")
    addTrigger(
      "\(name)_UPDATE", on: entity.tableName, "AFTER UPDATE ON \(table) FOR EACH ROW\(condition) BEGIN \(refill) END")
    addTrigger(
      "\(name)_DELETE", on: entity.tableName,
      "AFTER DELETE ON \(table) FOR EACH ROW BEGIN DELETE FROM \(tree) WHERE Z_PK = OLD.Z_PK ; END")
  }

  mutating func addTrigger(_ name: String, on tableName: String, _ body: String, derivedAttribute: PropertyKey? = nil) {
    let name = triggerNames.allocate(name)
    triggers.append(
      TriggerLayout(
        name: name, tableName: tableName, statement: "CREATE TRIGGER \(SQLText.identifier(name)) \(body)",
        derivedAttribute: derivedAttribute))
  }

  /// Returns the condition that a row belongs to an entity; nil if all do.
  ///
  /// Roots need none in fw 1344; fw 1044 wrote the range for roots with sub-entities too. Lower entities use fw 1044's
  /// form.
  func entityCondition(of entity: EntityLayout, row: String?) -> String? {
    guard !entity.isRoot else { return nil }
    let column = row.map { "\($0).Z_ENT" } ?? "Z_ENT"
    return "\(entity.number) <= \(column) AND \(column) <= \(entity.lastDescendantNumber)"
  }
}

/// A partial index's predicate as SQL.
///
/// It supports property-constant comparisons joined by `AND`; Core Data's wording is unknown, so all is unverified.
/// Otherwise the index covers all rows, which is always correct and only larger.
package enum PartialIndexPredicate {
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
