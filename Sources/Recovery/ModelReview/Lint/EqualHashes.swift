internal import ManagedObjectModel
internal import Migration
internal import StoreFiles

/// What two versions with equal hashes say differently, although nothing runs between them.
enum EqualHashes {
  /// The entities and properties that a version takes from others by its renaming identifiers.
  ///
  /// Version hashes say nothing of renaming identifiers (format section 4.2), so that a store of the one version counts as one
  /// of the other: it is opened as it is.
  static func findings(from before: ModelVersion, to after: ModelVersion) -> [LintFinding] {
    let mapping = MappingInference(disregardingHashesFrom: before, to: after).mapping
    let place = "\(before.name) → \(after.name)"
    var findings: [LintFinding] = []
    for entity in mapping.entityMappings {
      guard let source = entity.sourceEntityName, let destination = entity.destinationEntityName else { continue }
      if source != destination {
        findings.append(
          finding(
            place, entity: destination, property: nil, old: source, new: destination))
      }
      for property in entity.propertyMappings {
        guard let origin = property.source, origin != property.destination,
          isDeclared(property.destination.name, by: destination, after.model)
        else { continue }
        findings.append(
          finding(
            place, entity: destination, property: property.destination.description,
            old: "\(source).\(origin)", new: "\(destination).\(property.destination)"))
      }
    }
    return findings + dropped(from: before.model, to: after.model, place)
  }

  /// The renaming identifiers that a version has no more: stores from before the rename lose what was renamed where nothing leads
  /// through the version that had them.
  private static func dropped(
    from before: ManagedObjectModel, to after: ManagedObjectModel, _ place: String
  ) -> [LintFinding] {
    var findings: [LintFinding] = []
    func note(_ name: String, _ former: String?, _ latter: String?, entity: String, property: String? = nil) {
      guard let former, former != name, latter == nil else { return }
      findings.append(
        LintFinding(
          .droppedIdentifier, in: place, entity: entity, property: property,
          detail: "\(printable(property.map { "\(entity).\($0)" } ?? entity)) says no more that it was "
            + "\(printable(former)): only a way through the version before keeps what older stores have under that name",
          hint: "Keep the renaming identifier as long as there may be stores from before the rename."))
    }
    for (name, entity) in before.entities.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) {
      guard let same = after.entities[name] else { continue }
      note(name, entity.explicitRenamingIdentifier, same.explicitRenamingIdentifier, entity: name)
      for (key, property) in entity.properties.ordered(by: { precedesByCodeUnit($0.key, $1.key) }) {
        guard let other = same.properties[key] else { continue }
        note(
          key, property.traits.explicitRenamingIdentifier, other.traits.explicitRenamingIdentifier, entity: name,
          property: key)
      }
    }
    return findings
  }

  private static func isDeclared(_ property: String, by entity: String, _ model: ManagedObjectModel) -> Bool {
    model.entities[entity]?.properties[property] != nil
  }

  private static func finding(
    _ place: String, entity: String, property: String?, old: String, new: String
  ) -> LintFinding {
    LintFinding(
      .renameWithoutMigration, in: place, entity: entity, property: property,
      detail: """
        \(printable(new)) is what \(printable(old)) was, by its renaming identifier; but the version hashes of both versions \
        are equal, so that no migration runs, and \(printable(new)) has what \(printable(new)) had before
        """,
      hint: """
        Give the entity a version hash modifier in the newer version, so that the versions differ and a migration runs; or \
        leave the names as they were.
        """)
  }
}
