internal import GRDB

/// Text that is looked for in columns, in either case of the letters of ASCII.
struct SoughtText {
  /// It with the letters of ASCII in lower case, as SQLite's `lower` has them.
  let folded: String

  /// It as a pattern of `LIKE`; nil where that would not find it: it ends at a NUL, and takes no more than 50,000 bytes.
  private let pattern: String?

  private static let longestPattern = 20_000

  init(_ text: String) {
    folded = String(decoding: text.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
    let isPlain = !folded.utf8.contains(0) && folded.utf8.count <= Self.longestPattern
    let escaped = folded.map { #"\%_"#.contains($0) ? "\\\($0)" : "\($0)" }.joined()
    pattern = isPlain ? "%\(escaped)%" : nil
  }

  /// What the parameters of ``condition(on:isNumbered:)`` stand for.
  var arguments: [DatabaseValue] { ([pattern].compactMap(\.self) + [folded]).map(\.databaseValue) }

  /// The condition that it is a part of a column's value.
  ///
  /// `LIKE` is the fastest, and sees nothing behind a NUL: values that hold one are looked at again.
  ///
  /// - Parameter isNumbered: whether the parameters are `?1` and so on, for several conditions with the same.
  func condition(on sql: String, isNumbered: Bool = false) -> String {
    let (first, second) = isNumbered ? ("?1", "?2") : ("?", "?")
    guard pattern != nil else { return "instr(lower(\(sql)), \(first)) > 0" }
    return """
      (\(sql) LIKE \(first) ESCAPE '\\' OR instr(\(sql), char(0)) > 0 AND instr(lower(\(sql)), \(second)) > 0)
      """
  }
}
