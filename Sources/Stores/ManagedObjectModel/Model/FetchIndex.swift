/// A fetch index of an entity.
public struct FetchIndex: Sendable, Hashable {
  /// The name, unique within the entity.
  public var name: String

  /// The columns, the most significant first.
  public var elements: [FetchIndexElement]

  /// The filter of a partial index, in predicate format.
  public var partialIndexPredicate: String?

  /// A fetch index.
  public init(name: String, elements: [FetchIndexElement], partialIndexPredicate: String? = nil) {
    self.name = name
    self.elements = elements
    self.partialIndexPredicate = partialIndexPredicate
  }
}

/// One column of a fetch index.
public struct FetchIndexElement: Sendable, Hashable {
  /// The kind of index; raw values are Core Data's own numbers (that of the R-tree is unverified).
  public enum Kind: Int, Sendable, Hashable {
    case binary = 0
    case rTree = 1
  }

  /// The property it indexes; nil for an expression.
  public var propertyName: String?

  /// The expression it indexes, in expression format, where it is not a property.
  public var expression: String?

  /// The kind of index it is part of.
  public var kind: Kind

  /// Whether it is sorted from small to large.
  public var isAscending: Bool

  /// A column of an index.
  public init(propertyName: String?, expression: String? = nil, kind: Kind = .binary, isAscending: Bool = true) {
    self.propertyName = propertyName
    self.expression = expression
    self.kind = kind
    self.isAscending = isAscending
  }
}
