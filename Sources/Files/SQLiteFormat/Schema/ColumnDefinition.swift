/// A column of a table, as its `CREATE TABLE` statement declares it.
public struct ColumnDefinition: Sendable, Hashable {
  /// How a generated column gets its value.
  public enum Generation: String, Sendable, Hashable {
    /// Computed when read; it is not in the record.
    case virtual

    /// Computed when written; it is in the record.
    case stored
  }

  /// The name.
  public var name: String

  /// The declared type as written, words separated by one space; empty where there is none.
  public var declaredType: String

  /// Whether it is declared NOT NULL.
  public var isNotNull = false

  /// Whether it is, or is a part of, the primary key.
  public var isPrimaryKey = false

  /// Whether it is declared UNIQUE by itself.
  public var isUnique = false

  /// The collation's name, where one is declared.
  public var collation: String?

  /// The default, where it is a plain literal; text is in UTF-8.
  public var defaultValue: Value?

  /// Whether it has a default, be it one that cannot be read here.
  public var hasDefault = false

  /// How it is generated, where it is.
  public var generation: Generation?

  /// The table whose rows it refers to, where a foreign key of this column alone is declared.
  public var referencedTable: String?

  /// The affinity of the declared type.
  public var affinity: Affinity { Affinity(declaredType: declaredType) }
}
