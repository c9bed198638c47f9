internal import Foundation
internal import ManagedObjectModel
internal import Platform

extension MappingFileBuilder {
  /// Adds an entity mapping of the file over the one inferred for its two entities.
  mutating func add(
    _ entity: MappingFile.Entity, _ base: InferenceBuilder, _ pairs: [(destination: String, source: String)]
  ) throws {
    var builder = base
    let others = pairs.filter { $0 != (entity.destination, entity.source) }
    var mapping =
      builder.map(entity.destination, from: entity.source, others: others)
      ?? EntityMapping(name: "", kind: .custom, source: entity.source, destination: entity.destination)
    mapping.name = entity.name ?? "\(entity.source)To\(entity.destination)"
    mapping.kind = .custom
    mapping.policyClassName = entity.policyClassName
    mapping.sourceFilter = entity.filter.map { .sql($0) }
    mapping.userInfo = entity.userInfo
    if entity.rest == .none {
      mapping.propertyMappings = mapping.propertyMappings.map(Self.withDefault(builder, entity))
    }
    if mappings.contains(where: { $0.name == mapping.name }) {
      throw invalid(
        entity.name == nil ? entity.place : "\(entity.place).name",
        "another entity mapping has the name \"\(printable(mapping.name))\"", hint: "Give it a name of its own.")
    }
    let given = try apply(entity, to: &mapping, builder)
    mappings.append(mapping)
    refusals += builder.refusals.filter { refusal in
      entity.rest == .infer && refusal.property.map { !given.contains($0) } ?? false
    }
    conditions += builder.conditions.filter { condition in
      guard condition.destinationEntityName == entity.destination, condition.kind != .recordsOfAbstractEntity else {
        return condition.destinationEntityName == entity.destination
      }
      if condition.kind == .duplicateValues { return true }
      // Filtered records must not count; the rest is checked once made.
      guard entity.filter == nil || condition.effect == .loses, entity.rest == .infer else { return false }
      return condition.destinationProperty.map { !given.contains($0) } ?? true
    }
    losses[entity.source, default: []].append(
      Set(builder.losses.filter { $0.sourceEntityName == entity.source && $0.kind != .removedEntity }))
  }

  private static func withDefault(
    _ builder: InferenceBuilder, _ entity: MappingFile.Entity
  ) -> (PropertyMapping) -> PropertyMapping {
    { mapping in
      let property = builder.destination.property(mapping.destination, of: entity.destination)
      guard let attribute = property?.attribute else { return PropertyMapping(mapping.destination, .null) }
      return InferenceBuilder.newMapping(mapping.destination, attribute)
    }
  }

  private func apply(
    _ entity: MappingFile.Entity, to mapping: inout EntityMapping, _ builder: InferenceBuilder
  ) throws -> Set<PropertyPath> {
    let known = builder.destination.properties[entity.destination] ?? []
    let old = builder.source.properties[entity.source] ?? []
    var given: Set<PropertyPath> = []
    func find(
      _ name: String, _ list: [StoredProperty], _ isAttribute: Bool, _ place: String, _ owner: String
    ) throws -> StoredProperty {
      let fitting = list.filter { ($0.attribute != nil) == isAttribute }
      if let found = fitting.first(where: { $0.path.description == name }) { return found }
      throw invalid(
        place, "\(printable(owner)) has no stored \(isAttribute ? "attribute" : "relationship") \"\(printable(name))\"",
        hint: NameSuggestion.hint(
          for: name, among: fitting.map(\.path.description),
          "\(isAttribute ? "attributes" : "relationships") of \(printable(owner))"))
    }
    func put(_ path: PropertyPath, _ value: PropertyMapping.Value, replacesNil: Bool = false) {
      given.insert(path)
      let new = PropertyMapping(path, value, replacesNilWithDefault: replacesNil)
      if let index = mapping.propertyMappings.firstIndex(where: { $0.destination == path }) {
        mapping.propertyMappings[index] = new
      } else {
        mapping.propertyMappings.append(new)
      }
    }
    for (name, content, place) in entity.attributes {
      let new = try find(name, known, true, place, entity.destination)
      switch content {
      case .sql(let text): put(new.path, .expression(.sql(text)))
      case .copy(let other):
        put(new.path, try copy(try find(other, old, true, place, entity.source), new, place))
      case .constant(let node):
        let constant = MappingConstant(node: node, type: new.attribute?.type ?? .undefined)
        guard let literal = constant.literal else {
          throw MappingFile.invalid(file.path, place, max(node.line, 1), constant.detail, hint: constant.hint)
        }
        put(new.path, .expression(.sql(literal)))
      case .defaultValue: put(new.path, .defaultValue)
      case .null: put(new.path, .null)
      }
    }
    for (name, content, place) in entity.relationships {
      let new = try find(name, known, false, place, entity.destination)
      switch content {
      case .relationship(let other):
        put(new.path, .relationship(try find(other, old, false, place, entity.source).path.name))
      case .madeBy(let other, let through):
        let reference = try through.map { name in
          PropertyMapping.SourceReference.relationship(try find(name, old, false, place, entity.source).path.name)
        }
        put(new.path, .destinations(mapping: other, of: reference ?? .record))
      case .inverse: put(new.path, .inverse)
      case .null: put(new.path, .null)
      }
    }
    return given
  }

  private func copy(_ old: StoredProperty, _ new: StoredProperty, _ place: String) throws -> PropertyMapping.Value {
    guard let before = old.attribute?.type, let after = new.attribute?.type else { return .null }
    switch (old.isMarked, new.isMarked) {
    case (true, false):
      throw invalid(place, "\(printable(old.path.description)) has external storage, and the new attribute has not")
    case (false, true) where before == after: return .externalize(old.path)
    default: break
    }
    if before == after { return .copy(old.path) }
    if before.isNumeric, after.isNumeric { return .convert(old.path, from: before, to: after) }
    throw invalid(
      place, "a value of type \(before.sourceName) cannot be copied into one of type \(after.sourceName)",
      hint: "Write an SQL expression that converts it.")
  }

  /// Resolves entity names after `madeBy`.
  mutating func nameDestinations() throws {
    for index in mappings.indices {
      for place in mappings[index].propertyMappings.indices {
        guard case .destinations(let name, let reference) = mappings[index].propertyMappings[place].value,
          !mappings.contains(where: { $0.name == name })
        else { continue }
        var origin: Set<String> = []
        switch reference {
        case .record: origin = [mappings[index].sourceEntityName ?? ""]
        case .relationship(let relationship):
          let target = source.properties(of: mappings[index].sourceEntityName ?? "")[relationship]?.property
            .relationship?.destinationEntityName
          if let target { origin = source.descendantNames(of: target).union([target]) }
        }
        let fitting = mappings.filter { $0.destinationEntityName == name && origin.contains($0.sourceEntityName ?? "") }
        let property = mappings[index].propertyMappings[place].destination.description
        let at = file.entities.lazy.flatMap(\.relationships).first { $0.name == property }?.place ?? "$.entities"
        guard fitting.count == 1, let only = fitting.first else {
          throw invalid(
            at,
            "\(fitting.isEmpty ? "no" : "more than one") entity mapping that reads "
              + "\(origin.sorted().map(printable).joined(separator: ", ")) is called or makes \"\(printable(name))\"",
            hint: NameSuggestion.hint(
              for: name, among: mappings.filter { $0.destinationEntityName != nil }.map(\.name), "entity mappings"))
        }
        mappings[index].propertyMappings[place].value = .destinations(mapping: only.name, of: reference)
      }
    }
  }
}

struct MappingConstant {
  let node: JSONTree
  let type: AttributeType

  var detail: String { "\(node.kindName) is no constant for the type \(type.sourceName), or not this one" }

  var hint: String {
    switch type {
    case .integer16: "Write a whole number from -32768 to 32767."
    case .integer32: "Write a whole number from -2147483648 to 2147483647."
    case .integer64: "Write a whole number from -9223372036854775808 to 9223372036854775807."
    case .boolean: "Write true or false."
    case .decimal, .double, .float: "Write a number that the type has room for."
    case .date: "Write a time such as \"2026-01-31T12:00:00Z\", or seconds since 2001-01-01T00:00:00Z."
    case .string: "Write a text without a character of the number 0."
    case .uri: "Write a URI such as \"https://example.org/a%20b\", other characters than its own as %20."
    case .uuid: "Write a UUID such as \"6ba7b810-9dad-11d1-80b4-00c04fd430c8\"."
    case .binary: "Write the bytes in base 64, such as \"AAEC\"."
    case .transformable, .undefined, .objectID, .composite: "Only null can be written for it."
    }
  }

  var literal: String? {
    switch node.value {
    case .null: "NULL"
    case .boolean(let flag): type == .boolean ? AttributeValue.boolean(flag).literal(isMarked: false) : nil
    case .number(let digits): number(digits)?.literal(isMarked: false)
    case .string(let text): text.unicodeScalars.contains("\0") ? nil : value(text)?.literal(isMarked: false)
    case .array, .object: nil
    }
  }

  private func number(_ digits: String) -> AttributeValue? {
    switch type {
    case .integer16: return Int16(digits).map { .integer(Int64($0)) }
    case .integer32: return Int32(digits).map { .integer(Int64($0)) }
    case .integer64: return Int64(digits).map { .integer($0) }
    case .double: return Double(digits).flatMap { $0.isFinite ? .real($0) : nil }
    case .float: return Float(digits).flatMap { $0.isFinite ? Double(digits).map(AttributeValue.real) : nil }
    case .date: return Double(digits).flatMap { $0.isFinite ? .date($0) : nil }
    // Too many digits or too large an exponent.
    case .decimal: return Double(digits).flatMap { $0.isFinite && abs($0) < 1e127 ? .decimal(digits) : nil }
    case .undefined, .string, .boolean, .binary, .uuid, .uri, .transformable, .objectID, .composite: return nil
    }
  }

  private func value(_ text: String) -> AttributeValue? {
    switch type {
    case .string: return .string(text)
    case .uri: return Self.isURI(text) ? .uri(text) : nil
    case .uuid: return Self.uuid(text).map(AttributeValue.uuid)
    case .binary: return Data(base64Encoded: text).map { .data(Array($0)) }
    case .date:
      // Only a real calendar date is written back unchanged.
      guard let time = Timestamp(text), time.rfc3339 == text else { return nil }
      return .date(time.secondsSinceReferenceDate)
    case .undefined, .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean, .transformable, .objectID,
      .composite:
      return nil
    }
  }

  static func uuid(_ text: String) -> [UInt8]? {
    let groups = text.split(separator: "-", omittingEmptySubsequences: false)
    guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12] else { return nil }
    return [UInt8](hexadecimal: groups.joined())
  }

  /// Whether it has only URI characters (RFC 3986).
  private static func isURI(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%".utf8)
    guard !bytes.isEmpty, bytes.allSatisfy(allowed.contains), bytes.count(where: { $0 == UInt8(ascii: "#") }) < 2 else {
      return false
    }
    return bytes.indices.allSatisfy { place in
      guard bytes[place] == UInt8(ascii: "%") else { return true }
      let pair = bytes[(place + 1)...].prefix(2)
      return pair.count == 2 && pair.allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
    }
  }
}
