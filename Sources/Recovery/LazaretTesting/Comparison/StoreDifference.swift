internal import StoreFiles

/// One difference between two stores, or between a migrated store and what its mapping implies.
///
/// It names entity, record and property, and no values unless they are asked for.
public struct StoreDifference: Sendable, Hashable, Codable, CustomStringConvertible {
  /// What differs.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// A record of the first store is not in the second.
    case missingRecord = "missing-record"

    /// A record of the second store is not in the first.
    case extraRecord = "extra-record"

    /// An attribute has another value.
    case value

    /// A relationship does not lead to a record that it should lead to.
    case missingDestination = "missing-destination"

    /// A relationship leads to a record that it should not lead to.
    case extraDestination = "extra-destination"

    /// An ordered relationship leads to the same records in another order.
    case order

    /// A relationship leads to a record whose inverse does not lead back.
    case oneSided = "one-sided"

    /// A value lies in a file beside the store that is not there, or holds something else.
    case externalFile = "external-file"

    /// The store's identifier or its version hashes are not what they should be.
    case metadata
  }

  /// What differs.
  public var kind: Kind

  /// The entity of the second store; that of the first where only that has the record.
  ///
  /// Empty for metadata.
  public var entityName: String

  /// The record; nil for metadata.
  public var primaryKey: Int64?

  /// The property, by its name in the second store; nil where it is about the whole record.
  public var propertyName: String?

  /// The value in the first store, or the one expected; nil unless values were asked for.
  public var first: String?

  /// The value in the second store; nil unless values were asked for.
  public var second: String?

  /// A difference.
  public init(
    _ kind: Kind, entity: String, primaryKey: Int64?, property: String? = nil, first: String? = nil,
    second: String? = nil
  ) {
    self.kind = kind
    entityName = entity
    self.primaryKey = primaryKey
    propertyName = property
    self.first = first
    self.second = second
  }

  /// The difference on one line, such as `value Car 7 color`.
  public var description: String {
    var words = [kind.rawValue, printable(entityName), primaryKey.map { String($0) } ?? ""]
    words.append(propertyName.map { printable($0) } ?? "")
    if let first { words.append("first: \(printable(first))") }
    if let second { words.append("second: \(printable(second))") }
    return words.filter { !$0.isEmpty }.joined(separator: " ")
  }
}
