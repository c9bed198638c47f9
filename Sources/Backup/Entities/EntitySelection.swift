/// Which records are taken out of a backup.
public struct EntitySelection: Sendable, Hashable {
  /// The names of entities; those that inherit from one of them are meant too.
  public var entities: [String]

  /// The primary keys of the records; nil for all.
  public var primaryKeys: [Int64]?

  /// A selection.
  public init(entities: [String], primaryKeys: [Int64]? = nil) {
    self.entities = entities
    self.primaryKeys = primaryKeys
  }
}
