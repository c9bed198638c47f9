/// An index as declared by `CREATE INDEX`, read without SQLite.
public struct IndexDefinition: Sendable, Hashable {
  /// The name.
  public var name: String

  /// The table's name.
  public var tableName: String

  /// Whether it is UNIQUE.
  public var isUnique = false

  /// The columns in order.
  public var columns: [IndexedColumn]

  /// Whether a WHERE clause limits its rows.
  public var isPartial: Bool { condition != nil }

  /// The WHERE clause, tokens separated by one space.
  public var condition: String?

  /// An app-defined function in its expressions; only the app then knows its entries.
  public private(set) var foreignFunction: String?

  /// Reads a `CREATE INDEX` statement; nil for others.
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
    if reader.takeWord("where") { condition = reader.rest.map(\.text).joined(separator: " ") }
    let expressions = list + SQLTokenizer.tokens(of: condition ?? "")
    foreignFunction =
      zip(expressions, expressions.dropFirst()).lazy.compactMap { token, next in
        next.isSymbol("(") && !Self.knownFunctions.contains((token.name ?? "(").lowercased()) ? token.name : nil
      }.first
  }

  /// SQLite's functions allowed in indexes, and words that may precede a parenthesis.
  private static let knownFunctions = Set(
    """
    abs char coalesce concat concat_ws format glob hex if ifnull iif instr length octet_length like likelihood likely lower
    ltrim max min nullif printf quote replace round rtrim sign soundex substr substring trim typeof unhex unicode unistr
    unistr_quote unlikely upper zeroblob date datetime julianday strftime time timediff unixepoch
    json json_array json_array_length json_error_position json_extract json_insert json_object json_patch json_pretty json_quote
    json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract jsonb_insert jsonb_object jsonb_patch
    jsonb_remove jsonb_replace jsonb_set
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians sin
    sinh sqrt tan tanh trunc
    and or not in between is null notnull isnull case when then else end cast as collate exists escape regexp match on from (
    """.split { $0 == " " || $0 == "\n" }.map(String.init))
}
