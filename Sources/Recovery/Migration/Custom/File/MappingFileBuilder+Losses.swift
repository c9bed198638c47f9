internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

extension MappingFileBuilder {
  /// The properties that an expression reads; SQLite compiles it, so that what is wrong with it is told with its place.
  private func properties(
    _ text: String, of name: String, _ mapping: EntityMapping, _ property: PropertyPath?,
    _ compilation: ExpressionCompilation
  ) throws(MigrationError) -> Set<String> {
    do throws(ExpressionProblem) {
      return try compilation.bind(text, of: name, place: "").properties
    } catch {
      let entity = file.entities.first { entity in
        entity.source == name
          && (property == nil ? entity.filter == text : entity.attributes.contains { $0.value == .sql(text) })
      }
      let end = property.map { "attributes.\(printable($0.description))" } ?? "filter"
      let at = "\(entity?.place ?? "$.entities").\(end)"
      var told = invalid(at, error.words, hint: error.hint ?? "Correct the expression.")
      if error.isUnsupported { told.kind = .expressionUnsupported }
      told.entityName = mapping.destinationEntityName
      told.propertyName = property?.description
      throw told
    }
  }

  /// What the mappings read, by entity of the source: the names of properties, and the paths that begin with them.
  private func usedProperties() throws(MigrationError) -> [String: Set<String>] {
    let compilation: ExpressionCompilation
    do { compilation = try ExpressionCompilation(StoreLayout(source)) } catch {
      throw MigrationError(database: error, path: file.path)
    }
    var used: [String: Set<String>] = [:]
    for mapping in mappings {
      guard let name = mapping.sourceEntityName else { continue }
      if case .sql(let text)? = mapping.sourceFilter {
        used[name, default: []].formUnion(try properties(text, of: name, mapping, nil, compilation))
      }
      for property in mapping.propertyMappings {
        if let source = property.source { used[name, default: []].insert(source.description) }
        guard case .expression(.sql(let text)) = property.value else { continue }
        used[name, default: []].formUnion(try properties(text, of: name, mapping, property.destination, compilation))
      }
    }
    return used
  }

  /// What is lost of each entity of the source: what no mapping that reads it makes use of.
  func remainingLosses() throws(MigrationError) -> [MigrationLoss] {
    let used = try usedProperties()
    let side = InferenceSide(source)
    // What a policy reads cannot be known.
    let custom = Set(mappings.filter { $0.kind == .custom }.compactMap(\.sourceEntityName))
      .subtracting(mappings.filter(\.needsPolicy).compactMap(\.sourceEntityName))
    var result: Set<MigrationLoss> = []
    for (name, lists) in losses {
      guard var common = lists.first else { continue }
      for list in lists.dropFirst() { common.formIntersection(list) }
      result.formUnion(
        common.filter { loss in
          guard let path = loss.property else { return true }
          guard let property = side.properties[name]?.first(where: { $0.path == path }) else {
            return used[name]?.contains(path.description) != true
          }
          // An order is kept by nothing but the relationship itself.
          return loss.kind == .relationshipOrder
            ? used[name]?.contains(path.description) != true : !isUsed(property, of: name, used, side)
        })
    }
    for name in custom {
      for property in side.properties[name] ?? [] {
        guard !isUsed(property, of: name, used, side),
          !result.contains(where: { $0.sourceEntityName == name && $0.property == property.path })
        else { continue }
        result.insert(
          MigrationLoss(
            property.relationship == nil ? .removedAttribute : .removedRelationship, source: name,
            declaredBy: property.declaringEntityName, property: property.path))
      }
    }
    return result.ordered { first, second in
      if first.sourceEntityName != second.sourceEntityName {
        return precedesByCodeUnit(first.sourceEntityName, second.sourceEntityName)
      }
      return precedesByCodeUnit(first.property?.description ?? "", second.property?.description ?? "")
    }
  }

  /// Whether the values of a property of an entity, or the pairs of a relationship, are made use of.
  private func isUsed(
    _ property: StoredProperty, of name: String, _ used: [String: Set<String>], _ side: InferenceSide
  ) -> Bool {
    if used[name]?.contains(property.path.description) == true { return true }
    switch property.content {
    // What a derived attribute held can be computed again.
    case .attribute(let attribute): return attribute.isDerived
    case .relationship(let relationship):
      // Pairs arrive from the other side as well.
      guard let inverse = side.inverse(of: relationship) else { return false }
      return used.contains { entity, names in
        names.contains(inverse.key.name) && side.isKind(entity, of: inverse.key.entityName)
      }
    }
  }
}
