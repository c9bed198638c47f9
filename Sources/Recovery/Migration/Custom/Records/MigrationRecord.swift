public import PersistentStore

/// A record in a custom step: its values by the names of the model, without any class of the app.
///
/// Records of the source are read only. What is changed in a record of the destination is written when the stage's call
/// returns, or earlier.
public final class MigrationRecord {
  /// What tells a record from all others of its side.
  public struct ID: Sendable, Hashable {
    /// The entity it is of.
    public let entityName: String

    /// Its primary key, unique in its hierarchy of entities.
    public let primaryKey: Int64
  }

  /// What tells it from all others.
  public let id: ID

  /// The values of its attributes by name; those of composites by path (`place.latitude`).
  public internal(set) var values: [String: RecordValue]

  let records: RecordAccess
  var isNew: Bool
  var isDirty = false

  init(_ id: ID, values: [String: RecordValue], in records: RecordAccess, isNew: Bool = false) {
    self.id = id
    self.values = values
    self.records = records
    self.isNew = isNew
  }

  /// The entity it is of.
  public var entityName: String { id.entityName }

  /// Its primary key, unique in its hierarchy of entities.
  public var primaryKey: Int64 { id.primaryKey }

  /// The value of an attribute; `null` for nil.
  ///
  /// A name that the entity does not have, and a change of a record of the source, make the step fail.
  public subscript(name: String) -> RecordValue {
    get {
      if let value = values[name] { return value }
      records.noteUnknown(name, of: entityName)
      return .null
    }
    set {
      guard records.allowsChange(of: name, in: entityName) else { return }
      values[name] = newValue
      records.noteChange(of: self)
    }
  }
}
