/// SQL without the literals in it, for logs.
///
/// Statements of a migration hold defaults of the model and constants of custom mappings as literals, which are no
/// user's records, but are not to be told either. Names in double quotes stay.
package enum SQLMask {
  /// The longest text of a statement that a log shows.
  static let limit = 4_000

  /// The statement with every text and blob literal emptied, cut off after `limit` characters.
  package static func masked(_ sql: String) -> String {
    var result = ""
    var count = 0
    var characters = Array(sql.unicodeScalars)[...]
    while let character = characters.popFirst(), count < limit {
      count += 1
      switch character {
      case "'":
        skip("'", &characters)
        // x'0102' is one literal.
        result += "'…'"
      case "\"", "`":
        result.unicodeScalars.append(character)
        while let next = characters.popFirst() {
          result.unicodeScalars.append(next)
          count += 1
          if next == character { break }
        }
      default: result.unicodeScalars.append(character)
      }
    }
    return characters.isEmpty && count < limit ? result : result + " …"
  }

  /// Goes on behind a literal; a doubled quote is part of it.
  private static func skip(_ quote: Unicode.Scalar, _ characters: inout ArraySlice<Unicode.Scalar>) {
    while let next = characters.popFirst() {
      guard next == quote else { continue }
      guard characters.first == quote else { return }
      characters.removeFirst()
    }
  }
}
