import Backup

/// Which records are taken out of a backup.
package struct EntitySelection: Sendable, Hashable {
  /// The names of entities; those that inherit from one of them are meant too.
  package var entities: [String]

  /// The primary keys of the records; nil for all.
  package var primaryKeys: [Int64]?

  /// A selection.
  package init(entities: [String], primaryKeys: [Int64]? = nil) {
    self.entities = entities
    self.primaryKeys = primaryKeys
  }
}
