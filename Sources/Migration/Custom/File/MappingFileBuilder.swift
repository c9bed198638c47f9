internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Builds a mapping model from a file and from inference.
struct MappingFileBuilder {
  let file: MappingFile
  let source: ManagedObjectModel
  let destination: ManagedObjectModel

  var mappings: [EntityMapping] = []
  var conditions: [MigrationCondition] = []
  var losses: [String: [Set<MigrationLoss>]] = [:]
  var refusals: [MigrationRefusal] = []

  mutating func model() throws -> MappingModel {
    try checkNames()
    let inference = MappingInference(from: source, to: destination)
    let base = InferenceBuilder(from: source, to: destination)
    let pairs = file.entities.map { (destination: $0.destination, source: $0.source) }
    if file.rest == .infer { takeInferred(inference) }
    for entity in file.entities { try add(entity, base, pairs) }
    try nameDestinations()
    removeWhatIsLeft(inference)
    for index in mappings.indices where mappings[index].kind != .remove && mappings[index].kind != .add {
      try inheritGivenValues(index)
    }
    let remaining = try remainingLosses()
    try refuseWhatIsLeft(inference)
    let model = MappingModel(
      name: file.name, origin: file.path.map { .mappingFile($0) } ?? .code, source: source, destination: destination,
      entityMappings: mappings, conditions: conditions, losses: remaining)
    do { try CustomStepCheck(layout: StepLayout(model)).run() } catch { throw placed(MigrationError(any: error)) }
    return model
  }

  private func placed(_ error: MigrationError) -> MigrationError {
    let place = mappings.lazy.compactMap { mapping -> String? in
      let own = CustomStepCheck.place(mapping, error.propertyName)
      guard error.detail.hasPrefix("\(own): ") else { return nil }
      let fitting = file.entities.filter {
        $0.source == mapping.sourceEntityName && $0.destination == mapping.destinationEntityName
      }
      // A sub-entity inherits it from the mapping it takes values from.
      let heir = file.entities.first { entity in
        (entity.relationships.map(\.name) + entity.attributes.map(\.name)).contains(error.propertyName ?? "")
      }
      guard let entity = fitting.first(where: { $0.name == mapping.name }) ?? fitting.first ?? heir else { return nil }
      let property = error.propertyName.map { name in
        entity.relationships.contains { $0.name == name } ? ".relationships.\(name)" : ".attributes.\(name)"
      }
      return entity.place + (property ?? "")
    }.first
    guard let place else { return error }
    return invalid(place, error.detail, hint: error.hint)
  }

  /// The line of a place such as `$.entities[0].attributes.age`, else of its entity.
  private func line(_ place: String) -> Int {
    let digits = place.drop { $0 != "[" }.dropFirst().prefix { $0.isNumber }
    guard case .array(let items)? = file.tree["entities"]?.value, let index = Int(digits), items.indices.contains(index)
    else { return 1 }
    let keys = place.drop { $0 != "]" }.dropFirst(2).split(separator: ".", maxSplits: 1).map(String.init)
    guard let key = keys.first, let found = items[index][key] else { return items[index].line }
    // Leaf names contain points.
    return keys.count > 1 ? found[keys[1]]?.line ?? found.line : found.line
  }

  func invalid(_ at: String, _ detail: String, hint: String? = nil) -> MigrationError {
    MappingFile.invalid(file.path, at, line(at), detail, hint: hint)
  }

  private func checkNames() throws {
    func require(_ name: String, of model: ManagedObjectModel, _ side: String, at place: String) throws {
      guard model.entities[name] == nil else { return }
      throw invalid(
        place, "the \(side) has no entity \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: Array(model.entities.keys), "entities of the \(side)"))
    }
    for entity in file.entities {
      try require(entity.source, of: source, "source", at: "\(entity.place).source")
      try require(entity.destination, of: destination, "destination", at: "\(entity.place).destination")
    }
    for entity in file.entities {
      guard let name = entity.name, name != entity.destination, destination.entities[name] != nil else { continue }
      throw invalid(
        "\(entity.place).name", "\"\(printable(name))\" is the name of another entity of the destination",
        hint: "Give it a name of its own, such as \(printable(entity.source))To\(printable(entity.destination)).")
    }
    for (name, place) in file.removed { try require(name, of: source, "source", at: place) }
  }

  // MARK: Inference

  private mutating func takeInferred(_ inference: MappingInference) {
    let given = Set(file.entities.map { [$0.source, $0.destination] })
    let destinations = Set(file.entities.map(\.destination))
    let removed = Set(file.removed.map(\.name))
    var kept: Set<String> = []
    for mapping in inference.mapping.entityMappings {
      switch (mapping.sourceEntityName, mapping.destinationEntityName) {
      case (let from?, let to?):
        guard !given.contains([from, to]), !removed.contains(from) else { continue }
        kept.insert(to)
        mappings.append(mapping)
        losses[from, default: []].append(Set(inference.mapping.losses.filter { $0.sourceEntityName == from }))
      case (nil, let to?):
        guard !destinations.contains(to) else { continue }
        mappings.append(mapping)
      default: continue
      }
    }
    conditions = inference.mapping.conditions.filter { kept.contains($0.destinationEntityName) }
  }

  private mutating func removeWhatIsLeft(_ inference: MappingInference) {
    let read = Set(mappings.compactMap(\.sourceEntityName))
    for name in source.entities.keys.inCodeUnitOrder() where !read.contains(name) {
      mappings.append(EntityMapping(name: "IEM_Remove_\(name)", kind: .remove, source: name, destination: nil))
      if source.entities[name]?.isAbstract == false { losses[name] = [[MigrationLoss(.removedEntity, source: name)]] }
    }
    let made = Set(mappings.compactMap(\.destinationEntityName))
    for name in destination.entities.keys.inCodeUnitOrder() where !made.contains(name) {
      mappings.append(EntityMapping(name: "IEM_Add_\(name)", kind: .add, source: nil, destination: name))
    }
  }

  private func refuseWhatIsLeft(_ inference: MappingInference) throws {
    let inferred = Set(mappings.filter { !$0.isCustom }.compactMap(\.destinationEntityName))
    let touched = Set(file.entities.map { destination.rootName(of: $0.destination) })
    var left = refusals
    for refusal in inference.refusals where file.rest == .infer {
      switch refusal.kind {
      case .mergedHierarchies:
        if !touched.contains(destination.rootName(of: refusal.entityName)) { left.append(refusal) }
      case .disagreeingIdentifiers where refusal.property == nil, .ambiguousEntity, .losesEntity, .foreignTable:
        if !file.entities.contains(where: { $0.source == refusal.entityName || $0.destination == refusal.entityName }) {
          left.append(refusal)
        }
      case .disagreeingIdentifiers, .ambiguousProperty, .incompatibleTypes, .externalStorageOff, .toManyToOne,
        .unsupportedExpression:
        guard inferred.contains(refusal.entityName), let property = refusal.property else { continue }
        // Ancestors' values are inherited.
        let isGiven = mappings.contains { mapping in
          mapping.destinationEntityName == refusal.entityName && givenNames(for: mapping).contains(property.description)
        }
        if !isGiven { left.append(refusal) }
      }
    }
    guard left.isEmpty else { throw MigrationError(refusals: left) }
  }

  // MARK: Sub-entities

  /// The file's entity mapping an inferred one takes values from: its nearest ancestor's.
  private func model(for mapping: EntityMapping) -> MappingFile.Entity? {
    guard mapping.kind == .copy || mapping.kind == .transform, let to = mapping.destinationEntityName,
      let from = mapping.sourceEntityName
    else { return nil }
    for ancestor in destination.lineage(of: to).dropFirst() {
      let found = file.entities.filter { $0.destination == ancestor.name }
      guard !found.isEmpty else { continue }
      let lineage = Set(source.lineage(of: from).map(\.name))
      return found.count == 1 && lineage.contains(found[0].source) ? found[0] : nil
    }
    return nil
  }

  private func givenNames(for mapping: EntityMapping) -> Set<String> {
    guard let entity = model(for: mapping) else { return [] }
    return Set(entity.attributes.map(\.name) + entity.relationships.map(\.name))
  }

  private mutating func inheritGivenValues(_ index: Int) throws {
    guard let entity = model(for: mappings[index]),
      let parent = mappings.first(where: {
        $0.kind == .custom && $0.sourceEntityName == entity.source && $0.destinationEntityName == entity.destination
      })
    else { return }
    let given = givenNames(for: mappings[index])
    for place in mappings[index].propertyMappings.indices {
      let path = mappings[index].propertyMappings[place].destination
      guard given.contains(path.description), let value = parent.propertyMapping(of: path) else { continue }
      // Another mapping's result for the same record applies to that entity only.
      if case .destinations(_, of: .record) = value.value { continue }
      mappings[index].propertyMappings[place] = value
      mappings[index].kind = .custom
    }
    let name = mappings[index].destinationEntityName
    conditions.removeAll {
      $0.destinationEntityName == name && $0.destinationProperty.map { given.contains($0.description) } ?? false
    }
  }
}

extension MappingFileBuilder {
  /// The properties an expression reads; SQLite compiles it to report errors with their place.
  private func properties(
    _ text: String, of name: String, _ mapping: EntityMapping, _ property: PropertyPath?,
    _ compilation: ExpressionCompilation
  ) throws -> Set<String> {
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

  private func usedProperties() throws -> [String: Set<String>] {
    let compilation: ExpressionCompilation
    do { compilation = try ExpressionCompilation(StoreLayout(source)) } catch {
      throw MigrationError(any: error, path: file.path)
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

  /// The losses: all that no mapping of an entity reads.
  func remainingLosses() throws -> [MigrationLoss] {
    let used = try usedProperties()
    let side = InferenceSide(source)
    // A policy's reads are unknown.
    let custom = Set(mappings.filter { $0.kind == .custom }.compactMap(\.sourceEntityName))
      .subtracting(mappings.filter(\.needsPolicy).compactMap(\.sourceEntityName))
    var result: Set<MigrationLoss> = []
    for (name, lists) in losses {
      guard var common = lists.first else { continue }
      for list in lists.dropFirst() { common.formIntersection(list) }
      result.formUnion(
        common.filter { loss in
          guard let path = loss.property else { return true }
          guard let property = side.property(path, of: name) else {
            return used[name]?.contains(path.description) != true
          }
          // Only the relationship itself keeps an order.
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

  private func isUsed(
    _ property: StoredProperty, of name: String, _ used: [String: Set<String>], _ side: InferenceSide
  ) -> Bool {
    if used[name]?.contains(property.path.description) == true { return true }
    switch property.content {
    // A derived attribute can be recomputed.
    case .attribute(let attribute): return attribute.isDerived
    case .relationship(let relationship):
      // The inverse carries the pairs too.
      guard let inverse = side.inverse(of: relationship) else { return false }
      return used.contains { entity, names in
        names.contains(inverse.key.name) && side.isKind(entity, of: inverse.key.entityName)
      }
    }
  }
}
