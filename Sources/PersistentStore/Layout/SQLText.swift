internal import GRDBSQLite

/// The writing of names and text in SQL, so that nothing a model says can become a statement.
package enum SQLText {
  /// The name as an identifier: bare where it consists of ASCII letters, digits and underscores, else quoted.
  ///
  /// Core Data leaves the names of fresh tables bare; they all begin with a letter, so no reserved word comes up.
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

  /// The name as a quoted identifier, whatever is in it.
  package static func quotedIdentifier(_ name: String) -> String { "\"\(doubling("\"", in: name))\"" }

  /// The text as a string literal.
  package static func literal(_ text: String) -> String {
    let parts = text.unicodeScalars.split(separator: "\0", omittingEmptySubsequences: false)
      .map { "'\(doubling("'", in: String($0)))'" }
    // SQL ends at a NUL.
    return parts.count == 1 ? parts[0] : "(\(parts.joined(separator: " || char(0) || ")))"
  }

  /// The conjunction of conditions, grouped so that thousands of them make no expression that is too deep for SQLite.
  ///
  /// SQLite takes expressions of a depth of 1,000 (https://sqlite.org/limits.html); each `AND` adds one.
  package static func all(_ conditions: [String]) -> String { grouped(conditions, by: " AND ", empty: "1") }

  /// The disjunction of conditions, grouped likewise.
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

  /// Doubles a quote, scalar by scalar, so that a quote with a combining mark is doubled too.
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
  /// The name as an identifier in a statement that people read: bare where SQLite takes it for a name as it stands.
  ///
  /// Entities and properties may have the names of SQLite's keywords, such as `Order` and `group`.
  package static func readableIdentifier(_ name: String) -> String {
    let isKeyword = unsafe sqlite3_keyword_check(name, Int32(clamping: name.utf8.count)) != 0
    return isKeyword ? quotedIdentifier(name) : identifier(name)
  }
}
