internal import ManagedObjectModel
internal import Platform

/// The text output of `model diff`, by default in 100 columns.
public struct MappingListing: Sendable {
  /// The lines.
  public private(set) var lines: [String] = []

  private let width: Int
  private let bySource: [String: EntityMapping]
  private let byDestination: [String: EntityMapping]

  /// Lists the mapping, losses, conditions and refusals.
  public init(_ inference: MappingInference, from source: String, to destination: String, width: Int = 100) {
    self.width = max(40, width)
    let mapping = inference.mapping
    bySource = mapping.mappingsBySource
    byDestination = mapping.mappingsByDestination
    lines.append("\(printable(source)) → \(printable(destination)): \(Self.verdict(inference))")
    addEntities(inference)
    section("Lost", mapping.losses.withoutInherited().map(\.text))
    section("Depends on the data", mapping.conditionsWithoutInherited.map(\.text))
    guard !inference.refusals.isEmpty else { return }
    lines += ["", "Refused"]
    for refusal in inference.refusals {
      add(refusal.detail, indent: "  ", hanging: "    ")
      add("Core Data says: \(refusal.reason) (\(refusal.coreDataCode))", indent: "    ", hanging: "      ")
      add("Way round: \(refusal.wayRound)", indent: "    ", hanging: "      ")
    }
  }

  /// The lines with line feeds.
  public var text: String { lines.map { $0 + "\n" }.joined() }

  private static func verdict(_ inference: MappingInference) -> String {
    let mapping = inference.mapping
    if !inference.refusals.isEmpty { return "cannot be migrated without a custom mapping" }
    if mapping.sourceHashes == mapping.destinationHashes { return "the same in what is stored; nothing to migrate" }
    if !mapping.losses.isEmpty { return "can be migrated, and data is lost" }
    return mapping.conditions.isEmpty ? "can be migrated" : "can be migrated, if the data allows"
  }

  private mutating func addEntities(_ inference: MappingInference) {
    let mapping = inference.mapping
    let refused = Set(inference.refusals.map { "\($0.entityName).\($0.property?.description ?? "")" })
    var unchanged = 0
    var lines: [String] = []
    for entity in mapping.entityMappings {
      let name = printable(entity.destinationEntityName ?? entity.sourceEntityName ?? "")
      switch entity.kind {
      case .add: lines.append("  + \(name)  new")
      case .remove: lines.append("  - \(name)  removed")
      case .copy, .transform, .custom, .undefined:
        let details = details(of: entity, in: mapping, refused)
        let isRenamed = entity.sourceEntityName != entity.destinationEntityName
        guard isRenamed || !details.isEmpty else {
          unchanged += 1
          continue
        }
        lines.append("  ~ \(name)\(isRenamed ? "  (before: \(printable(entity.sourceEntityName ?? "")))" : "")")
        lines += details
      }
    }
    guard !mapping.entityMappings.isEmpty else { return }
    self.lines += ["", "Entities"]
    for line in lines { add(line.drop { $0 == " " }, indent: line.prefix { $0 == " " }, hanging: "          ") }
    if unchanged > 0 { self.lines.append("  \(unchanged) \(lines.isEmpty ? "" : "more ")with records as they were") }
  }

  private func details(of entity: EntityMapping, in mapping: MappingModel, _ refused: Set<String>) -> [String] {
    guard let origin = entity.sourceEntityName, let name = entity.destinationEntityName,
      let before = mapping.source.entities[origin], let after = mapping.destination.entities[name]
    else { return [] }
    var lines: [String] = []
    if before.isAbstract != after.isAbstract {
      lines.append(after.isAbstract ? "becomes abstract" : "is abstract no more")
    }
    let parent = before.parentName.map { old in bySource[old]?.destinationEntityName ?? "\(old), which is removed" }
    if parent != after.parentName {
      lines.append("parent: \(printable(parent ?? "none")) → \(printable(after.parentName ?? "none"))")
    }
    let (old, new) = (mapping.source.properties(of: origin), mapping.destination.properties(of: name))
    for property in entity.propertyMappings {
      let inherited = new[property.destination.name]
      if let declaring = inherited?.declaringEntityName, declaring != name,
        byDestination[declaring]?.propertyMapping(of: property.destination) == property
      {
        continue
      }
      if refused.contains("\(name).\(property.destination)") {
        lines.append("! \(printable(property.destination.description))  refused, see below")
        continue
      }
      if let words = words(for: property, old[property.source?.name ?? ""]?.property, inherited?.property) {
        lines.append(words)
      }
    }
    let used = Set(entity.propertyMappings.compactMap(\.source?.name))
    let stored = old.filter { !used.contains($0.key) && $0.value.declaringEntityName == origin }
    for (name, property) in stored.sorted(by: { precedesByCodeUnit($0.key, $1.key) }) {
      if case .fetchedProperty = property.property { continue }
      if property.property.traits.isTransient || new[name].map({ $0.property.attribute?.isDerived ?? false }) == true {
        continue
      }
      lines.append("- \(printable(name))")
    }
    return lines.map { "      " + $0 }
  }

  private func words(for mapping: PropertyMapping, _ old: Property?, _ new: Property?) -> String? {
    let name = printable(mapping.destination.description)
    var notes: [String] = []
    var sign = "~"
    switch mapping.value {
    case .copy(let source), .externalize(let source):
      if source != mapping.destination { notes.append("before: \(printable(source.description))") }
      if case .externalize = mapping.value { notes.append("external storage on") }
      if let old = old?.attribute?.type, let new = new?.attribute?.type, old != new {
        notes.append("\(old.sourceName) → \(new.sourceName)")
      }
    case .convert(let source, let from, let to):
      if source != mapping.destination { notes.append("before: \(printable(source.description))") }
      notes.append("\(from.sourceName) → \(to.sourceName)")
    case .relationship(let source):
      if PropertyPath(source) != mapping.destination { notes.append("before: \(printable(source))") }
      if let old = old?.relationship, let new = new?.relationship {
        if old.isToMany != new.isToMany { notes.append("to-one → to-many") }
        if old.isOrdered != new.isOrdered { notes.append(new.isOrdered ? "ordered" : "not ordered any more") }
        let image = bySource[old.destinationEntityName]?.destinationEntityName
        if image != new.destinationEntityName {
          notes.append(
            "\(printable(old.destinationEntityName)) → \(printable(new.destinationEntityName))")
        }
      }
    case .defaultValue:
      sign = "+"
      notes.append("new, with its default")
    case .null:
      sign = "+"
      let isMandatory = new.map { !$0.traits.isOptional } ?? false
      let what = new?.relationship == nil ? "empty" : "leads nowhere"
      notes.append(isMandatory ? "new, mandatory and \(what)" : "new, \(what)")
    case .inverse:
      sign = "+"
      notes.append("new, filled by its inverse")
    case .recompute:
      if let attribute = old?.attribute, attribute.isDerived { return nil }
      notes.append("derived, computed again")
    case .destinations(let mapping, _): notes.append("what \(printable(mapping)) makes")
    case .expression: notes.append("from an expression")
    }
    if let old, let new, old.traits.isOptional, !new.traits.isOptional, !mapping.replacesNilWithDefault {
      notes.append("becomes mandatory")
    }
    if mapping.replacesNilWithDefault { notes.append("mandatory: nil becomes the default") }
    return notes.isEmpty ? nil : "\(sign) \(name)  \(notes.joined(separator: "; "))"
  }

  private mutating func section(_ title: String, _ items: [String]) {
    guard !items.isEmpty else { return }
    lines += ["", title]
    for item in items { add(item, indent: "  ", hanging: "    ") }
  }

  private mutating func add(_ text: some StringProtocol, indent: some StringProtocol, hanging: String) {
    lines += Self.wrapped(text, indent: String(indent), hanging: hanging, width)
  }

  /// Wraps text at words; a longer word gets its own line.
  static func wrapped(_ text: some StringProtocol, indent: String, hanging: String, _ width: Int) -> [String] {
    var lines: [String] = []
    var line = indent
    var isEmpty = true
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      if !isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = hanging
        isEmpty = true
      }
      line += isEmpty ? String(word) : " \(word)"
      isEmpty = false
    }
    return lines + [line]
  }
}
