internal import GRDBSQLite

/// Quoting of names and text, so that a model cannot inject SQL.
package enum SQLText {
  /// Returns an identifier, bare if of ASCII letters, digits and underscores.
  ///
  /// Core Data leaves fresh tables' names bare; they start with a letter and are never reserved words.
  package static func identifier(_ name: String) -> String {
    let isPlain = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    let beginsWithLetter = name.utf8.first.map { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
    return isPlain && beginsWithLetter ? name : quotedIdentifier(name)
  }

  package static func quotedIdentifier(_ name: String) -> String { "\"\(doubling("\"", in: name))\"" }

  package static func literal(_ text: String) -> String {
    let parts = text.unicodeScalars.split(separator: "\0", omittingEmptySubsequences: false)
      .map { "'\(doubling("'", in: String($0)))'" }
    // SQL ends at a NUL.
    return parts.count == 1 ? parts[0] : "(\(parts.joined(separator: " || char(0) || ")))"
  }

  /// Joins conditions within SQLite's expression depth of 1,000 (https://sqlite.org/limits.html).
  package static func all(_ conditions: [String]) -> String { grouped(conditions, by: " AND ", empty: "1") }

  package static func any(_ conditions: [String]) -> String { grouped(conditions, by: " OR ", empty: "0") }

  private static func grouped(_ conditions: [String], by word: String, empty: String) -> String {
    guard !conditions.isEmpty else { return empty }
    var conditions = conditions
    while conditions.count > groupSize {
      conditions = stride(from: 0, to: conditions.count, by: groupSize).map { start in
        "(\(conditions[start..<min(start + groupSize, conditions.count)].joined(separator: word)))"
      }
    }
    return conditions.joined(separator: word)
  }

  private static let groupSize = 100

  /// Works by scalar, so that a quote with a combining mark is doubled too.
  private static func doubling(_ quote: Unicode.Scalar, in text: String) -> String {
    guard text.unicodeScalars.contains(quote) else { return text }
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      if scalar == quote { result.append(quote) }
      result.append(scalar)
    }
    return String(result)
  }
}

extension SQLText {
  /// Returns an identifier for display, quoted for keywords such as `Order` and `group`.
  package static func readableIdentifier(_ name: String) -> String {
    let isKeyword = unsafe sqlite3_keyword_check(name, Int32(clamping: name.utf8.count)) != 0
    return isKeyword ? quotedIdentifier(name) : identifier(name)
  }
}
