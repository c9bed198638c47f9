package import ManagedObjectModel

/// A column of a collection: a property of an entity, or a column of a plain table.
package struct RecordColumn: Sendable, Hashable {
  /// What a column holds.
  package enum Kind: Sendable, Hashable {
    /// The primary key of the record itself.
    case key

    /// The number of the record's own entity.
    case entity

    /// The value of an attribute; marked where values may lie in files beside the store.
    case attribute(AttributeType, isMarked: Bool)

    /// The primary key of another record, of that entity or of one that inherits from it.
    case toOne(destination: String)

    case stored(declaredType: String)
  }

  /// The name of the property, of a composite's leaf by its path, or of the column of a plain table.
  package var name: String

  /// What it holds.
  package var kind: Kind

  /// The column as it stands in SQL.
  package var sql: String

  /// The column with the entity number of a to-one relationship's destination, as it stands in SQL, where there is one.
  package var entitySQL: String?

  /// Whether text can be looked for in it.
  package var isText: Bool {
    switch kind {
    case .attribute(.string, _), .attribute(.uri, _): true
    case .stored(let type):
      // SQLite's rules of affinity: these hold text; a column without a type may hold anything.
      type.isEmpty || ["CHAR", "CLOB", "TEXT"].contains { type.uppercased().contains($0) }
    case .key, .entity, .attribute, .toOne: false
    }
  }

  /// Whether it holds dates, which can be counted by year and month.
  package var isDate: Bool {
    if case .attribute(.date, _) = kind { true } else { false }
  }

  /// Whether it holds numbers, which can be counted in ranges.
  package var isNumeric: Bool {
    switch kind {
    case .attribute(.integer16, _), .attribute(.integer32, _), .attribute(.integer64, _), .attribute(.double, _),
      .attribute(.float, _), .attribute(.decimal, _):
      true
    case .stored(let type):
      // SQLite's rules of affinity (https://sqlite.org/datatype3.html): text that is compared becomes a number by these.
      !isText && ["INT", "REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"].contains { type.uppercased().contains($0) }
    case .key, .entity, .attribute, .toOne: false
    }
  }

  /// Whether it holds bytes, which can neither be sorted nor compared usefully.
  package var isBinary: Bool {
    switch kind {
    case .attribute(.binary, _), .attribute(.transformable, _): true
    case .attribute, .key, .entity, .toOne, .stored: false
    }
  }

  /// Whether its values may be bytes of any number.
  var mayHoldBytes: Bool {
    switch kind {
    case .stored: true
    case .attribute, .key, .entity, .toOne: isBinary
    }
  }

  /// The word for its type, such as `string`, `date` or `to-one`.
  package var typeName: String {
    switch kind {
    case .key: "key"
    case .entity: "entity"
    case .toOne: "to-one"
    case .stored(let type): type.isEmpty ? "any" : type.lowercased()
    case .attribute(let type, _):
      switch type {
      case .integer16, .integer32, .integer64: "integer"
      case .decimal: "decimal"
      case .double, .float: "real"
      case .string: "string"
      case .boolean: "boolean"
      case .date: "date"
      case .binary: "binary"
      case .uuid: "uuid"
      case .uri: "uri"
      case .transformable: "transformable"
      case .composite: "composite"
      case .objectID: "object-identifier"
      case .undefined: "undefined"
      }
    }
  }
}
