internal import GRDB
import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// The records that a custom mapping leaves out, which are deleted with everything that only they hold.
///
/// An entity goes on where an entity mapping makes records of the same name or renaming identifier of it. What such a
/// mapping leaves out counts, whatever else is made of the record. Where none goes on, what no mapping takes counts, and what
/// a filter leaves out of the mappings that alone take some of the values.
struct CustomFilters {
  /// One entity mapping that reads an entity's records.
  struct Reader {
    let mapping: EntityMapping

    /// What holds of a record `o` that it does not take: `0` where it takes all.
    let leavesOut: String

    /// Whether it makes use of a property of the source; of an expression or a policy it is taken to where it can be.
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

  /// What holds of the records `o` of an entity that are left out, by what its readers say.
  ///
  /// - Returns: nil where nothing reads the entity, so that all of it is removed, or where none are left out.
  func condition(of entity: EntityLayout, _ readers: [Reader]) -> String? {
    let own = readers.filter { $0.mapping.sourceEntityName == entity.name }
    let onward = own.filter { goesOn($0.mapping) }
    var deciding = onward.isEmpty ? own : onward
    if onward.isEmpty, deciding.contains(where: { $0.leavesOut == "0" }) {
      // What takes all records may take only some of their values: a filter of what takes the others leaves them out.
      let known = (layout.sourceSide.properties[entity.name] ?? []).filter { property in
        !own.contains { $0.leavesOut == "0" && $0.uses(property) }
      }
      deciding = own.filter { reader in reader.leavesOut != "0" && known.contains(where: reader.uses) }
    }
    guard !deciding.isEmpty, !deciding.contains(where: { $0.leavesOut == "0" }) else { return nil }
    return deciding.map { "(\($0.leavesOut))" }.joined(separator: " AND ")
  }

  /// What holds of a record that a filter does not take.
  static func leavesOut(_ filter: String?) -> String { filter.map { "(\($0)) IS NOT TRUE" } ?? "0" }

  /// Counts the records of an entity that a condition holds for; nil where there are none.
  ///
  /// - Parameter schema: what stands before the names of the source's tables, `old.` or nothing.
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

  // MARK: Beforehand

  /// Says which records a step would leave out, by the rules of the run; policies are taken to make something of all
  /// that they are given.
  ///
  /// - Parameters:
  ///   - database: the source store of the step, for reading; nil where only running the steps before makes it, so that
  ///     the numbers are nil.
  ///   - referenceDate: what `NSCoreDataNow()` says, in seconds since 2001-01-01T00:00:00Z.
  /// - Throws: `mapping-invalid`, `expression-unsupported`, or `migration-data-violation` for a filter that fails for a
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
