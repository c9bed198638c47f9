/// An index as its `CREATE INDEX` statement declares it, read without SQLite.
public struct IndexDefinition: Sendable, Hashable {
  /// The name.
  public var name: String

  /// The name of its table.
  public var tableName: String

  /// Whether it is UNIQUE.
  public var isUnique = false

  /// The columns in their order.
  public var columns: [IndexedColumn]

  /// Whether its entries are made by functions that are none of SQLite's own: which rows have one, only the app knows.
  public var isOfApp = false

  /// Whether it has a WHERE clause and so does not hold every row.
  public var isPartial: Bool { condition != nil }

  /// The WHERE clause, tokens separated by one space; nil where there is none.
  public var condition: String?

  /// Reads a `CREATE INDEX` statement; nil where it is none.
  public init?(sql: String) {
    var reader = TokenReader(SQLTokenizer.tokens(of: sql))
    guard reader.takeWord("create") else { return nil }
    isUnique = reader.takeWord("unique")
    guard reader.takeWord("index") else { return nil }
    if reader.takeWord("if") {
      _ = reader.takeWord("not")
      _ = reader.takeWord("exists")
    }
    guard let name = reader.takeQualifiedName(), reader.takeWord("on"), let table = reader.next()?.name,
      let list = reader.takeParenthesized()
    else { return nil }
    self.name = name
    tableName = table
    columns = IndexedColumn.list(list)
    isOfApp = zip(list, list.dropFirst()).contains { name, next in
      guard next.isSymbol("("), case .word(let word) = name else { return false }
      return !Self.knownWords.contains(word.lowercased())
    }
    if reader.takeWord("where") { condition = reader.rest.map(\.text).joined(separator: " ") }
  }

  /// The functions of SQLite's own that an index may call, and the keywords that a parenthesis may follow
  /// (sqlite.org/lang_corefunc.html, lang_datefunc.html, lang_mathfunc.html, json1.html, lang_expr.html).
  private static let knownWords = Set(
    """
    abs acos acosh and as asin asinh atan atan2 atanh between by case cast ceil ceiling char coalesce collate concat concat_ws \
    cos cosh date datetime degrees else escape exists exp filter floor format glob hex if ifnull iif in instr is json \
    json_array json_array_length json_error_position json_extract json_insert json_object json_patch json_pretty json_quote \
    json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract jsonb_insert jsonb_object \
    jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday length like likelihood likely ln log log10 log2 lower ltrim match \
    max min mod not null nullif octet_length on or pi pow power printf quote radians regexp replace round rtrim select sign sin \
    sinh soundex sqrt strftime substr substring subtype tan tanh then time timediff trim trunc typeof unhex unicode unistr \
    unistr_quote unixepoch unlikely upper values when where zeroblob
    """.split(separator: " ").map(String.init))
}
