package import ManagedObjectModel

/// A column of a collection: an entity's property or a table column.
package struct RecordColumn: Sendable, Hashable {
  package enum Kind: Sendable, Hashable {
    case key

    case entity

    /// An attribute's value; marked if it may be external.
    case attribute(AttributeType, isMarked: Bool)

    /// The primary key of a record of that entity or a subentity.
    case toOne(destination: String)

    case stored(declaredType: String)
  }

  /// The property (a composite leaf's path) or column.
  package var name: String

  package var kind: Kind

  package var sql: String

  /// The SQL column with the destination's entity number.
  var entitySQL: String?

  package var isText: Bool {
    switch kind {
    case .attribute(.string, _), .attribute(.uri, _): true
    case .stored(let type):
      // SQLite's affinity rules; an untyped column may hold anything.
      type.isEmpty || ["CHAR", "CLOB", "TEXT"].contains { type.uppercased().contains($0) }
    case .key, .entity, .attribute, .toOne: false
    }
  }

  package var isDate: Bool {
    if case .attribute(.date, _) = kind { true } else { false }
  }

  package var isNumeric: Bool {
    switch kind {
    case .attribute(.integer16, _), .attribute(.integer32, _), .attribute(.integer64, _), .attribute(.double, _),
      .attribute(.float, _), .attribute(.decimal, _):
      true
    case .stored(let type):
      // SQLite's affinity rules (https://sqlite.org/datatype3.html): with these types compared text becomes a number.
      !isText && ["INT", "REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"].contains { type.uppercased().contains($0) }
    case .key, .entity, .attribute, .toOne: false
    }
  }

  /// Whether it holds bytes, which don't usefully sort or compare.
  package var isBinary: Bool {
    switch kind {
    case .attribute(.binary, _), .attribute(.transformable, _): true
    case .attribute, .key, .entity, .toOne, .stored: false
    }
  }

  var mayHoldBytes: Bool {
    switch kind {
    case .stored: true
    case .attribute, .key, .entity, .toOne: isBinary
    }
  }

  /// The name of the type, such as `string`, `date` or `to-one`.
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
