internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Checks a custom mapping against its models before any store is opened.
struct CustomStepCheck {
  let layout: StepLayout

  func run() throws {
    var names: Set<String> = []
    for mapping in layout.mapping.entityMappings {
      guard names.insert(mapping.name).inserted else {
        throw Self.invalid(mapping, nil, "another entity mapping has the same name")
      }
      try check(mapping)
    }
  }

  private func check(_ mapping: EntityMapping) throws {
    if let name = mapping.sourceEntityName, layout.source.entity(named: name) == nil {
      throw Self.invalid(
        mapping, nil, "the source has no entity \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: layout.source.entities.map(\.name), "entities of the source"))
    }
    guard let name = mapping.destinationEntityName else { return }
    guard let destination = layout.destination.entity(named: name) else {
      throw Self.invalid(
        mapping, nil, "the destination has no entity \"\(printable(name))\"",
        hint: NameSuggestion.hint(
          for: name, among: layout.destination.entities.map(\.name), "entities of the destination"))
    }
    let known = layout.destinationSide.properties[destination.name] ?? []
    var seen: Set<PropertyPath> = []
    for property in mapping.propertyMappings {
      guard seen.insert(property.destination).inserted else {
        throw Self.invalid(mapping, property.destination.description, "it is mapped twice")
      }
      guard let new = known.first(where: { $0.path == property.destination }) else {
        throw Self.invalid(
          mapping, property.destination.description, "the destination's entity has no such stored property",
          hint: NameSuggestion.hint(
            for: property.destination.description, among: known.map(\.path.description),
            "properties of \(printable(name))"))
      }
      try check(property, new, mapping)
    }
  }

  private func check(_ property: PropertyMapping, _ new: StoredProperty, _ mapping: EntityMapping) throws {
    let name = property.destination.description
    let sourceName = mapping.sourceEntityName ?? ""
    func old(_ path: PropertyPath) throws -> StoredProperty {
      let all = layout.sourceSide.properties[sourceName] ?? []
      if let found = all.first(where: { $0.path == path }) { return found }
      throw Self.invalid(
        mapping, name, "\(printable(sourceName)) has no stored property \"\(printable(path.description))\"",
        hint: NameSuggestion.hint(
          for: path.description, among: all.map(\.path.description), "properties of \(printable(sourceName))"))
    }
    switch property.value {
    case .copy(let path), .convert(let path, _, _), .externalize(let path):
      let old = try old(path)
      guard old.attribute != nil, new.attribute != nil else { throw Self.invalid(mapping, name, Self.otherKind) }
      if case .copy = property.value { try checkCopy(old, new, mapping, name) }
    case .relationship(let relationship):
      guard try old(PropertyPath(relationship)).relationship != nil, new.relationship != nil else {
        throw Self.invalid(mapping, name, Self.otherKind)
      }
      try checkKinship(try old(PropertyPath(relationship)), new, mapping, name)
    case .destinations(let other, let reference):
      guard new.relationship != nil else {
        throw Self.invalid(mapping, name, "only a relationship can lead to what another entity mapping makes")
      }
      try checkDestinations(other, reference, new, mapping, name)
      if case .relationship(let relationship) = reference, try old(PropertyPath(relationship)).relationship == nil {
        throw Self.invalid(mapping, name, "\(printable(relationship)) of the source is no relationship")
      }
    case .expression:
      guard new.attribute != nil else {
        throw Self.invalid(
          mapping, name, "a relationship cannot be made by an SQL expression",
          hint: "Name the entity mapping whose records it leads to, or the source's relationship.")
      }
      guard new.attribute?.isDerived == false else {
        throw Self.invalid(mapping, name, "it is derived, so that no expression can make it")
      }
    case .defaultValue, .null, .recompute, .inverse: break
    }
  }

  private static let otherKind = "an attribute and a relationship cannot be copied into each other"

  private func checkCopy(
    _ old: StoredProperty, _ new: StoredProperty, _ mapping: EntityMapping, _ name: String
  ) throws {
    guard let before = old.attribute?.type, let after = new.attribute?.type else { return }
    let areBytes = [before, after].allSatisfy { $0 == .binary || $0 == .transformable }
    guard before == after || areBytes || (before.isNumeric && after.isNumeric) else {
      throw Self.invalid(
        mapping, name, "a value of type \(before.sourceName) cannot be copied into one of type \(after.sourceName)",
        hint: "Write an SQL expression that converts it.")
    }
    guard old.isMarked == new.isMarked else {
      throw Self.invalid(
        mapping, name, "external storage is on for only one of the two attributes",
        hint: old.isMarked ? "Leave external storage on, or register a policy." : "Map it with the value externalize.")
    }
  }

  /// Rejects a relationship if its targets become no entity that the new one leads to.
  private func checkKinship(
    _ old: StoredProperty, _ new: StoredProperty, _ mapping: EntityMapping, _ name: String
  ) throws {
    guard let before = old.relationship?.destinationEntityName, let after = new.relationship?.destinationEntityName
    else { return }
    let family = layout.sourceSide.family(of: before)
    let made = layout.mapping.entityMappings.filter { family.contains($0.sourceEntityName ?? "") }
      .compactMap(\.destinationEntityName)
    guard !made.isEmpty, !made.contains(where: { layout.destinationSide.isKind($0, of: after) }) else { return }
    throw Self.invalid(
      mapping, name,
      "it leads to \(printable(after)), and what \(printable(old.path.description)) leads to becomes "
        + Set(made).sorted().map(printable).joined(separator: ", "))
  }

  private func checkDestinations(
    _ other: String, _ reference: PropertyMapping.SourceReference, _ new: StoredProperty, _ mapping: EntityMapping,
    _ name: String
  ) throws {
    guard let target = layout.mapping.entityMapping(named: other) else {
      throw Self.invalid(
        mapping, name, "there is no entity mapping \"\(printable(other))\"",
        hint: NameSuggestion.hint(for: other, among: layout.mapping.entityMappings.map(\.name), "entity mappings"))
    }
    if case .record = reference, target.sourceEntityName != mapping.sourceEntityName {
      throw Self.invalid(
        mapping, name,
        "entity mapping \"\(printable(other))\" reads another entity, so that it makes nothing of this record",
        hint: "Name an entity mapping that reads \(printable(mapping.sourceEntityName ?? "the same entity")).")
    }
    if let made = target.destinationEntityName, let wanted = new.relationship?.destinationEntityName,
      !layout.destinationSide.isKind(made, of: wanted)
    {
      throw Self.invalid(
        mapping, name,
        "it leads to \(printable(wanted)), and entity mapping \"\(printable(other))\" makes \(printable(made))")
    }
  }

  /// `entity mapping "PersonToAddress" (Person → Address), property street`.
  static func place(_ mapping: EntityMapping, _ property: String?) -> String {
    let way =
      "\(printable(mapping.sourceEntityName ?? "nothing")) → \(printable(mapping.destinationEntityName ?? "nothing"))"
    return "entity mapping \"\(printable(mapping.name))\" (\(way))"
      + (property.map { ", property \(printable($0))" } ?? "")
  }

  static func invalid(
    _ mapping: EntityMapping, _ property: String?, _ detail: String, hint: String? = nil, isUnsupported: Bool = false
  ) -> MigrationError {
    MigrationError(
      isUnsupported ? .expressionUnsupported : .mappingInvalid, operation: "prepare the mapping",
      detail: "\(place(mapping, property)): \(detail)", hint: hint ?? "Correct the mapping.",
      entityName: mapping.destinationEntityName ?? mapping.sourceEntityName, propertyName: property)
  }
}

// MARK: Checks of the records

/// Checks a custom step's records: values fit their types, mandatory ones exist.
///
/// Indexes check uniqueness; the verification of every step checks dangling references.
struct CustomRunCheck {
  let work: CustomRun

  private var layout: StepLayout { work.layout }

  /// A condition on the records `o` that none may meet, and the error for those that do.
  private struct Rule {
    let isBroken: String

    /// Makes the error from the number of records, and their table with the condition on them.
    let error: (Int, String) throws -> MigrationError
  }

  private func check(_ route: CustomRoute, _ entity: EntityLayout) throws {
    var rules: [Rule] = []
    for property in layout.destinationSide.properties[entity.name] ?? [] {
      let mapping = route.mapping.propertyMapping(of: property.path)
      if let attribute = property.attribute, let column = layout.destination.column(of: property.path, in: entity.name)
      {
        if attribute.isDerived { continue }
        let isMade = if case .expression = mapping?.value { true } else { route.makePolicy != nil }
        if isMade, let rule = type(column, attribute.type, property, entity, route) { rules.append(rule) }
        if !property.isOptional, isStricter(property, mapping, route) {
          rules.append(
            rule("o.\(column.sqlName) IS NULL", ("has no value in", "have no value in"), property, entity, .missing))
        }
      } else if let relationship = property.relationship, isStricter(property, mapping, route) {
        rules += count(relationship, property, entity)
      }
    }
    // As many columns as SQLite allows in a result are not needed at once.
    for start in stride(from: 0, to: rules.count, by: 100) {
      try check(rules[start..<min(start + 100, rules.count)], entity)
    }
  }

  /// Reads the records once for all rules; the first broken one is reported.
  private func check(_ rules: ArraySlice<Rule>, _ entity: EntityLayout) throws {
    let place = "main.\(entity.tableName.sqlName) AS o WHERE o.Z_ENT = \(entity.number)"
    let counts = rules.map { "count(*) FILTER (WHERE \($0.isBroken))" }.joined(separator: ", ")
    guard let row = try Row.fetchOne(work.database, sql: "SELECT \(counts) FROM \(place)") else { return }
    for (index, rule) in rules.enumerated() {
      let rows: Int = row[index]
      if rows > 0 { throw try rule.error(rows, "\(place) AND (\(rule.isBroken))") }
    }
  }

  func run() throws {
    var done: Set<[String]> = []
    for route in work.step.routes {
      let made = route.makePolicy == nil ? [] : work.policies?.entityNames(madeBy: route) ?? []
      for case let entity? in [route.destination] + made.map({ layout.destination.entity(named: $0) })
      where done.insert([route.mapping.name, entity.name]).inserted { try check(route, entity) }
    }
  }

  /// Whether a value may newly be missing; copied ones are unchanged.
  private func isStricter(_ property: StoredProperty, _ mapping: PropertyMapping?, _ route: CustomRoute) -> Bool {
    guard property.relationship == nil, route.makePolicy == nil, case .copy(let old)? = mapping?.value else {
      return true
    }
    return layout.sourceSide.property(old, of: route.source?.name ?? "")?.isOptional ?? true
  }

  // MARK: Types

  private func type(
    _ column: ColumnLayout, _ type: AttributeType, _ property: StoredProperty, _ entity: EntityLayout,
    _ route: CustomRoute
  ) -> Rule? {
    let name = "o.\(column.sqlName)"
    let isFit: String
    switch type {
    case .integer16: isFit = "typeof(\(name)) = 'integer' AND \(name) BETWEEN -32768 AND 32767"
    case .integer32: isFit = "typeof(\(name)) = 'integer' AND \(name) BETWEEN -2147483648 AND 2147483647"
    case .integer64: isFit = "typeof(\(name)) = 'integer'"
    case .boolean: isFit = "typeof(\(name)) = 'integer' AND \(name) IN (0, 1)"
    case .decimal, .double, .float, .date: isFit = "typeof(\(name)) IN ('integer', 'real')"
    case .string, .uri:
      isFit = "typeof(\(name)) = 'text' AND \(MappingFunctions.textCheckFunction)(CAST(\(name) AS BLOB))"
    case .uuid: isFit = "typeof(\(name)) = 'blob' AND length(\(name)) = 16"
    case .binary, .transformable:
      isFit = "typeof(\(name)) = 'blob'" + (property.isMarked ? " AND substr(\(name), 1, 1) IN (x'01', x'02')" : "")
    case .undefined, .objectID, .composite: return nil
    }
    return Rule(isBroken: "\(name) IS NOT NULL AND NOT (\(isFit))") { rows, place in
      let found = try String.fetchAll(work.database, sql: "SELECT DISTINCT typeof(\(name)) FROM \(place) ORDER BY 1")
      let keys = try work.database.examples(from: place)
      let words =
        (type == .string || type == .uri) && found == ["text"]
        ? "bytes that are no text in UTF-8" : "SQLite's \(found.joined(separator: ", "))"
      return MigrationError(
        .dataViolation,
        detail: "\(CustomStepCheck.place(route.mapping, property.path.description)): the values of \(rows) "
          + "record\(rows == 1 ? "" : "s") do not fit the type \(type.sourceName) "
          + "(\(words)); primary keys: \(keys.sqlList)",
        hint: Self.hint(type), entityName: entity.name, propertyName: property.path.description)
    }
  }

  private static func hint(_ type: AttributeType) -> String {
    switch type {
    case .integer16, .integer32, .integer64: "Write CAST(… AS INTEGER), and nil or a limit for what is too large."
    case .boolean: "Let the expression give 0 or 1."
    case .decimal, .double, .float: "Write CAST(… AS REAL)."
    case .date: "Give seconds since 2001-01-01T00:00:00Z, for instance unixepoch(text) - 978307200."
    case .string, .uri: "Write uuid_text(…) for a UUID, or hex(…) for other bytes."
    case .uuid: "Give the 16 bytes: uuid() for a new one, uuid_blob(text) for one in text."
    case .binary, .transformable: "Write CAST(… AS BLOB)."
    case .undefined, .objectID, .composite: "Correct the mapping."
    }
  }

  // MARK: Mandatory values

  private func count(_ relationship: Relationship, _ property: StoredProperty, _ entity: EntityLayout) -> [Rule] {
    if case .toOne(let column, _, _) = layout.destination.storage(of: property.path.name, in: entity.name) {
      guard !property.isOptional else { return [] }
      return [rule("o.\(column.sqlName) IS NULL", Self.leadNowhere, property, entity, .missing)]
    }
    guard let count = layout.destination.destinationCount(of: property.path.name, in: entity.name) else { return [] }
    func words(_ limit: String) -> (one: String, many: String) {
      ("leads to \(limit) records through", "lead to \(limit) records through")
    }
    let (least, most) = (relationship.minimumCount, relationship.maximumCount)
    var rules: [Rule] = []
    if relationship.needsDestination {
      rules.append(rule("\(count) = 0", Self.leadNowhere, property, entity, .missing))
    }
    if least > 1 {
      rules.append(
        rule("\(count) BETWEEN 1 AND \(least - 1)", words("fewer than \(least)"), property, entity, .number))
    }
    if most > 1 { rules.append(rule("\(count) > \(most)", words("more than \(most)"), property, entity, .number)) }
    return rules
  }

  private enum Reason {
    case missing, number
  }

  private static let leadNowhere = (one: "refers to no record by", many: "refer to no record by")

  private func rule(
    _ isBroken: String, _ words: (one: String, many: String), _ property: StoredProperty, _ entity: EntityLayout,
    _ reason: Reason
  ) -> Rule {
    Rule(isBroken: isBroken) { rows, place in
      let keys = try work.database.examples(from: place)
      return MigrationError(
        .dataViolation,
        detail:
          "\(rows) record\(rows == 1 ? "" : "s") of \(printable(entity.name)) \(rows == 1 ? words.one : words.many) "
          + "\(printable(entity.name)).\(printable(property.path.description)), which is mandatory; "
          + "primary keys: \(keys.sqlList)",
        hint:
          "Let the mapping give a value to every record, or leave the records out by its filter; the store is as it was.",
        entityName: entity.name, propertyName: property.path.description,
        reason: reason == .missing
          ? "Validation error missing attribute values on mandatory destination attribute" : nil)
    }
  }
}
