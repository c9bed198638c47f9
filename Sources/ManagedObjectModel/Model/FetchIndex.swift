/// A fetch index of an entity.
public struct FetchIndex: Sendable, Hashable {
  public var name: String
  public var elements: [FetchIndexElement]

  /// The filter of a partial index, in predicate format.
  public var partialIndexPredicate: String?

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
  public var kind: Kind
  public var isAscending: Bool

  public init(propertyName: String?, expression: String? = nil, kind: Kind = .binary, isAscending: Bool = true) {
    self.propertyName = propertyName
    self.expression = expression
    self.kind = kind
    self.isAscending = isAscending
  }
}
