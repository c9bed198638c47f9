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
