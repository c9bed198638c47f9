internal import Platform

/// Writes the keyed archive of a store's model cache.
///
/// Classes, keys and flags come from real stores: a dictionary of entities, inherited properties repeated in
/// sub-entities, a flag summary (`_P`) per property.
struct CompiledModelWriter {
  typealias Reference = KeyedArchiveWriter.Reference

  private let model: ManagedObjectModel
  private let names: [String]
  private var archive = KeyedArchiveWriter()
  private let root: Reference
  private var entities: [String: Reference] = [:]

  private var properties: [String: [String: Reference]] = [:]

  static func bytes(of model: ManagedObjectModel) throws(ModelError) -> [UInt8] {
    try model.requireSoundStructure()
    var writer = CompiledModelWriter(model)
    writer.writeModel()
    do {
      return try writer.archive.bytes(root: writer.root)
    } catch {
      throw ModelError(error, operation: "write the model cache")
    }
  }

  private init(_ model: ManagedObjectModel) {
    self.model = model
    names = model.entities.keys.inCodeUnitOrder()
    root = archive.reserve()
    for name in names {
      entities[name] = archive.reserve()
      for property in model.properties(of: name).keys.inCodeUnitOrder() {
        properties[name, default: [:]][property] = archive.reserve()
      }
    }
  }

  private mutating func writeModel() {
    for name in names { writeEntity(name) }
    let list = archive.knownKeysDictionary(names.map { ($0, entities[$0] ?? .null) })
    let identifiers = archive.set(model.versionIdentifiers.map { archive.string($0) })
    var fields: [String: PropertyList] = [
      "NSEntities": list.value, "NSVersionIdentifiers": identifiers.value,
      "NSFetchRequestTemplates": fetchRequestTemplates().value,
    ]
    if !model.configurations.isEmpty {
      let entries = model.configurations.inCodeUnitOrder().map { name, members in
        (name, archive.set(members.compactMap { entities[$0] }))
      }
      fields["NSConfigurations"] = archive.dictionary(entries, isMutable: true).value
    }
    archive.define(root, classes: ["NSManagedObjectModel", "NSObject"], fields)
  }

  private mutating func fetchRequestTemplates() -> Reference {
    guard !model.fetchRequests.isEmpty else { return .null }
    let entries = model.fetchRequests.inCodeUnitOrder().map { ($0, fetchRequest($1)) }
    return archive.dictionary(entries, isMutable: true)
  }

  // MARK: Entities

  private mutating func writeEntity(_ name: String) {
    guard let entity = model.entities[name], let reference = entities[name] else { return }
    let inherited = model.properties(of: name)
    let own = inherited.keys.inCodeUnitOrder()
    for property in own {
      if let inherited = inherited[property], let place = properties[name]?[property] {
        write(inherited, at: place, of: reference)
      }
    }
    let children = model.childNames(of: name).inCodeUnitOrder()
    let subentities = archive.dictionary(children.map { ($0, entities[$0] ?? .null) }, isMutable: true)
    let list = archive.dictionary(own.map { ($0, properties[name]?[$0] ?? .null) }, isMutable: true)
    let userInfo = userInfo(entity.userInfo)
    var fields: [String: PropertyList] = [
      "NSEntityName": archive.string(name).value, "NSClassNameForEntity": archive.string(entity.className).value,
      "NSRenamingIdentifier": archive.string(entity.renamingIdentifier).value,
      "NSVersionHashModifier": archive.string(entity.versionHashModifier).value,
      "NSSuperentity": (entity.parentName.flatMap { entities[$0] } ?? .null).value, "NSSubentities": subentities.value,
      "NSProperties": list.value, "NSUserInfo": userInfo.value, "NSManagedObjectModel": root.value,
    ]
    if entity.isAbstract { fields["NSIsAbstract"] = .boolean(true) }
    if !entity.uniquenessConstraints.isEmpty { fields["NSUniqueTuples"] = lists(entity.uniquenessConstraints).value }
    if !entity.compoundIndexes.isEmpty { fields["NSCompoundIndexes"] = lists(entity.compoundIndexes).value }
    if !entity.fetchIndexes.isEmpty {
      let indexes = entity.fetchIndexes.map { fetchIndex($0, of: reference) }
      fields["NSFetchIndexDescriptions"] = archive.array(indexes, isMutable: true).value
    }
    archive.define(reference, classes: ["NSEntityDescription", "NSObject"], fields)
  }

  private mutating func lists(_ lists: [[String]]) -> Reference {
    let references = lists.map { archive.array($0.map { archive.string($0) }, isMutable: true) }
    return archive.array(references, isMutable: true)
  }

  private mutating func userInfo(_ entries: [String: String]) -> Reference {
    let keys = entries.keys.inCodeUnitOrder()
    return archive.dictionary(keys.map { ($0, archive.string(entries[$0])) })
  }

  private mutating func fetchIndex(_ index: FetchIndex, of entity: Reference) -> Reference {
    let reference = archive.reserve()
    var elements: [Reference] = []
    for element in index.elements {
      var fields: [String: PropertyList] = [
        "NSFetchIndexDescription": reference.value, "NSFetchIndexElementType": .integer(Int64(element.kind.rawValue)),
        "NSAscending": .boolean(element.isAscending), "NSPropertyName": archive.string(element.propertyName).value,
      ]
      if let expression = element.expression.flatMap({ FormatParser.expression($0) }), expression.isComplete {
        fields["NSIndexedProperty"] = ArchivedPredicateWriter.add(expression, to: &archive).value
      }
      elements.append(archive.add(classes: ["NSFetchIndexElementDescription", "NSObject"], fields))
    }
    let list = archive.array(elements)
    let predicate = predicate(index.partialIndexPredicate)
    archive.define(
      reference, classes: ["NSFetchIndexDescription", "NSObject"],
      [
        "NSIndexName": archive.string(index.name).value, "NSEntity": entity.value, "NSIndexElements": list.value,
        "NSPartialIndexPredicate": predicate.value,
      ])
    return reference
  }

  // MARK: Properties

  private mutating func write(_ inherited: InheritedProperty, at place: Reference, of entity: Reference) {
    switch inherited.property {
    case .attribute(let attribute): write(attribute, at: place, of: entity)
    case .relationship(let relationship): write(relationship, at: place, of: entity)
    case .fetchedProperty(let property): write(property, at: place, of: entity)
    }
  }

  /// Returns common keys; false ones are omitted.
  private mutating func commonFields(
    _ traits: PropertyTraits, of entity: Reference, isOrdered: Bool = false, rules: Int = 0
  ) -> [String: PropertyList] {
    var fields: [String: PropertyList] = [
      "NSPropertyName": archive.string(traits.name).value,
      "NSRenamingIdentifier": archive.string(traits.renamingIdentifier).value, "NSEntity": entity.value,
    ]
    let flags: [(Bool, Int64, String?)] = [
      (true, 0x1, nil), (traits.isOptional, 0x2, "NSIsOptional"), (traits.isReadOnly, 0x4, "NSIsReadOnly"),
      (traits.isTransient, 0x8, "NSIsTransient"), (rules == 0, 0x10, nil), (rules == 0, 0x20, nil),
      (traits.userInfo.isEmpty, 0x40, nil), (traits.versionHashModifier == nil, 0x80, nil),
      (traits.isIndexedBySpotlight, 0x100, "NSIndexedBySpotlight"),
      (traits.isStoredInExternalRecord, 0x200, "NSIsStoredInTruth"), (isOrdered, 0x400, "NSIsOrdered"),
      (traits.allowsCloudEncryption, 0x800, "NSAllowsCloudEncryption"),
    ]
    var summary: Int64 = 0
    for (isSet, bit, key) in flags where isSet {
      summary |= bit
      if let key { fields[key] = .boolean(true) }
    }
    fields["_P"] = .integer(summary)
    if traits.isIndexed { fields["NSIsIndexed"] = .boolean(true) }
    if let modifier = traits.versionHashModifier { fields["NSVersionHashModifier"] = archive.string(modifier).value }
    if !traits.userInfo.isEmpty { fields["NSUserInfo"] = userInfo(traits.userInfo).value }
    return fields
  }

  private mutating func write(_ attribute: Attribute, at place: Reference, of entity: Reference) {
    let rules = attribute.rules
    var fields = commonFields(attribute.traits, of: entity, rules: rules.count)
    let flags: Int64 =
      (attribute.allowsExternalBinaryDataStorage ? 4 : 0) | (attribute.preservesValueInHistoryOnDeletion ? 16 : 0)
    fields["NSAttributeType"] = .integer(Int64(attribute.type.rawValue))
    fields["NSAttributeValueClassName"] =
      archive.string(attribute.valueClassName ?? attribute.type.valueClassName).value
    fields["NSDefaultValue"] = (attribute.defaultValue.map { ArchivedValues.add($0, to: &archive) } ?? .null).value
    fields["NSValueTransformerName"] = archive.string(attribute.valueTransformerName).value
    fields["NSFlagsKey"] = .integer(flags)
    if !rules.isEmpty {
      var predicates: [Reference] = []
      var warnings: [Reference] = []
      for rule in rules {
        predicates.append(ArchivedPredicateWriter.add(rule, to: &archive))
        warnings.append(archive.value(.integer(attribute.warning(for: rule))))
      }
      fields["NSValidationPredicates"] = archive.array(predicates).value
      fields["NSValidationWarnings"] = archive.array(warnings).value
    }
    var classes = ["NSAttributeDescription", "NSPropertyDescription", "NSObject"]
    if let format = attribute.derivationExpression {
      classes.insert("NSDerivedAttributeDescription", at: 0)
      fields["NSDerivationExpression"] = expression(format).value
      fields["NSFilteringPredicate"] = predicate(attribute.filteringPredicate).value
    } else if attribute.type == .composite {
      classes.insert("NSCompositeAttributeDescription", at: 0)
      let elements = attribute.compositeElements.map { leaf in
        let leafPlace = archive.reserve()
        write(leaf, at: leafPlace, of: entity)
        return leafPlace
      }
      fields["NSElements"] = archive.array(elements).value
    }
    archive.define(place, classes: classes, fields)
  }

  private mutating func write(_ relationship: Relationship, at place: Reference, of entity: Reference) {
    var fields = commonFields(relationship.traits, of: entity, isOrdered: relationship.isOrdered)
    fields["NSDestinationEntity"] = (entities[relationship.destinationEntityName] ?? .null).value
    fields["_NSDestinationEntityName"] = archive.string(relationship.destinationEntityName).value
    fields["NSInverseRelationship"] = inverse(of: relationship).value
    fields["_NSInverseRelationshipName"] = archive.string(relationship.inverseName).value
    fields["NSMaxCount"] = .integer(Int64(relationship.maximumCount))
    fields["NSMinCount"] = .integer(Int64(relationship.minimumCount))
    fields["NSDeleteRule"] = .integer(Int64(relationship.deleteRule.rawValue))
    archive.define(place, classes: ["NSRelationshipDescription", "NSPropertyDescription", "NSObject"], fields)
  }

  /// Returns the inverse on the named or declaring entity.
  private func inverse(of relationship: Relationship) -> Reference {
    guard let name = relationship.inverseName else { return .null }
    if let entity = relationship.inverseEntityName, let place = properties[entity]?[name] { return place }
    let holder = model.lineage(of: relationship.destinationEntityName).first { $0.properties[name] != nil }
    return holder.flatMap { properties[$0.name]?[name] } ?? .null
  }

  private mutating func write(_ property: FetchedProperty, at place: Reference, of entity: Reference) {
    var fields = commonFields(property.traits, of: entity)
    fields["_NSFetchRequestEntityName"] = archive.string(property.fetchRequest?.entityName).value
    fields["NSFetchRequest"] = (property.fetchRequest.map { fetchRequest($0) } ?? .null).value
    archive.define(place, classes: ["NSFetchedPropertyDescription", "NSPropertyDescription", "NSObject"], fields)
  }

  private mutating func fetchRequest(_ request: FetchRequestTemplate) -> Reference {
    var fields: [String: PropertyList] = [
      "NSEntity": (entities[request.entityName] ?? .null).value,
      "NSPredicate": predicate(request.predicateFormat).value, "NSHasFetchRequestFlags": .boolean(true),
      // The default flags: sub-entities, property values, pending changes, faults.
      "NSFetchRequestFlags": .integer(30),
    ]
    let none = Reference.null.value
    for key in [
      "NSSortDescriptors", "NSValuesToFetch", "NSValuesToGroupBy", "NSHavingPredicate",
      "NSRelationshipKeyPathsForPrefetching",
    ] { fields[key] = none }
    for key in ["NSResultType", "NSFetchOffset", "NSFetchLimit", "NSBatchSize", "NSAllocationType"] {
      fields[key] = .integer(0)
    }
    return archive.add(classes: ["NSFetchRequest", "NSPersistentStoreRequest", "NSObject"], fields)
  }

  private mutating func predicate(_ format: String?) -> Reference {
    guard let predicate = format.flatMap({ FormatParser.predicate($0) }), predicate.isComplete else { return .null }
    return ArchivedPredicateWriter.add(predicate, to: &archive)
  }

  /// Archives an unreadable expression as a key path, which prints and hashes unchanged.
  private mutating func expression(_ format: String) -> Reference {
    let known = FormatParser.expression(format).flatMap { $0.isComplete && $0.format == format ? $0 : nil }
    return ArchivedPredicateWriter.add(known ?? .keyPath(format), to: &archive)
  }
}

extension Attribute {
  /// The error code (1550 to 1680 in Cocoa's error domain); unverified.
  fileprivate func warning(for rule: ModelPredicate) -> Int64 {
    switch rule {
    case .comparison(_, .greaterThanOrEqual, _, _, _):
      switch type {
      case .string: 1670
      case .date: 1640
      default: 1620
      }
    case .comparison(_, .lessThanOrEqual, _, _, _):
      switch type {
      case .string: 1660
      case .date: 1630
      default: 1610
      }
    case .comparison(_, .matches, _, _, _): 1680
    case .comparison, .and, .or, .not, .always, .opaque: 1550
    }
  }
}
