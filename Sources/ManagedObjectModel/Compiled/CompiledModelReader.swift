internal import Platform

/// Reads a compiled model: a keyed archive of Core Data's description classes (section 2.2).
///
/// A `.mom` has each property once; a store's cache repeats inherited ones in sub-entities, which are dropped.
struct CompiledModelReader {
  private let archive: KeyedArchive

  /// The remaining properties; valid archives have an object each.
  private var propertyBudget: Int

  /// The remaining user information entries; entities may share them.
  private var entryBudget: Int
  private var predicates: ArchivedPredicateReader

  static func read(_ bytes: [UInt8]) throws(ModelError) -> ManagedObjectModel {
    var reader = CompiledModelReader(try ModelError.reading { () throws(FileError) in try KeyedArchive(bytes) })
    return try reader.model()
  }

  private init(_ archive: KeyedArchive) {
    self.archive = archive
    propertyBudget = archive.objects.count
    entryBudget = 8 * archive.objects.count + 64
    predicates = ArchivedPredicateReader(budget: min(16 * archive.objects.count + 10_000, 2_000_000))
  }

  private mutating func model() throws(ModelError) -> ManagedObjectModel {
    let root = archive.root
    guard root.classNames.contains("NSManagedObjectModel") else {
      let found = root.className.map { "of class \(printable(String($0.prefix(80))))" } ?? "of no class"
      throw ModelError(.notAModel, detail: "the archive is \(found), not of a managed object model")
    }
    guard let list = root.object("NSEntities")?.entries else {
      throw ModelError(.damaged, detail: "the archived model has no entities")
    }
    var entities: [Entity] = []
    var names: Set<String> = []
    for (key, object) in list {
      let entity = try entity(object, key: key)
      guard names.insert(entity.name).inserted else { throw ModelError.doubled(.damaged, entity.name) }
      entities.append(entity)
    }
    var model = ManagedObjectModel(
      entities: entities,
      versionIdentifiers: (root.object("NSVersionIdentifiers")?.elements ?? []).compactMap(\.string).inCodeUnitOrder(),
      configurations: configurations(root), fetchRequests: fetchRequests(root))
    // Rejects contradictions before any walk of the hierarchy.
    try model.requireSoundStructure()
    model.removeInheritedCopies()
    return model
  }

  private func configurations(_ root: ArchivedObject) -> [String: [String]] {
    var result: [String: [String]] = [:]
    for (name, members) in root.object("NSConfigurations")?.entries ?? [] {
      // Entities, or in some archives their names.
      let names = (members.elements ?? []).compactMap { $0.string ?? $0.string("NSEntityName") }
      result[name] = names.inCodeUnitOrder()
    }
    return result
  }

  private mutating func fetchRequests(_ root: ArchivedObject) -> [String: FetchRequestTemplate] {
    var result: [String: FetchRequestTemplate] = [:]
    for (name, request) in root.object("NSFetchRequestTemplates")?.entries ?? [] {
      result[name] = fetchRequest(request, entityName: nil)
    }
    return result
  }

  // MARK: Entities

  private mutating func entity(_ object: ArchivedObject, key: String) throws(ModelError) -> Entity {
    guard let name = object.string("NSEntityName") else {
      throw ModelError(.damaged, detail: "the entity kept as \"\(printable(key))\" has no name", entityName: key)
    }
    var properties: [Property] = []
    var names: Set<String> = []
    for (_, property) in object.object("NSProperties")?.entries ?? [] {
      propertyBudget -= 1
      guard propertyBudget >= 0 else {
        throw ModelError(.damaged, detail: "its entities share their properties", entityName: name)
      }
      guard let property = try ownProperty(property, of: name) else { continue }
      guard names.insert(property.name).inserted else {
        throw ModelError.doubled(.damaged, name, property: property.name)
      }
      properties.append(property)
    }
    var indexes: [FetchIndex] = []
    for index in object.object("NSFetchIndexDescriptions")?.elements ?? [] {
      indexes.append(try fetchIndex(index, name))
    }
    return Entity(
      name: name, className: object.string("NSClassNameForEntity"), isAbstract: object.boolean("NSIsAbstract"),
      parentName: object.object("NSSuperentity")?.string("NSEntityName"),
      explicitRenamingIdentifier: object.string("NSRenamingIdentifier")?.identifier(besides: name),
      versionHashModifier: object.string("NSVersionHashModifier")?.nonEmpty, properties: properties,
      uniquenessConstraints: try lists(object.object("NSUniqueTuples"), name), fetchIndexes: indexes,
      compoundIndexes: try lists(object.object("NSCompoundIndexes"), name), userInfo: try userInfo(object, name))
  }

  /// Reads nested lists of names; some archives have property objects.
  private mutating func lists(_ object: ArchivedObject?, _ entity: String) throws(ModelError) -> [[String]] {
    var result: [[String]] = []
    for list in object?.elements ?? [] {
      let elements = list.elements ?? []
      try spend(elements.count + 1, entity)
      result.append(elements.compactMap { $0.string ?? $0.string("NSPropertyName") })
    }
    return result
  }

  private mutating func fetchIndex(_ object: ArchivedObject, _ entity: String) throws(ModelError) -> FetchIndex {
    var elements: [FetchIndexElement] = []
    for element in object.object("NSIndexElements")?.elements ?? [] {
      try spend(1, entity)
      let indexed = element.object("NSIndexedProperty")
      // A description contains the expression; its number is the result type.
      let expression = indexed?.object("NSExpression") ?? (indexed?.integer("NSExpressionType") == nil ? nil : indexed)
      elements.append(
        FetchIndexElement(
          propertyName: expression != nil ? nil : element.string("NSPropertyName") ?? indexed?.string("NSPropertyName"),
          expression: expression.map { predicates.expression($0).format },
          kind: element.integer("NSFetchIndexElementType") == 1 ? .rTree : .binary,
          isAscending: element.boolean("NSAscending")))
    }
    return FetchIndex(
      name: object.string("NSIndexName") ?? "", elements: elements,
      partialIndexPredicate: object.object("NSPartialIndexPredicate").map { predicates.predicate($0).format })
  }

  // MARK: Properties

  /// Reads an own property; nil for the proxy of an inherited one.
  ///
  /// Some caches (real stores of fw 641 and 851) have a `_NSPropertyDescriptionProxy` to the ancestor's object.
  private mutating func ownProperty(_ object: ArchivedObject, of entity: String) throws(ModelError) -> Property? {
    var object = object
    var steps = 0
    while object.classNames.contains("_NSPropertyDescriptionProxy") {
      guard let underlying = object.object("NSUnderlyingProperty"), steps < 16 else {
        throw ModelError(
          .damaged, detail: "entity \"\(printable(entity))\" has a stand-in for a property that is not there",
          entityName: entity)
      }
      steps += 1
      object = underlying
    }
    if steps > 0, let declaring = object.object("NSEntity")?.string("NSEntityName"), declaring != entity { return nil }
    return try property(object, of: entity)
  }

  private mutating func property(_ object: ArchivedObject, of entity: String) throws(ModelError) -> Property {
    guard let name = object.string("NSPropertyName") else {
      throw ModelError(
        .damaged, detail: "a property of entity \"\(printable(entity))\" has no name", entityName: entity)
    }
    let traits = PropertyTraits(
      name: name, isOptional: object.boolean("NSIsOptional"), isTransient: object.boolean("NSIsTransient"),
      isReadOnly: object.boolean("NSIsReadOnly"), isIndexed: object.boolean("NSIsIndexed"),
      explicitRenamingIdentifier: object.string("NSRenamingIdentifier")?.identifier(besides: name),
      versionHashModifier: object.string("NSVersionHashModifier")?.nonEmpty, userInfo: try userInfo(object, entity),
      isIndexedBySpotlight: object.boolean("NSIndexedBySpotlight"),
      isStoredInExternalRecord: object.boolean("NSIsStoredInTruth"),
      allowsCloudEncryption: object.boolean("NSAllowsCloudEncryption"))
    let classes = object.classNames
    if classes.contains("NSRelationshipDescription") {
      return .relationship(try relationship(object, traits, of: entity))
    }
    if classes.contains("NSFetchedPropertyDescription") {
      let request = object.object("NSFetchRequest").flatMap {
        fetchRequest($0, entityName: object.string("_NSFetchRequestEntityName"))
      }
      return .fetchedProperty(FetchedProperty(traits: traits, fetchRequest: request))
    }
    guard classes.contains("NSAttributeDescription") || object["NSAttributeType"] != nil else {
      throw ModelError(
        .damaged, detail: "\(printable(entity)).\(printable(name)) is of a class that is no property",
        entityName: entity, propertyName: name)
    }
    return .attribute(try attribute(object, traits, of: entity, depth: 0))
  }

  private mutating func attribute(
    _ object: ArchivedObject, _ traits: PropertyTraits, of entity: String, depth: Int
  ) throws(ModelError) -> Attribute {
    let number = object.integer("NSAttributeType") ?? 0
    guard let type = AttributeType(rawValue: Int(number)) else {
      throw ModelError(
        .invalid, detail: "attribute \(printable(entity)).\(printable(traits.name)) is of the unknown type \(number)",
        hint: "Check that the model was not made by a newer system than this software knows.", entityName: entity,
        propertyName: traits.name)
    }
    // The bits of `NSFlagsKey`: 4 external storage, 16 preserved in history.
    let flags = object.integer("NSFlagsKey") ?? 0
    var attribute = Attribute(
      traits: traits, type: type,
      defaultValue: object.object("NSDefaultValue").map { AttributeValue(archived: $0).normalized(for: type) },
      valueTransformerName: object.string("NSValueTransformerName")?.nonEmpty,
      valueClassName: object.string("NSAttributeValueClassName")?.nonEmpty,
      allowsExternalBinaryDataStorage: flags & 4 != 0, preservesValueInHistoryOnDeletion: flags & 16 != 0,
      derivationExpression: object.object("NSDerivationExpression").map { predicates.expression($0).format },
      filteringPredicate: object.object("NSFilteringPredicate").map { predicates.predicate($0).format })
    for rule in object.object("NSValidationPredicates")?.elements ?? [] {
      try spend(1, entity)
      attribute.add(rule: predicates.predicate(rule))
    }
    if type == .composite { attribute.compositeElements = try leaves(of: object, entity: entity, depth: depth) }
    return attribute
  }

  /// Reads composite leaves; their key is unverified.
  private mutating func leaves(
    of object: ArchivedObject, entity: String, depth: Int
  ) throws(ModelError) -> [Attribute] {
    guard depth < 16 else {
      throw ModelError(.damaged, detail: "a composite attribute is nested too deeply", entityName: entity)
    }
    var leaves: [Attribute] = []
    for element in object.object("NSElements")?.elements ?? [] {
      propertyBudget -= 1
      guard propertyBudget >= 0, let name = element.string("NSPropertyName") else {
        throw ModelError(.damaged, detail: "a composite attribute is damaged", entityName: entity)
      }
      let traits = PropertyTraits(
        name: name, isOptional: element.boolean("NSIsOptional"), isTransient: element.boolean("NSIsTransient"),
        explicitRenamingIdentifier: element.string("NSRenamingIdentifier")?.identifier(besides: name),
        versionHashModifier: element.string("NSVersionHashModifier")?.nonEmpty)
      leaves.append(try attribute(element, traits, of: entity, depth: depth + 1))
    }
    return leaves
  }

  private func relationship(
    _ object: ArchivedObject, _ traits: PropertyTraits, of entity: String
  ) throws(ModelError) -> Relationship {
    guard
      let destination = object.string("_NSDestinationEntityName")
        ?? object.object("NSDestinationEntity")?.string("NSEntityName")
    else {
      throw ModelError(
        .damaged, detail: "\(printable(entity)).\(printable(traits.name)) leads to no entity", entityName: entity,
        propertyName: traits.name)
    }
    func count(_ key: String) -> Int { Int(Int32(truncatingIfNeeded: object.integer(key) ?? 0)) }
    let inverse = object.object("NSInverseRelationship")
    let inverseName = inverse?.string("NSPropertyName") ?? object.string("_NSInverseRelationshipName")?.nonEmpty
    return Relationship(
      traits: traits, destinationEntityName: destination, inverseName: inverseName,
      inverseEntityName: inverse?.object("NSEntity")?.string("NSEntityName"), maximumCount: count("NSMaxCount"),
      minimumCount: count("NSMinCount"), isOrdered: object.boolean("NSIsOrdered"),
      deleteRule: object.integer("NSDeleteRule").flatMap { DeleteRule(rawValue: Int($0)) } ?? .nullify)
  }

  private mutating func fetchRequest(_ object: ArchivedObject, entityName: String?) -> FetchRequestTemplate? {
    let stored = object.string("NSEntityName") ?? object.object("NSEntity")?.string("NSEntityName")
    guard let name = entityName ?? stored else { return nil }
    return FetchRequestTemplate(
      entityName: name, predicateFormat: object.object("NSPredicate").map { predicates.predicate($0).format })
  }

  // MARK: Small things

  private mutating func userInfo(_ object: ArchivedObject, _ entity: String) throws(ModelError) -> [String: String] {
    guard let entries = object.object("NSUserInfo")?.entries else { return [:] }
    try spend(entries.count, entity)
    var result: [String: String] = [:]
    for (key, value) in entries { result[key] = value.string ?? AttributeValue(archived: value).plainText }
    return result
  }

  private mutating func spend(_ count: Int, _ entity: String) throws(ModelError) {
    entryBudget -= count
    guard entryBudget >= 0 else {
      throw ModelError(.damaged, detail: "its entities share more lists than there are objects", entityName: entity)
    }
  }
}

extension ManagedObjectModel {
  /// Removes inherited copies.
  ///
  /// A copy has an ancestor's name and hash. A property with another hash stays: the store was written with it, and
  /// `validate()` reports it.
  fileprivate mutating func removeInheritedCopies() {
    let original = self
    for (name, entity) in original.entities where entity.parentName != nil {
      let ancestors = original.lineage(of: name).dropFirst()
      for (propertyName, property) in entity.properties {
        // The topmost is the original; those between are copies.
        guard let declaring = ancestors.last(where: { $0.properties[propertyName] != nil }),
          let inherited = declaring.properties[propertyName]
        else { continue }
        if case .fetchedProperty = property {
          entities[name]?.properties[propertyName] = nil
        } else if original.propertyDigest(property, of: declaring.name)
          == original.propertyDigest(inherited, of: declaring.name)
        {
          entities[name]?.properties[propertyName] = nil
        }
      }
    }
  }
}
