internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// An entity of the store that goes, although the version in the end still has something of its name or identifier.
struct ContestedEntity {
  /// The step that removes it, such as `V1 → V2`.
  let step: String

  /// The entity as the store calls it.
  let name: String

  /// What the version in the end has of it.
  let namesake: String

  /// Those of a way; an entity that is simply absent from the last version is none.
  static func all(on path: MigrationPath) -> [ContestedEntity] {
    guard let last = path.steps.last?.mapping.destination, let first = path.steps.first?.mapping.source else {
      return []
    }
    var result: [ContestedEntity] = []
    for (number, step) in path.steps.enumerated() {
      // A custom mapping says itself what is removed.
      guard case .inferred = step.mapping.origin else { continue }
      let trace = PropertyTrace(earlier: path.steps[..<number].map(\.mapping))
      for loss in step.mapping.losses where loss.kind == .removedEntity {
        guard case .entity(let name) = trace.records(of: loss.sourceEntityName), let entity = first.entities[name]
        else {
          continue
        }
        let names = [name, loss.sourceEntityName, entity.renamingIdentifier]
        let namesake = last.entities.values.map(\.name).inCodeUnitOrder().first { other in
          names.contains(other) || last.entities[other].map { names.contains($0.renamingIdentifier) } == true
        }
        if let namesake { result.append(ContestedEntity(step: step.name, name: name, namesake: namesake)) }
      }
    }
    return result
  }

  /// What stands against deleting its records; nil where it has none.
  func refusal(_ database: Database, _ layout: StoreLayout) throws -> MigrationRefusal? {
    guard let entity = layout.entity(named: name) else { return nil }
    let rows =
      try Int.fetchOne(
        database,
        sql: "SELECT count(*) FROM \(SQLText.identifier(entity.tableName)) WHERE Z_ENT = \(entity.number)") ?? 0
    guard rows > 0 else { return nil }
    var refusal = MigrationRefusal(
      .losesEntity, entity: name, reason: "The entity is removed although the destination has one of its name",
      detail: """
        \(rows) record\(rows == 1 ? "" : "s") of entity "\(printable(name))" would be deleted, although the version has an \
        entity "\(printable(namesake))" that has its name or names it
        """,
      wayRound: """
        Give a mapping for the step that says what becomes of them. If they are meant to go, accept the loss \
        (--on-migration-loss migrate).
        """)
    refusal.step = step
    return refusal
  }
}

extension MigrationPath {
  /// What stands against deleting records of contested entities of this way.
  func refusals(for contested: [ContestedEntity], _ database: Database) throws -> [MigrationRefusal] {
    guard !contested.isEmpty, let model = steps.first?.mapping.source else { return [] }
    let layout = try StoreLayout(model)
    return try contested.compactMap { try $0.refusal(database, layout) }
  }
}
