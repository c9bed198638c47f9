package import ManagedObjectModel

/// What a store has besides its records: tables and columns, indexes, triggers and the bookkeeping, however it was read.
///
/// The examiner reads it from bytes, the repair engine through SQL; the comparison with a model is the same.
package struct StoreOutline: Sendable, Hashable {
  /// A column of a table.
  package struct Column: Sendable, Hashable {
    /// The name, as the table declares it.
    package var name: String

    /// The declared type, as it is written.
    package var declaredType: String

    /// Whether a row without a value for it is refused: not NULL, no default, not generated and not the rowid.
    package var isMandatory: Bool

    /// A column of these facts.
    package init(name: String, declaredType: String, isMandatory: Bool = false) {
      self.name = name
      self.declaredType = declaredType
      self.isMandatory = isMandatory
    }
  }

  /// A table; the inner tables of virtual ones may be among them.
  package struct Table: Sendable, Hashable {
    /// The name.
    package var name: String

    /// The columns; empty for a virtual table, whose columns its module knows.
    package var columns: [Column]

    /// Whether a module provides it.
    package var isVirtual: Bool

    /// The column that is the rowid by another name, an integer primary key; nil where there is none.
    package var rowidAlias: String?

    /// A table of these facts.
    package init(name: String, columns: [Column], isVirtual: Bool = false, rowidAlias: String? = nil) {
      self.name = name
      self.columns = columns
      self.isVirtual = isVirtual
      self.rowidAlias = rowidAlias
    }
  }

  /// An index, those that SQLite makes for keys and unique columns included.
  package struct Index: Sendable, Hashable {
    /// The name.
    package var name: String

    /// The table that it indexes.
    package var tableName: String

    /// Whether it allows each value once.
    package var isUnique: Bool

    /// Whether it has a condition, and so does not hold every row.
    package var isPartial: Bool

    /// The columns in their order; nil for an expression.
    package var columns: [String?]

    /// An index of these facts.
    package init(name: String, tableName: String, isUnique: Bool, isPartial: Bool, columns: [String?]) {
      self.name = name
      self.tableName = tableName
      self.isUnique = isUnique
      self.isPartial = isPartial
      self.columns = columns
    }
  }

  /// A row of `Z_PRIMARYKEY`.
  package struct KeyRow: Sendable, Hashable {
    /// `Z_ENT`.
    package var number: Int64

    /// `Z_NAME`; nil where it is no text.
    package var name: String?

    /// `Z_SUPER`; nil where it is no integer.
    package var parentNumber: Int64?

    /// `Z_MAX`; nil where it is no integer.
    package var maximum: Int64?

    /// A row of these values.
    package init(number: Int64, name: String?, parentNumber: Int64?, maximum: Int64?) {
      self.number = number
      self.name = name
      self.parentNumber = parentNumber
      self.maximum = maximum
    }
  }

  /// What `Z_MODELCACHE` holds.
  package enum CachedModel: Sendable, Hashable {
    /// Nothing, or there is no such table, as in old stores.
    case none

    /// Something that is no model.
    case unreadable

    /// A model of these version hashes.
    case model([String: VersionHash])
  }

  /// The tables.
  package var tables: [Table] = []

  /// The indexes.
  package var indexes: [Index] = []

  /// The names of triggers.
  package var triggers: [String] = []

  /// The names of views, which take names that tables could have.
  package var views: [String] = []

  /// The rows of `Z_PRIMARYKEY`; nil where they were not read, so that nothing is said of them.
  package var keyRows: [KeyRow]?

  /// The highest primary key of tables, under their upper-cased names; a table without rows or not looked at has none.
  package var highestKeys: [String: Int64] = [:]

  /// The entity numbers met in rows of tables, under their upper-cased names, as far as these were looked at.
  package var entityNumbers: [String: Set<Int64>] = [:]

  /// The tables with rows whose entity number is no integer, under their upper-cased names, as far as these were looked at.
  package var tablesWithoutNumbers: Set<String> = []

  /// The model that the store carries.
  package var cachedModel = CachedModel.none

  /// An outline without anything.
  package init() {}

  /// A table's or index's name as SQLite compares it: ASCII letters upper-cased.
  package static func key(_ name: String) -> String { String(decoding: NameAllocator.key(name), as: UTF8.self) }
}
