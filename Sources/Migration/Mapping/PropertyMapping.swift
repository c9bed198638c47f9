public import ManagedObjectModel

/// The source of a destination property's value.
public struct PropertyMapping: Sendable, Hashable {
  /// The source of a value.
  public enum Value: Sendable, Hashable {
    /// A source attribute's value, byte for byte.
    case copy(PropertyPath)

    /// A source attribute's number as another type.
    case convert(PropertyPath, from: AttributeType, to: AttributeType)

    /// A source attribute's value with the marker byte `0x01` of new external storage, unless nil (format section 3.7).
    case externalize(PropertyPath)

    case defaultValue

    /// Nil, or an empty relationship.
    case null

    /// A derived attribute, recomputed from the migrated records.
    case recompute

    /// The migrated destinations of a source relationship; cardinality and order follow both models.
    case relationship(String)

    /// A new relationship, filled from its existing inverse.
    case inverse

    /// An entity mapping's results for this record or its related ones.
    ///
    /// It connects the parts of a split record: `PersonToPerson` gives `address` the value `.destinations(mapping:
    /// "PersonToAddress", of: .record)`. A to-one takes the lowest primary key.
    case destinations(mapping: String, of: SourceReference)

    case expression(MappingExpression)
  }

  /// The source records meant by `destinations`.
  public enum SourceReference: Sendable, Hashable {
    case record

    case relationship(String)
  }

  /// The destination property or composite leaf.
  public var destination: PropertyPath

  /// The source of the value.
  public var value: Value

  /// Whether the destination's default replaces nil, because the attribute has become mandatory.
  public var replacesNilWithDefault: Bool

  /// Free text for custom steps.
  public var userInfo: [String: String]

  /// Makes a property mapping.
  public init(
    _ destination: PropertyPath, _ value: Value, replacesNilWithDefault: Bool = false, userInfo: [String: String] = [:]
  ) {
    self.destination = destination
    self.value = value
    self.replacesNilWithDefault = replacesNilWithDefault
    self.userInfo = userInfo
  }

  /// The source property; nil without one or for an expression.
  public var source: PropertyPath? {
    switch value {
    case .copy(let path), .convert(let path, _, _), .externalize(let path): path
    case .relationship(let name), .destinations(_, of: .relationship(let name)): PropertyPath(name)
    case .defaultValue, .null, .recompute, .inverse, .destinations, .expression: nil
    }
  }

  /// Whether it copies a property of the same name, without any change to the store.
  public var isIdentity: Bool {
    switch value {
    case .copy(let path): path == destination && !replacesNilWithDefault
    case .relationship(let name): destination == PropertyPath(name)
    case .recompute: true
    case .convert, .externalize, .defaultValue, .null, .inverse, .destinations, .expression: false
    }
  }

  /// Whether all values stay, nil included.
  var keepsValues: Bool {
    switch value {
    case .copy, .relationship: !replacesNilWithDefault
    case .convert, .externalize, .defaultValue, .null, .recompute, .inverse, .destinations, .expression: false
    }
  }
}

extension PropertyMapping.Value {
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

/// A custom mapping's expression, as written.
public enum MappingExpression: Sendable, Hashable {
  /// SQL over the source attributes' model names.
  case sql(String)

  /// Core Data's format with `$source`, `$manager` and so on (format section 5.5).
  case coreData(String)
}

/// The path of a property or composite leaf.
///
/// It is written as in Core Data: `address.city`.
public struct PropertyPath: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The property's name.
  public var name: String

  /// The names from a composite attribute to its leaf; else empty.
  public var leaf: [String]

  /// Makes the path of a property or leaf.
  public init(_ name: String, leaf: [String] = []) {
    self.name = name
    self.leaf = leaf
  }

  /// Makes the path of a plain property.
  public init(stringLiteral name: String) { self.init(name) }

  /// The names, joined by points.
  public var description: String { ([name] + leaf).joined(separator: ".") }
}
