public import PersistentStore

/// A record of a Core Data store.
public struct Record: Sendable, Hashable {
  /// The entity it is of: the one asked for or one that inherits from it.
  public var entityName: String

  /// Its primary key, unique in its hierarchy of entities.
  public var primaryKey: Int64

  /// The values of its attributes by name; those of composites by path (`place.latitude`).
  public var values: [String: RecordValue]

  /// What its to-one relationships lead to, by name; relationships that lead nowhere are left out.
  public var toOne: [String: RecordReference]

  /// Creates a record.
  public init(
    entityName: String, primaryKey: Int64, values: [String: RecordValue], toOne: [String: RecordReference]
  ) {
    self.entityName = entityName
    self.primaryKey = primaryKey
    self.values = values
    self.toOne = toOne
  }
}

/// What a relationship leads to.
public struct RecordReference: Sendable, Hashable {
  /// The entity as far as the store tells: the destination's own where it is stored or there is only one, else nil.
  public var entityName: String?

  /// The primary key of the destination.
  public var primaryKey: Int64

  /// Refers to a record.
  public init(entityName: String?, primaryKey: Int64) {
    self.entityName = entityName
    self.primaryKey = primaryKey
  }
}
