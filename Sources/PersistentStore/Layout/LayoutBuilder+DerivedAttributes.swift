import ManagedObjectModel

extension LayoutBuilder {
  /// Builds the triggers of derived attributes (format section 3.9).
  ///
  /// `relationship.@count` through a column follows real stores (SampleModel2, fw 1344), `now()` on saving a published
  /// one. All others are unverified analogies; they call only known Core Data or SQLite functions, so they cannot break
  /// a store. Other functions (`canonical:`) get a note instead.
  mutating func buildDerivedAttributeTriggers() {
    for entity in entities {
      for property in sortedProperties(of: entity.name) where !property.traits.isTransient {
        guard let attribute = property.attribute, let expression = attribute.derivationExpression else { continue }
        let key = PropertyKey(entityName: entity.name, name: attribute.name)
        guard case .attribute(let columns) = storages[key], let column = columns.first, columns.count == 1 else {
          continue
        }
        let derived = DerivedColumn(key: key, entity: entity, column: column.name)
        let isBuilt =
          attribute.filteringPredicate == nil
          && DerivationExpression(expression).map { addTriggers(for: derived, expression: $0) } ?? false
        if !isBuilt { notes.append(note(.derivedAttributeWithoutTrigger, entity.name, attribute.name)) }
      }
    }
  }

  private struct DerivedColumn {
    let key: PropertyKey
    let entity: EntityLayout
    let column: String

    var table: String { SQLText.identifier(entity.tableName) }
    var sqlColumn: String { SQLText.identifier(column) }

    func prefix(watching tableName: String) -> String { "Z_DA_\(tableName)_\(key.entityName)_\(key.name)" }

    /// Returns the statement that reports changed records to Core Data.
    func report(inserted: Bool = false, where condition: String) -> String {
      let function =
        inserted
        ? "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue" : "NSCoreDataDATriggerUpdatedAffectedObjectValue"
      return "SELECT \(function)(\(SQLText.literal(entity.tableName)), Z_ENT, Z_PK, \(SQLText.literal(key.name)), "
        + "\(sqlColumn)) FROM \(table) WHERE \(condition);"
    }

    /// Returns statements that set and report the value.
    func update(to value: String, inserted: Bool = false, where condition: String) -> String {
      "UPDATE \(table) SET \(sqlColumn) = \(value) WHERE \(condition); " + report(inserted: inserted, where: condition)
    }
  }

  private mutating func addTriggers(for derived: DerivedColumn, expression: DerivationExpression) -> Bool {
    switch expression {
    case .now:
      let value = "NSCoreDataNow()"
      addSourceTriggers(for: derived, value: value, watched: ["Z_OPT"], suffixes: ("_INSERT", "_UPDATE"))
      return true
    case .keyPath(let path) where path.count == 1, .function("lowercase", let path) where path.count == 1,
      .function("uppercase", let path) where path.count == 1:
      guard let column = column(path[0], of: derived.entity.name) else { return false }
      let source = function(of: expression, applied: "NEW.\(SQLText.identifier(column))")
      addSourceTriggers(for: derived, value: source, watched: [column], suffixes: ("_SOURCE_INSERT", "_SOURCE_UPDATE"))
      return true
    case .keyPath(let path) where path.count == 2, .function("lowercase", let path) where path.count == 2,
      .function("uppercase", let path) where path.count == 2:
      return addToOneTriggers(for: derived, expression: expression, path: path)
    case .function("count", let path) where path.count == 1:
      return addCountTriggers(for: derived, relationship: path[0])
    case .function("sum", let path) where path.count == 2: return addSumTriggers(for: derived, path: path)
    case .keyPath, .function: return false
    }
  }

  private func function(of expression: DerivationExpression, applied argument: String) -> String {
    switch expression {
    case .function("lowercase", _): "LOWER(\(argument))"
    case .function("uppercase", _): "UPPER(\(argument))"
    case .now, .keyPath, .function: argument
    }
  }

  private mutating func addSourceTriggers(
    for derived: DerivedColumn, value: String, watched: [String], suffixes: (insert: String, update: String)
  ) {
    let prefix = derived.prefix(watching: derived.entity.tableName)
    let when = entityCondition(of: derived.entity, row: "NEW").map { " WHEN \($0)" } ?? ""
    addTrigger(
      prefix + suffixes.insert, on: derived.entity.tableName,
      "AFTER INSERT ON \(derived.table) FOR EACH ROW\(when) BEGIN "
        + "\(derived.update(to: value, inserted: true, where: "Z_PK = NEW.Z_PK")) END", derivedAttribute: derived.key)
    guard !watched.isEmpty else { return }
    addTrigger(
      prefix + suffixes.update, on: derived.entity.tableName,
      "AFTER UPDATE OF \(watched.map(SQLText.identifier).joined(separator: ", ")) ON \(derived.table) "
        + "FOR EACH ROW\(when) BEGIN \(derived.update(to: value, where: "Z_PK = NEW.Z_PK")) END",
      derivedAttribute: derived.key)
  }

  private mutating func addToOneTriggers(
    for derived: DerivedColumn, expression: DerivationExpression, path: [String]
  ) -> Bool {
    guard let found = property(path[0], of: derived.entity.name), let relationship = found.property.relationship,
      case .toOne(let reference, _, _) = storages[found.key],
      let destination = place(of: relationship.destinationEntityName),
      let column = column(path[1], of: destination.name)
    else { return false }
    let table = SQLText.identifier(destination.tableName)
    let sqlReference = SQLText.identifier(reference)
    let sqlTarget = SQLText.identifier(column)
    addSourceTriggers(
      for: derived,
      value: "(SELECT \(function(of: expression, applied: sqlTarget)) FROM \(table) WHERE Z_PK = NEW.\(sqlReference))",
      watched: [reference], suffixes: ("_SOURCE_INSERT", "_SOURCE_UPDATE"))
    let prefix = derived.prefix(watching: destination.tableName)
    let own = entityCondition(of: derived.entity, row: nil).map { " AND \($0)" } ?? ""
    let update = derived.update(
      to: function(of: expression, applied: "NEW.\(sqlTarget)"), where: "\(sqlReference) = NEW.Z_PK\(own)")
    addTrigger(
      prefix + "_PARAMETER_INSERT", on: destination.tableName,
      "AFTER INSERT ON \(table) FOR EACH ROW BEGIN \(update) END", derivedAttribute: derived.key)
    addTrigger(
      prefix + "_PARAMETER_UPDATE", on: destination.tableName,
      "AFTER UPDATE OF \(sqlTarget) ON \(table) FOR EACH ROW BEGIN \(update) END", derivedAttribute: derived.key)
    return true
  }

  private mutating func addCountTriggers(for derived: DerivedColumn, relationship name: String) -> Bool {
    guard let found = property(name, of: derived.entity.name), let storage = storages[found.key] else { return false }
    let watched: String
    let reference: String
    switch storage {
    case .toManyByColumn(let table, let column, _): (watched, reference) = (table, SQLText.identifier(column))
    case .toManyByJoinTable(let table, let column, _, _): (watched, reference) = (table, SQLText.identifier(column))
    case .attribute, .toOne: return false
    }
    let table = SQLText.identifier(watched)
    let own = entityCondition(of: derived.entity, row: nil).map { " AND \($0)" } ?? ""
    let prefix = derived.prefix(watching: watched) + "_PARAMETER_"
    let column = derived.sqlColumn
    func add(_ suffix: String, _ event: String, row: String, value: String) {
      addTrigger(
        prefix + suffix, on: watched,
        "AFTER \(event) ON \(table) FOR EACH ROW WHEN (\(row).\(reference) NOT NULL) BEGIN "
          + "\(derived.update(to: value, where: "Z_PK = \(row).\(reference)\(own)")) END",
        derivedAttribute: derived.key)
    }
    add("INSERT", "INSERT", row: "NEW", value: "IFNULL(\(column), 0) + 1")
    add("UPDATE_INCREMENT", "UPDATE OF \(reference)", row: "NEW", value: "\(column) + 1")
    add("UPDATE_DECREMENT", "UPDATE OF \(reference)", row: "OLD", value: "\(column) - 1")
    add("DELETE", "DELETE", row: "OLD", value: "\(column) - 1")
    addSourceTriggers(
      for: derived, value: "(SELECT IFNULL(COUNT(\(reference)), 0) FROM \(table) WHERE \(reference) = NEW.Z_PK)",
      watched: [], suffixes: ("_SOURCE_INSERT", ""))
    return true
  }

  private mutating func addSumTriggers(for derived: DerivedColumn, path: [String]) -> Bool {
    guard let found = property(path[0], of: derived.entity.name), let relationship = found.property.relationship,
      case .toManyByColumn(let watched, let reference, _) = storages[found.key],
      let summand = column(path[1], of: relationship.destinationEntityName)
    else { return false }
    let table = SQLText.identifier(watched)
    let sqlReference = SQLText.identifier(reference)
    let sqlSummand = SQLText.identifier(summand)
    let own = entityCondition(of: derived.entity, row: nil).map { " AND \($0)" } ?? ""
    func sum(_ owner: String) -> String {
      "(SELECT IFNULL(SUM(\(sqlSummand)), 0) FROM \(table) WHERE \(sqlReference) = \(owner))"
    }
    func update(_ row: String) -> String {
      derived.update(to: sum("\(row).\(sqlReference)"), where: "Z_PK = \(row).\(sqlReference)\(own)")
    }
    let prefix = derived.prefix(watching: watched) + "_PARAMETER_"
    let events = [
      ("INSERT", "AFTER INSERT", update("NEW")),
      ("UPDATE", "AFTER UPDATE OF \(sqlReference), \(sqlSummand)", "\(update("OLD")) \(update("NEW"))"),
      ("DELETE", "AFTER DELETE", update("OLD")),
    ]
    for (suffix, event, body) in events {
      addTrigger(
        prefix + suffix, on: watched, "\(event) ON \(table) FOR EACH ROW BEGIN \(body) END",
        derivedAttribute: derived.key)
    }
    addSourceTriggers(for: derived, value: sum("NEW.Z_PK"), watched: [], suffixes: ("_SOURCE_INSERT", ""))
    return true
  }
}

package enum DerivationExpression: Hashable {
  /// `now()`: the time of the save.
  case now

  /// `name`, or `author.name` through a to-one relationship.
  case keyPath([String])

  /// `count:(pages)`, `sum:(pages.number)`, `lowercase:(name)`.
  case function(String, [String])

  /// Parses a source (`pages.@count`) or compiled form (`count:(pages)`).
  package init?(_ text: String) {
    guard text.utf8.count <= 4096 else { return nil }
    let text = text.filter { $0 != " " }
    if text == "now()" {
      self = .now
      return
    }
    if let opening = text.firstIndex(of: "("), text.hasSuffix(")") {
      let name = text[..<opening]
      let argument = text[text.index(after: opening)...].dropLast()
      guard name.hasSuffix(":"), let path = Self.keyPath(argument) else { return nil }
      self = .function(String(name.dropLast()), path)
      return
    }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    if let position = parts.firstIndex(where: { $0.hasPrefix("@") }) {
      let rest = Array(parts[..<position] + parts[(position + 1)...])
      guard !rest.isEmpty, rest.allSatisfy(Self.isName) else { return nil }
      self = .function(String(parts[position].dropFirst()), rest)
    } else if let path = Self.keyPath(text[...]) {
      self = .keyPath(path)
    } else {
      return nil
    }
  }

  private static func keyPath(_ text: Substring) -> [String]? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    return parts.allSatisfy(isName) ? parts : nil
  }

  private static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
  }
}
