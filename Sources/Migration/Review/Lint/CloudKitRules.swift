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
            detail: """
              entity "\(printable(name))" is unique in \(constraint.map(printable).joined(separator: ", ")), and CloudKit \
              knows no uniqueness
              """,
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
