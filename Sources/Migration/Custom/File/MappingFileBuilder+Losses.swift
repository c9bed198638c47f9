internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

extension MappingFileBuilder {
  /// The properties that an expression reads.
  private func properties(
    _ text: String, of name: String, _ mapping: EntityMapping, _ property: PropertyPath?, _ paths: MappingPathResolver
  ) throws(MigrationError) -> Set<String> {
    var rewriter = MappingExpressionRewriter(paths, entity: name, place: "")
    do throws(MappingExpressionProblem) {
      return try rewriter.rewrite(text).properties
    } catch {
      let entity = file.entities.first { entity in
        entity.source == name
          && (property == nil ? entity.filter == text : entity.attributes.contains { $0.value == .sql(text) })
      }
      let end = property.map { "attributes.\(printable($0.description))" } ?? "filter"
      let at = "\(entity?.place ?? "$.entities").\(end)"
      var told = invalid(
        at, "character \(error.position): \(error.detail)", hint: error.hint ?? "Correct the expression.")
      if error.isMissingFunction { told.kind = .policyMissing }
      told.entityName = mapping.destinationEntityName
      told.propertyName = property?.description
      throw told
    }
  }

  /// What is lost of each entity of the source: what no mapping that reads it makes use of.
  func remainingLosses() throws(MigrationError) -> [MigrationLoss] {
    let layout: StoreLayout
    do {
      layout = try StoreLayout(source)
    } catch {
      throw MigrationError(database: error, path: file.path)
    }
    let paths = MappingPathResolver(layout: layout, schema: "")
    var used: [String: Set<String>] = [:]
    for mapping in mappings {
      guard let name = mapping.sourceEntityName else { continue }
      if case .sql(let text)? = mapping.sourceFilter {
        used[name, default: []].formUnion(try properties(text, of: name, mapping, nil, paths))
      }
      for property in mapping.propertyMappings {
        if let source = property.source { used[name, default: []].insert(source.name) }
        guard case .expression(.sql(let text)) = property.value else { continue }
        used[name, default: []].formUnion(try properties(text, of: name, mapping, property.destination, paths))
      }
    }
    var result: Set<MigrationLoss> = []
    for (name, lists) in losses {
      guard var common = lists.first else { continue }
      for list in lists.dropFirst() { common.formIntersection(list) }
      result.formUnion(common.filter { loss in loss.property.map { used[name]?.contains($0.name) != true } ?? true })
    }
    return result.sorted { first, second in
      if first.sourceEntityName != second.sourceEntityName {
        return precedesByCodeUnit(first.sourceEntityName, second.sourceEntityName)
      }
      return precedesByCodeUnit(first.property?.description ?? "", second.property?.description ?? "")
    }
  }
}
