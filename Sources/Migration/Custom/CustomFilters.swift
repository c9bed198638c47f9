internal import GRDB
import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// The records a custom mapping leaves out; they are deleted with everything only they hold.
///
/// An entity continues where a mapping makes records of the same name or renaming identifier; then only the filters of
/// such mappings count. Otherwise a record is left out if no mapping takes it, or if a filter drops it from the
/// mappings that alone use some of its values.
struct CustomFilters {
  struct Reader {
    let mapping: EntityMapping

    /// The condition on `o`; `0` if it takes all.
    let leavesOut: String

    /// Whether it uses a source property; assumed where an expression or a policy might.
    func uses(_ property: StoredProperty) -> Bool {
      if mapping.needsPolicy { return true }
      return mapping.propertyMappings.contains { mapped in
        if mapped.source == property.path { return true }
        guard case .expression(.sql(let text)) = mapped.value else { return false }
        return text.contains(property.path.name)
      }
    }
  }

  let layout: StepLayout

  /// The condition on left-out rows `o`; nil without readers or left-out rows.
  func condition(of entity: EntityLayout, _ readers: [Reader]) -> String? {
    let own = readers.filter { $0.mapping.sourceEntityName == entity.name }
    let onward = own.filter { goesOn($0.mapping) }
    var deciding = onward.isEmpty ? own : onward
    if onward.isEmpty, deciding.contains(where: { $0.leavesOut == "0" }) {
      // An unfiltered mapping may use only some values; a filter on the mapping of the others still loses those.
      let known = (layout.sourceSide.properties[entity.name] ?? []).filter { property in
        !own.contains { $0.leavesOut == "0" && $0.uses(property) }
      }
      deciding = own.filter { reader in reader.leavesOut != "0" && known.contains(where: reader.uses) }
    }
    guard !deciding.isEmpty, !deciding.contains(where: { $0.leavesOut == "0" }) else { return nil }
    return deciding.map { "(\($0.leavesOut))" }.joined(separator: " AND ")
  }

  static func leavesOut(_ filter: String?) -> String { filter.map { "(\($0)) IS NOT TRUE" } ?? "0" }

  /// Counts the records of an entity that meet a condition; nil for zero.
  ///
  /// - Parameter schema: The prefix of source tables, `old.` or empty.
  static func finding(
    _ entity: EntityLayout, where condition: String, schema: String, _ database: Database
  ) throws -> MigrationPlan.Finding? {
    let place =
      "FROM \(schema)\(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_ENT = \(entity.number) AND \(condition)"
    let rows = try Int.fetchOne(database, sql: "SELECT count(*) \(place)") ?? 0
    guard rows > 0 else { return nil }
    let keys = try Int64.fetchAll(database, sql: "SELECT o.Z_PK \(place) ORDER BY o.Z_PK LIMIT 10")
    return finding(entity.name, rows: rows, examples: keys)
  }

  private static func finding(_ entityName: String, rows: Int?, examples: [Int64]) -> MigrationPlan.Finding {
    MigrationPlan.Finding(
      kind: MigrationLoss.Kind.filteredRecords.rawValue, entity: entityName, property: nil, rows: rows,
      examples: examples, text: MigrationLoss(.filteredRecords, source: entityName).text)
  }

  private func goesOn(_ mapping: EntityMapping) -> Bool {
    guard let from = mapping.sourceEntityName, let to = mapping.destinationEntityName else { return false }
    if from == to { return true }
    guard let old = layout.mapping.source.entities[from], let new = layout.mapping.destination.entities[to] else {
      return false
    }
    return old.renamingIdentifier == new.renamingIdentifier
  }

  // MARK: Forecast

  /// Finds the records a step would leave out, assuming that policies use all.
  ///
  /// - Parameters:
  ///   - database: The step's source store; nil for nil counts, if only earlier steps would make it.
  ///   - referenceDate: In seconds since 2001-01-01T00:00:00Z.
  /// - Throws: `mapping-invalid`, `expression-unsupported`, or `migration-data-violation` if a filter fails for a
  ///   record.
  static func leftOut(
    _ database: Database?, _ layout: StepLayout, referenceDate: Double = 0
  ) throws -> [MigrationPlan.Finding] {
    guard layout.isCustom else { return [] }
    let filters = CustomFilters(layout: layout)
    let paths = MappingPathResolver(layout: layout.source, schema: "")
    var readers: [Reader] = []
    for mapping in layout.mapping.entityMappings {
      guard let name = mapping.sourceEntityName, layout.source.entity(named: name) != nil,
        mapping.destinationEntityName != nil || mapping.needsPolicy
      else { continue }
      let builder = CustomRouteBuilder(layout: layout, mapping: mapping, bind: paths.bind)
      readers.append(Reader(mapping: mapping, leavesOut: leavesOut(try builder.filter()?.sql)))
    }
    if let database { try StepConnection.addFunctions(to: database, referenceDate: referenceDate) }
    var result: [MigrationPlan.Finding] = []
    for entity in layout.source.entities {
      guard let condition = filters.condition(of: entity, readers) else { continue }
      guard let database else {
        result.append(finding(entity.name, rows: nil, examples: []))
        continue
      }
      do {
        if let found = try finding(entity, where: condition, schema: "", database) { result.append(found) }
      } catch let error as DatabaseError where CustomFailure.isOfExpression(error) {
        throw MigrationError(
          .dataViolation, operation: "plan the migration",
          detail: "a filter of the mapping fails for a record of \(printable(entity.name)) "
            + "(SQLite reported \(error.resultCode))",
          hint: "Correct the filters of the mapping, so that they work for all records.", entityName: entity.name)
      }
    }
    return result
  }
}
