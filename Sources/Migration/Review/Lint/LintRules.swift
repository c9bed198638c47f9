internal import ManagedObjectModel
internal import Platform

/// CloudKit's rules for models (format section 5.6).
enum CloudKitRules {
  static func findings(in version: ModelVersion) -> [LintFinding] {
    var findings: [LintFinding] = []
    for (name, entity) in version.model.entities.inCodeUnitOrder() {
      for constraint in entity.uniquenessConstraints {
        findings.append(
          LintFinding(
            .cloudKitUniqueness, in: version.name, entity: name,
            detail: "entity \"\(printable(name))\" is unique in \(constraint.map(printable).joined(separator: ", ")), "
              + "and CloudKit knows no uniqueness",
            hint: "Remove the constraint, and merge duplicates in the app."))
      }
      for (_, property) in entity.properties.inCodeUnitOrder() where !property.traits.isTransient {
        findings += Self.findings(property, of: name, in: version.name)
      }
    }
    return findings
  }

  private static func findings(_ property: Property, of entity: String, in version: String) -> [LintFinding] {
    let place = "\(printable(entity)).\(printable(property.name))"
    func finding(_ rule: LintFinding.Rule, _ detail: String, _ hint: String) -> LintFinding {
      LintFinding(
        rule, in: version, entity: entity, property: property.name, detail: "\(place) \(detail)", hint: hint)
    }
    var findings: [LintFinding] = []
    switch property {
    case .attribute(let attribute):
      if attribute.type == .undefined || attribute.type == .objectID {
        findings.append(
          finding(
            .cloudKitType, "is of type \(attribute.type.sourceName)", "Choose another type, or make it transient."))
      }
      if !attribute.traits.isOptional, attribute.defaultValue == nil, !attribute.isDerived {
        findings.append(
          finding(
            .cloudKitMandatoryAttribute, "is mandatory and has no default", "Make it optional or give it a default."))
      }
    case .relationship(let relationship):
      if !relationship.traits.isOptional {
        findings.append(finding(.cloudKitMandatoryRelationship, "is mandatory", "Make it optional."))
      }
      if relationship.inverseName == nil {
        findings.append(finding(.cloudKitMissingInverse, "has no inverse", "Add a relationship that leads back."))
      }
      if relationship.isOrdered {
        findings.append(finding(.cloudKitOrdered, "is ordered", "Keep the order in an attribute."))
      }
      if relationship.deleteRule == .deny {
        findings.append(finding(.cloudKitDenyRule, "has the delete rule Deny", "Choose another delete rule."))
      }
    case .fetchedProperty: break
    }
    return findings
  }

  /// The attributes whose cloud encryption changes; a deployed field can't change.
  ///
  /// A cloud field has the attribute's name, whatever its renaming identifier.
  static func encryptionFindings(from before: ModelVersion, to after: ModelVersion, place: String) -> [LintFinding] {
    var findings: [LintFinding] = []
    for (name, new) in after.model.entities.inCodeUnitOrder() {
      guard let old = before.model.entities[name] else { continue }
      for (key, property) in new.properties.inCodeUnitOrder() {
        guard let earlier = old.properties[key]?.attribute, let attribute = property.attribute,
          earlier.traits.allowsCloudEncryption != attribute.traits.allowsCloudEncryption,
          !earlier.traits.isTransient, !attribute.traits.isTransient
        else { continue }
        let isOn = attribute.traits.allowsCloudEncryption
        findings.append(
          LintFinding(
            .cloudEncryptionChanged, in: place, entity: name, property: key,
            detail: """
              \(printable(name)).\(printable(key)) \(isOn ? "is to be encrypted in the cloud, and was not before" : "was encrypted in the cloud, and is to be no more"): \
              CloudKit changes no field that is deployed, and values that are there stay as they are
              """,
            hint: "Leave it as it was. Add a new attribute with the other setting, and copy the values in the app."))
      }
    }
    return findings
  }

  static func findings(in mapping: MappingModel, place: String) -> [LintFinding] {
    var findings: [LintFinding] = []
    func add(_ entity: String, _ property: String?, _ detail: String) {
      let finding = LintFinding(
        .cloudKitNotAdditive, in: place, entity: entity, property: property, detail: detail,
        hint: "Leave it as it was and add something new instead; a deployed schema can only grow.")
      if !findings.contains(finding) { findings.append(finding) }
    }
    for loss in mapping.losses.withoutInherited() where loss.kind != .relationshipOrder {
      add(loss.sourceEntityName, loss.property?.description, loss.text)
    }
    for entity in mapping.entityMappings {
      guard let source = entity.sourceEntityName, let destination = entity.destinationEntityName else { continue }
      if source != destination {
        add(destination, nil, "entity \"\(printable(source))\" is renamed to \"\(printable(destination))\"")
      }
      let declared = mapping.destination.entities[destination]?.properties ?? [:]
      for property in entity.propertyMappings {
        guard let origin = property.source, let new = declared[property.destination.name] else { continue }
        let path = property.destination.description
        if origin != property.destination {
          add(
            destination, path,
            "\(printable(destination)).\(printable(path)) was called \"\(printable(origin.description))\" before")
        }
        if case .convert(_, let from, let to) = property.value {
          add(
            destination, path,
            "\(printable(destination)).\(printable(path)) changes its type: \(from.sourceName) → \(to.sourceName)")
        }
        let old = mapping.source.properties(of: source)[origin.name]?.property.relationship
        if let old, let new = new.relationship, old.isToMany != new.isToMany {
          add(destination, path, "\(printable(destination)).\(printable(path)) changes from to-one to to-many")
        }
      }
    }
    return findings
  }
}

/// Finds a removal and an addition that are probably a rename.
enum RenameSuspicion {
  /// Beyond any real step.
  private static let limit = 200

  static func findings(in mapping: MappingModel, place: String) -> [LintFinding] {
    var findings = entityFindings(mapping, place)
    let images = mapping.mappingsBySource.compactMapValues(\.destinationEntityName)
    for entity in mapping.entityMappings {
      guard let source = entity.sourceEntityName, let destination = entity.destinationEntityName else { continue }
      findings += propertyFindings(mapping, entity, source, destination, images, place)
    }
    return findings
  }

  // MARK: Entities

  private static func entityFindings(_ mapping: MappingModel, _ place: String) -> [LintFinding] {
    let removed = mapping.entityMappings.filter { $0.kind == .remove }
      .compactMap { $0.sourceEntityName.flatMap { mapping.source.entities[$0] } }.prefix(limit)
    let added = mapping.entityMappings.filter { $0.kind == .add }
      .compactMap { $0.destinationEntityName.flatMap { mapping.destination.entities[$0] } }.prefix(limit)
    let pairs = pair(Array(removed), Array(added)) { old, new in
      // Refused elsewhere.
      if old.name == new.name { return nil }
      if new.explicitRenamingIdentifier == old.name { return 3 }
      let (before, after) = (Set(old.properties.keys), Set(new.properties.keys))
      let common = before.intersection(after).filter { name in
        old.properties[name]?.attribute?.type == new.properties[name]?.attribute?.type
      }
      let all = before.union(after).count
      let share = all == 0 ? 0 : Double(common.count) / Double(all)
      return share >= 0.5 || (share >= 0.3 && similarity(old.name, new.name) >= 0.5)
        ? share + similarity(old.name, new.name) : nil
    }
    return pairs.map { old, new in
      finding(
        entity: new.name, property: nil, what: "entity", old.name, new.name, identifier: old.renamingIdentifier,
        explicit: new.explicitRenamingIdentifier, place)
    }
  }

  // MARK: Properties

  private static func propertyFindings(
    _ mapping: MappingModel, _ entity: EntityMapping, _ source: String, _ destination: String,
    _ images: [String: String], _ place: String
  ) -> [LintFinding] {
    let used = Set(entity.propertyMappings.compactMap(\.source?.name))
    var added: [Property] = []
    for property in entity.propertyMappings
    where property.destination.leaf.isEmpty && [.null, .defaultValue].contains(property.value) {
      if let found = mapping.destination.entities[destination]?.properties[property.destination.name] {
        added.append(found)
      }
    }
    guard !added.isEmpty, let before = mapping.source.entities[source] else { return [] }
    let removed = before.properties.values.filter { property in
      if case .fetchedProperty = property { return false }
      return !property.traits.isTransient && !used.contains(property.name) && property.attribute?.isDerived != true
    }.sorted { precedesByCodeUnit($0.name, $1.name) }
    guard !removed.isEmpty else { return [] }
    let pairs = pair(Array(removed.prefix(limit)), Array(added.prefix(limit))) { old, new in
      if old.name == new.name { return nil }
      if new.traits.explicitRenamingIdentifier == old.name { return 3 }
      guard isAlike(old, new, images) else { return nil }
      let likeness = similarity(old.name, new.name)
      // A lone removal and addition of one type are suspicious under any names.
      let isLone =
        removed.filter { isAlike($0, new, images) }.count == 1 && added.filter { isAlike(old, $0, images) }.count == 1
      return likeness >= 0.4 || isLone ? likeness : nil
    }
    return pairs.map { old, new in
      finding(
        entity: destination, property: new.name, what: old.relationship == nil ? "attribute" : "relationship",
        "\(source).\(old.name)", "\(destination).\(new.name)", identifier: old.traits.renamingIdentifier,
        explicit: new.traits.explicitRenamingIdentifier, place)
    }
  }

  private static func isAlike(_ old: Property, _ new: Property, _ images: [String: String]) -> Bool {
    switch (old, new) {
    case (.attribute(let old), .attribute(let new)): return old.type == new.type
    case (.relationship(let old), .relationship(let new)):
      return old.isToMany == new.isToMany && images[old.destinationEntityName] == new.destinationEntityName
    default: return false
    }
  }

  // MARK: Scores

  /// Pairs old and new items by best score, each once; a nil score prevents a pair.
  private static func pair<Item>(
    _ removed: [Item], _ added: [Item], _ score: (Item, Item) -> Double?
  ) -> [(Item, Item)] {
    var scores: [(score: Double, old: Int, new: Int)] = []
    for (old, one) in removed.enumerated() {
      for (new, other) in added.enumerated() {
        if let value = score(one, other) { scores.append((value, old, new)) }
      }
    }
    scores.sort { first, second in
      first.score != second.score ? first.score > second.score : (first.old, first.new) < (second.old, second.new)
    }
    var (takenOld, takenNew): (Set<Int>, Set<Int>) = ([], [])
    var pairs: [(Item, Item)] = []
    for entry in scores where !takenOld.contains(entry.old) && !takenNew.contains(entry.new) {
      takenOld.insert(entry.old)
      takenNew.insert(entry.new)
      pairs.append((removed[entry.old], added[entry.new]))
    }
    return pairs
  }

  private static func finding(
    entity: String, property: String?, what: String, _ old: String, _ new: String, identifier: String,
    explicit: String?, _ place: String
  ) -> LintFinding {
    let oldName = old.split(separator: ".").last.map(String.init) ?? old
    let isBroken = explicit == oldName
    let detail =
      isBroken
      ? "\(what) \(printable(new)) names \(printable(old)) as what it was, whose renaming identifier is "
        + "\"\(printable(identifier))\", not \"\(printable(oldName))\": its data is lost"
      : "\(what) \(printable(old)) is removed and \(printable(new)) is added, which looks like a rename"
    return LintFinding(
      isBroken ? .brokenRename : .possibleRename, in: place, entity: entity, property: property, detail: detail,
      hint: "If it is the same, set the renaming identifier of \(printable(new)) to \"\(printable(identifier))\".")
  }

  /// The similarity of names from 0 to 1: one minus the share of changed letters.
  static func similarity(_ first: String, _ second: String) -> Double {
    let (left, right) = (Array(first.lowercased().utf16.prefix(64)), Array(second.lowercased().utf16.prefix(64)))
    let longest = max(left.count, right.count)
    guard longest > 0 else { return 1 }
    var row = Array(0...right.count)
    for (i, one) in left.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, other) in right.enumerated() {
        let above = row[j + 1]
        row[j + 1] = min(above + 1, row[j] + 1, diagonal + (one == other ? 0 : 1))
        diagonal = above
      }
    }
    return 1 - Double(row[right.count]) / Double(longest)
  }
}
