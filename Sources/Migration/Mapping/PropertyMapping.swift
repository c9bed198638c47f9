public import ManagedObjectModel

/// Where one property of the destination's records gets its value from.
public struct PropertyMapping: Sendable, Hashable {
  /// What the value of a property is made of.
  public enum Value: Sendable, Hashable {
    /// The value of an attribute of the source, byte for byte.
    case copy(PropertyPath)

    /// The number in an attribute of the source, as another type of number.
    case convert(PropertyPath, from: AttributeType, to: AttributeType)

    /// The value of an attribute of the source, which had no external storage and now has: the marker byte `0x01` is
    /// put before every value that is not nil (format section 3.7).
    case externalize(PropertyPath)

    /// The default value that the destination's model gives the attribute.
    case defaultValue

    /// Nil, or for a relationship no destinations.
    case null

    /// A derived attribute: computed again from the migrated records.
    case recompute

    /// The records that the destinations of the source's relationship became.
    ///
    /// Cardinality and order may have changed; both sides' models say how each is stored.
    case relationship(String)

    /// A relationship that is new and whose inverse is not: it is filled by the mapping of its inverse.
    case inverse

    /// The records that an entity mapping made of this very source record, or of those that a relationship leads to.
    ///
    /// Where one source record becomes several, this is how the parts find each other: `PersonToPerson` gives `address`
    /// the value `.destinations(mapping: "PersonToAddress", of: .record)`. Where the relationship of the destination is
    /// to-one and there are several, the one with the lowest primary key is taken.
    case destinations(mapping: String, of: SourceReference)

    /// An expression of a custom mapping.
    case expression(MappingExpression)
  }

  /// The records of the source whose destinations are meant.
  public enum SourceReference: Sendable, Hashable {
    case record

    /// The records that a relationship of it leads to, by name.
    case relationship(String)
  }

  /// The property of the destination; for composite attributes there is one mapping for each leaf.
  public var destination: PropertyPath

  /// What its value is made of.
  public var value: Value

  /// Whether the destination's default takes the place of nil: the attribute has become mandatory and has a default.
  public var replacesNilWithDefault: Bool

  /// Free text for custom steps.
  public var userInfo: [String: String]

  /// Maps one property.
  public init(
    _ destination: PropertyPath, _ value: Value, replacesNilWithDefault: Bool = false, userInfo: [String: String] = [:]
  ) {
    self.destination = destination
    self.value = value
    self.replacesNilWithDefault = replacesNilWithDefault
    self.userInfo = userInfo
  }

  /// The property of the source that it is made of; nil where there is none, or an expression decides.
  public var source: PropertyPath? {
    switch value {
    case .copy(let path), .convert(let path, _, _), .externalize(let path): path
    case .relationship(let name), .destinations(_, of: .relationship(let name)): PropertyPath(name)
    case .defaultValue, .null, .recompute, .inverse, .destinations, .expression: nil
    }
  }

  /// Whether it copies a property under the same name, so that a store need not change for it.
  public var isIdentity: Bool {
    switch value {
    case .copy(let path): path == destination && !replacesNilWithDefault
    case .relationship(let name): destination == PropertyPath(name)
    case .recompute: true
    case .convert, .externalize, .defaultValue, .null, .inverse, .destinations, .expression: false
    }
  }

  /// Whether every value stays what it is, and nil stays nil.
  var keepsValues: Bool {
    switch value {
    case .copy, .relationship: !replacesNilWithDefault
    case .convert, .externalize, .defaultValue, .null, .recompute, .inverse, .destinations, .expression: false
    }
  }
}

extension PropertyMapping.Value {
  /// The word that stands for it in JSON.
  package var word: String {
    switch self {
    case .copy: "copy"
    case .convert: "convert"
    case .externalize: "externalize"
    case .defaultValue: "default"
    case .null: "null"
    case .recompute: "recompute"
    case .relationship: "relationship"
    case .inverse: "inverse"
    case .destinations: "destinations"
    case .expression: "expression"
    }
  }
}

/// An expression of a custom mapping, as it was written.
public enum MappingExpression: Sendable, Hashable {
  /// An SQL expression over the attributes of the source, by their names in the model.
  case sql(String)

  /// An expression in Core Data's format, with the variables `$source`, `$manager` and so on (format section 5.5).
  case coreData(String)
}

/// A property of an entity, or one leaf of a composite attribute, by its names.
///
/// Written with points, as Core Data writes key paths: `address.city`.
public struct PropertyPath: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The name of the property of the entity.
  public var name: String

  /// The names that lead from a composite attribute to one of its leaves; empty for every other property.
  public var leaf: [String]

  /// A property, or a leaf of a composite attribute.
  public init(_ name: String, leaf: [String] = []) {
    self.name = name
    self.leaf = leaf
  }

  /// A property that is no composite, by its name.
  public init(stringLiteral name: String) { self.init(name) }

  /// The names, joined by points.
  public var description: String { ([name] + leaf).joined(separator: ".") }
}
