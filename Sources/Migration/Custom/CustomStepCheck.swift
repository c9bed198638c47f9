import ManagedObjectModel
import PersistentStore
internal import Platform

/// Checks a custom mapping against its models before any store is opened.
struct CustomStepCheck {
  let layout: StepLayout

  func run() throws {
    var names: Set<String> = []
    for mapping in layout.mapping.entityMappings {
      guard names.insert(mapping.name).inserted else {
        throw Self.invalid(mapping, nil, "another entity mapping has the same name")
      }
      try check(mapping)
    }
  }

  private func check(_ mapping: EntityMapping) throws {
    if let name = mapping.sourceEntityName, layout.source.entity(named: name) == nil {
      throw Self.invalid(
        mapping, nil, "the source has no entity \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: layout.source.entities.map(\.name), "entities of the source"))
    }
    guard let name = mapping.destinationEntityName else { return }
    guard let destination = layout.destination.entity(named: name) else {
      throw Self.invalid(
        mapping, nil, "the destination has no entity \"\(printable(name))\"",
        hint: NameSuggestion.hint(
          for: name, among: layout.destination.entities.map(\.name), "entities of the destination"))
    }
    let known = layout.destinationSide.properties[destination.name] ?? []
    var seen: Set<PropertyPath> = []
    for property in mapping.propertyMappings {
      guard seen.insert(property.destination).inserted else {
        throw Self.invalid(mapping, property.destination.description, "it is mapped twice")
      }
      guard let new = known.first(where: { $0.path == property.destination }) else {
        throw Self.invalid(
          mapping, property.destination.description, "the destination's entity has no such stored property",
          hint: NameSuggestion.hint(
            for: property.destination.description, among: known.map(\.path.description),
            "properties of \(printable(name))"))
      }
      try check(property, new, mapping)
    }
  }

  private func check(
    _ property: PropertyMapping, _ new: StoredProperty, _ mapping: EntityMapping
  ) throws {
    let name = property.destination.description
    let sourceName = mapping.sourceEntityName ?? ""
    func old(_ path: PropertyPath) throws -> StoredProperty {
      let all = layout.sourceSide.properties[sourceName] ?? []
      if let found = all.first(where: { $0.path == path }) { return found }
      throw Self.invalid(
        mapping, name, "\(printable(sourceName)) has no stored property \"\(printable(path.description))\"",
        hint: NameSuggestion.hint(
          for: path.description, among: all.map(\.path.description), "properties of \(printable(sourceName))"))
    }
    switch property.value {
    case .copy(let path), .convert(let path, _, _), .externalize(let path):
      let old = try old(path)
      guard old.attribute != nil, new.attribute != nil else {
        throw Self.invalid(mapping, name, "an attribute and a relationship cannot be copied into each other")
      }
      if case .copy = property.value { try checkCopy(old, new, mapping, name) }
    case .relationship(let relationship):
      guard try old(PropertyPath(relationship)).relationship != nil, new.relationship != nil else {
        throw Self.invalid(mapping, name, "an attribute and a relationship cannot be copied into each other")
      }
      try checkKinship(try old(PropertyPath(relationship)), new, mapping, name)
    case .destinations(let other, let reference):
      guard new.relationship != nil else {
        throw Self.invalid(mapping, name, "only a relationship can lead to what another entity mapping makes")
      }
      try checkDestinations(other, reference, new, mapping, name)
      if case .relationship(let relationship) = reference, try old(PropertyPath(relationship)).relationship == nil {
        throw Self.invalid(mapping, name, "\(printable(relationship)) of the source is no relationship")
      }
    case .expression:
      guard new.attribute != nil else {
        throw Self.invalid(
          mapping, name, "a relationship cannot be made by an SQL expression",
          hint: "Name the entity mapping whose records it leads to, or the source's relationship.")
      }
      guard new.attribute?.isDerived == false else {
        throw Self.invalid(mapping, name, "it is derived, so that no expression can make it")
      }
    case .defaultValue, .null, .recompute, .inverse: break
    }
  }

  private func checkCopy(
    _ old: StoredProperty, _ new: StoredProperty, _ mapping: EntityMapping, _ name: String
  ) throws {
    guard let before = old.attribute?.type, let after = new.attribute?.type else { return }
    let areBytes = [before, after].allSatisfy { $0 == .binary || $0 == .transformable }
    guard before == after || areBytes || (before.isNumeric && after.isNumeric) else {
      throw Self.invalid(
        mapping, name, "a value of type \(before.sourceName) cannot be copied into one of type \(after.sourceName)",
        hint: "Write an SQL expression that converts it.")
    }
    guard old.isMarked == new.isMarked else {
      throw Self.invalid(
        mapping, name, "external storage is on for only one of the two attributes",
        hint: old.isMarked ? "Leave external storage on, or register a policy." : "Map it with the value externalize.")
    }
  }

  /// Rejects a relationship if its targets become no entity that the new one leads to.
  private func checkKinship(
    _ old: StoredProperty, _ new: StoredProperty, _ mapping: EntityMapping, _ name: String
  ) throws {
    guard let before = old.relationship?.destinationEntityName, let after = new.relationship?.destinationEntityName
    else { return }
    let family = layout.sourceSide.family(of: before)
    let made = layout.mapping.entityMappings.filter { family.contains($0.sourceEntityName ?? "") }
      .compactMap(\.destinationEntityName)
    guard !made.isEmpty, !made.contains(where: { layout.destinationSide.isKind($0, of: after) }) else { return }
    throw Self.invalid(
      mapping, name,
      "it leads to \(printable(after)), and what \(printable(old.path.description)) leads to becomes "
        + Set(made).sorted().map(printable).joined(separator: ", "))
  }

  private func checkDestinations(
    _ other: String, _ reference: PropertyMapping.SourceReference, _ new: StoredProperty, _ mapping: EntityMapping,
    _ name: String
  ) throws {
    guard let target = layout.mapping.entityMapping(named: other) else {
      throw Self.invalid(
        mapping, name, "there is no entity mapping \"\(printable(other))\"",
        hint: NameSuggestion.hint(for: other, among: layout.mapping.entityMappings.map(\.name), "entity mappings"))
    }
    if case .record = reference, target.sourceEntityName != mapping.sourceEntityName {
      throw Self.invalid(
        mapping, name,
        "entity mapping \"\(printable(other))\" reads another entity, so that it makes nothing of this record",
        hint: "Name an entity mapping that reads \(printable(mapping.sourceEntityName ?? "the same entity")).")
    }
    if let made = target.destinationEntityName, let wanted = new.relationship?.destinationEntityName,
      !layout.destinationSide.isKind(made, of: wanted)
    {
      throw Self.invalid(
        mapping, name,
        "it leads to \(printable(wanted)), and entity mapping \"\(printable(other))\" makes \(printable(made))")
    }
  }

  /// `entity mapping "PersonToAddress" (Person → Address), property street`.
  static func place(_ mapping: EntityMapping, _ property: String?) -> String {
    let way =
      "\(printable(mapping.sourceEntityName ?? "nothing")) → \(printable(mapping.destinationEntityName ?? "nothing"))"
    return "entity mapping \"\(printable(mapping.name))\" (\(way))"
      + (property.map { ", property \(printable($0))" } ?? "")
  }

  static func invalid(
    _ mapping: EntityMapping, _ property: String?, _ detail: String, hint: String? = nil,
    isUnsupported: Bool = false
  ) -> MigrationError {
    MigrationError(
      isUnsupported ? .expressionUnsupported : .mappingInvalid, operation: "prepare the mapping",
      detail: "\(place(mapping, property)): \(detail)", hint: hint ?? "Correct the mapping.",
      entityName: mapping.destinationEntityName ?? mapping.sourceEntityName, propertyName: property)
  }
}
