internal import ManagedObjectModel
internal import Migration
internal import PersistentStore
internal import StoreRecords

/// What one attribute of a migrated record must hold, worked out from the record it was made of.
struct ValueExpectation {
  /// The values that are right, and whether the source's value is still the same.
  struct Expected {
    var values: [RecordValue]
    var isExact = true
  }

  private enum Rule {
    case copy(String)
    case convert(String, AttributeType)
    case constant(RecordValue)
    case unknown
  }

  /// The attribute of the destination, or the path of a leaf of a composite one.
  let name: String

  private let rule: Rule

  /// What takes the place of nil: nothing, a default, or one that only the app can make.
  private let replacement: Replacement

  private enum Replacement {
    case none, unknown
    case value(RecordValue)
  }

  /// Whether nothing can be said, because a custom step makes the value.
  var isUnknown: Bool { if case .unknown = rule { true } else { false } }

  /// The expectations for all attributes of the records that a mapping makes.
  static func all(of mapping: EntityMapping, _ old: StoreLayout, _ new: StoreLayout) throws -> [ValueExpectation] {
    guard let from = mapping.sourceEntityName, let to = mapping.destinationEntityName else { return [] }
    let (before, after) = (old.model.properties(of: from), new.model.properties(of: to))
    return mapping.propertyMappings.compactMap { property in
      guard let attribute = after[property.destination.name]?.property.attribute else { return nil }
      return ValueExpectation(
        property, leaf(property.destination, of: attribute), top: attribute, before: before)
    }
  }

  private init(
    _ mapping: PropertyMapping, _ attribute: Attribute, top: Attribute, before: [String: InheritedProperty]
  ) {
    name = mapping.destination.description
    let usual = attribute.defaultValue.map { RecordValue($0, type: attribute.type) } ?? .some(.null)
    replacement =
      mapping.replacesNilWithDefault ? usual.map { Replacement.value($0) } ?? Replacement.unknown : .none
    switch mapping.value {
    case .copy(let path), .externalize(let path): rule = .copy(path.description)
    case .convert(let path, _, let type): rule = .convert(path.description, type)
    case .defaultValue: rule = usual.map { Rule.constant($0) } ?? .unknown
    case .null: rule = .constant(.null)
    case .recompute: rule = Self.derivation(top, before)
    case .relationship, .inverse, .destinations, .expression: rule = .unknown
    }
  }

  /// A derived value is known where the source derives it in the same way from the record itself alone; those that follow
  /// relationships or the clock are checked elsewhere or not at all.
  private static func derivation(_ attribute: Attribute, _ before: [String: InheritedProperty]) -> Rule {
    guard let old = before[attribute.name]?.property.attribute, old.isDerived, old.type == attribute.type,
      old.derivationExpression == attribute.derivationExpression,
      old.filteringPredicate == attribute.filteringPredicate, let text = attribute.derivationExpression
    else { return .unknown }
    switch DerivationExpression(text) {
    case .now: return .copy(attribute.name)
    case .keyPath(let path) where path.count == 1: return .copy(attribute.name)
    case nil, .keyPath?, .function?: return .unknown
    }
  }

  private static func leaf(_ path: PropertyPath, of attribute: Attribute) -> Attribute {
    var current = attribute
    for name in path.leaf {
      guard let next = current.compositeElements.first(where: { $0.name == name }) else { return current }
      current = next
    }
    return current
  }

  /// What the attribute must hold; nil where nothing can be said.
  func expected(_ record: Record) -> Expected? {
    var expected: Expected
    switch rule {
    case .unknown: return nil
    case .constant(let value): expected = Expected(values: [value])
    case .copy(let path): expected = Expected(values: [record.values[path] ?? .null])
    case .convert(let path, let type):
      let value = record.values[path] ?? .null
      if let converted = ConvertedNumber(value, to: type) {
        expected = Expected(values: converted.accepted, isExact: converted.isExact)
      } else {
        // Nil stays nil; what is no number is none in the new type either, and nothing more can be said.
        guard value == .null else { return nil }
        expected = Expected(values: [.null])
      }
    }
    if expected.values == [.null] {
      switch replacement {
      case .none: break
      case .unknown: return nil
      case .value(let value): expected = Expected(values: [value])
      }
    }
    return expected
  }
}
