internal import Foundation
internal import GRDB
internal import PersistentStore
internal import Platform

/// The functions and keywords allowed in mapping expressions.
enum MappingFunctions {
  /// The functions of one record's values: SQLite's core, date, mathematical and JSON functions that are deterministic,
  /// have no side effects and use bounded memory.
  static let scalar: Set<String> = [
    "abs", "char", "coalesce", "format", "glob", "hex", "ifnull", "iif", "instr", "length", "like", "lower", "ltrim",
    "nullif", "octet_length", "printf", "quote", "replace", "round", "rtrim", "sign", "substr", "substring", "trim",
    "typeof", "unhex", "unicode", "upper", "date", "time", "datetime", "julianday", "strftime", "unixepoch", "timediff",
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "ceiling", "cos", "cosh", "degrees", "exp",
    "floor", "ln", "log", "log10", "log2", "mod", "pi", "pow", "power", "radians", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc", "json", "json_array", "json_array_length", "json_extract", "json_object", "json_quote", "json_type",
    "json_valid", "uuid_blob", "uuid_text", "nscoredatanow",
  ]

  /// The functions newer than SQLite 3.40.
  private static let recent: Set<String> = ["octet_length", "timediff", "unhex"]

  static let available: Set<String> = {
    do {
      let own = Set(additional.map { $0.name.lowercased() }).union(["nscoredatanow"])
      let names = try DatabaseQueue().read { database in
        try String.fetchSet(database, sql: "SELECT lower(name) FROM pragma_function_list")
      }
      return scalar.intersection(names.union(own))
    } catch {
      // This SQLite does not list its functions.
      return scalar.subtracting(recent)
    }
  }()

  /// The date functions with the index of their time value, from 0; without one they mean the present.
  static let dateFunctions: [String: Int] = [
    "date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1, "timediff": 0,
  ]

  /// The aggregates; `min` and `max` also take several values.
  static let aggregate: Set<String> = ["count", "sum", "avg", "total", "min", "max", "group_concat"]

  /// The functions of the record itself.
  static let own: Set<String> = ["uuid", "primarykey"]

  static var names: [String] {
    (available.subtracting(["nscoredatanow"]).union(aggregate).union(own).union(["NSCoreDataNow"])).sorted()
  }

  static func hint(_ word: String, _ lower: String) -> String {
    switch lower {
    case _ where scalar.contains(lower): "The SQLite of this process (\(SQLiteLibrary.version)) does not have it."
    case "random", "randomblob":
      "A migration that is repeated must give the same values; write uuid() for an identifier, or primaryKey()."
    default: NameSuggestion.hint(for: word, among: names, "functions") + " Others need a policy."
    }
  }

  static let keywords: Set<String> = [
    "and", "or", "not", "is", "null", "isnull", "notnull", "in", "between", "like", "glob", "escape", "case", "when",
    "then", "else", "end", "collate", "true", "false", "distinct", "from", "as",
  ]

  /// Statement keywords, forbidden in expressions; an attribute of such a name must be quoted.
  static let refusedKeywords: Set<String> = [
    "select", "with", "exists", "insert", "update", "delete", "replace", "create", "drop", "alter", "attach", "detach",
    "pragma", "vacuum", "values", "union", "intersect", "except", "where", "group", "order", "having", "limit", "over",
    "filter", "match", "regexp", "raise", "current_date", "current_time", "current_timestamp", "join", "on", "using",
    "table", "begin", "commit", "rollback",
  ]

  /// Makes identifiers from primary key, place and store identifier.
  static let identifierFunction = "LazaretUUID"

  /// Checks for UTF-8 text.
  static let textCheckFunction = "LazaretIsText"

  static let additional: [DatabaseFunction] = [
    DatabaseFunction(textCheckFunction, argumentCount: 1, pure: true) { values in
      switch values[0].storage {
      case .blob(let data): String(utf8: data) != nil
      // No bytes are an empty text.
      case .null, .string: true
      case .int64, .double: false
      }
    },
    DatabaseFunction(identifierFunction, argumentCount: 3, pure: true) { values in
      guard let key = Int64.fromDatabaseValue(values[0]), let place = String.fromDatabaseValue(values[1]) else {
        return nil
      }
      let store = String.fromDatabaseValue(values[2]) ?? ""
      return Data(identifier(key, for: place, in: store))
    },
    DatabaseFunction("uuid_blob", argumentCount: 1, pure: true) { values in
      String.fromDatabaseValue(values[0]).flatMap(MappingConstant.uuid).map { Data($0) }
    },
    DatabaseFunction("uuid_text", argumentCount: 1, pure: true) { values in
      guard case .blob(let data) = values[0].storage, data.count == 16 else { return nil }
      return data.uuidText
    },
  ]

  /// An identifier (RFC 9562, version 4), constant and unique for record, place and store.
  static func identifier(_ key: Int64, for place: String, in store: String) -> [UInt8] {
    var seed: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in "\(store)\u{0}\(place)".utf8 { seed = (seed ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    let number = UInt64(bitPattern: key)
    // SplitMix64's step; its mixing is injective.
    func next(_ value: UInt64) -> UInt64 { (value &+ SeededGenerator.step).mixed }
    let halves = [next(seed ^ number), next(next(seed) &+ number)]
    var bytes = halves.flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return bytes
  }
}
