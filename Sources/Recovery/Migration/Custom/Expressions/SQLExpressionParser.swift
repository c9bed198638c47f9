/// Reads an SQL expression over a source entity's properties.
///
/// Only what is known to be harmless gets through: names of properties, literals, operators and functions of a list.
struct SQLExpressionParser {
  /// What has been read of the record so far, in the order of the text.
  var readings: [TypedExpression.Reading] = []

  let tokens: [ExpressionToken]

  /// Whether a word is the name of a property.
  let isProperty: (String) -> Bool
  var index = 0
  private var openParentheses = 0
  private var nesting = 0

  /// Prepares the reading of a text.
  init(_ text: String, isProperty: @escaping (String) -> Bool) throws(ExpressionProblem) {
    tokens = try ExpressionScanner.tokens(of: text)
    self.isProperty = isProperty
  }

  /// The expression that the whole text is.
  mutating func expression() throws(ExpressionProblem) -> TypedExpression {
    let result = try series()
    guard index == tokens.count else { throw unexpected() }
    return result
  }

  // MARK: Pieces

  private func token(_ ahead: Int = 0) -> ExpressionToken? {
    let place = index + ahead
    return tokens.indices.contains(place) ? tokens[place] : nil
  }

  func isSymbol(_ text: String, _ ahead: Int = 0) -> Bool { token(ahead)?.isSymbol(text) == true }

  func stands(_ words: String) -> Bool {
    let words = words.split(separator: " ").map(String.init)
    return tokens[index...].prefix(words.count).map(\.keyword) == words
  }

  /// The first of some keywords, each perhaps of several words, that follows; it is passed.
  private mutating func accept(_ choices: String...) -> TypedExpression? {
    guard let found = choices.first(where: { stands($0) }) else { return nil }
    index += found.split(separator: " ").count
    return TypedExpression(.sign(found.uppercased()))
  }

  private mutating func accept(symbols: Set<String>) -> TypedExpression? {
    guard let token = token(), token.kind == .symbol, symbols.contains(token.text) else { return nil }
    index += 1
    return TypedExpression(.sign(token.text))
  }

  private mutating func require(_ word: String) throws(ExpressionProblem) -> TypedExpression {
    guard let found = accept(word) else { throw unexpected() }
    return found
  }

  /// What is wrong with the piece that follows, or with the end.
  private mutating func unexpected() -> ExpressionProblem {
    guard let token = token() else {
      let position = tokens.last?.position ?? 1
      return openParentheses > 0
        ? ExpressionProblem(position, "a parenthesis is not closed")
        : .compilation("it ends too early, something must follow", at: position)
    }
    if token.isSymbol(".") { return ExpressionProblem(token.position, "a point without a name before it") }
    if token.isSymbol(")"), openParentheses == 0 {
      return ExpressionProblem(token.position, "a parenthesis is closed that is not open")
    }
    if token.keyword == "as" { return ExpressionProblem(token.position, "AS is allowed in CAST only") }
    if let word = token.keyword, !MappingFunctions.keywords.contains(word) {
      // What is wrong with the word itself is told first.
      do throws(ExpressionProblem) { _ = try named(token) } catch { return error }
    }
    return .compilation("a syntax error", at: token.position)
  }

  // MARK: Operators

  private static let prefixes: Set<String> = ["-", "+", "~"]

  private static let infixes: Set<String> = [
    "||", "->", "->>", "*", "/", "%", "+", "-", "&", "|", "<<", ">>", "<", "<=", ">", ">=", "=", "==", "<>", "!=",
  ]

  /// Operands with what stands before, between and behind them.
  private mutating func series() throws(ExpressionProblem) -> TypedExpression {
    nesting += 1
    defer { nesting -= 1 }
    guard nesting <= 128 else {
      throw ExpressionProblem(token()?.position ?? 0, "more than 128 expressions are nested")
    }
    var parts: [TypedExpression] = []
    // How many of BETWEEN wait for their AND.
    var waiting = 0
    while true {
      while let sign = accept(symbols: Self.prefixes) ?? accept("not") { parts.append(sign) }
      parts.append(try operand())
      while let sign = try suffix() { parts.append(sign) }
      // Between BETWEEN and its AND no OR can stand without parentheses.
      guard waiting == 0 || !stands("or"), let sign = try infix() else { break }
      parts.append(sign)
      switch sign.form {
      case .sign("BETWEEN"), .sign("NOT BETWEEN"): waiting += 1
      case .sign("AND"): waiting = max(0, waiting - 1)
      case .sign, .reading, .call, .series: break
      }
    }
    guard waiting == 0 else { throw unexpected() }
    return parts.count == 1 ? parts[0] : TypedExpression(.series(parts))
  }

  private mutating func infix() throws(ExpressionProblem) -> TypedExpression? {
    let sign =
      accept(symbols: Self.infixes)
      ?? accept(
        "is not distinct from", "is distinct from", "is not", "is", "not like", "not glob", "not between", "not in",
        "like", "glob", "between", "in", "and", "or", "escape")
    guard sign == nil, stands("not") else { return sign }
    index += 1
    throw unexpected()
  }

  private mutating func suffix() throws(ExpressionProblem) -> TypedExpression? {
    let sign = accept("isnull", "notnull", "not null", "collate binary", "collate nocase", "collate rtrim")
    guard sign == nil, stands("collate") else { return sign }
    throw ExpressionProblem(
      token()?.position ?? 0, "there is no such collation", hint: "Write BINARY, NOCASE or RTRIM.")
  }

  // MARK: Operands

  private mutating func operand() throws(ExpressionProblem) -> TypedExpression {
    let isInList = index > 0 && tokens[index - 1].keyword == "in"
    guard let token = token(), !isInList || isSymbol("(") else { throw unexpected() }
    switch token.kind {
    case .literal:
      index += 1
      return TypedExpression(.sign(token.text))
    case .symbol:
      guard isSymbol("(") else { throw unexpected() }
      return TypedExpression(.call("", try list(mayBeEmpty: isInList)))
    case .name: return try property(token)
    case .word:
      if let constant = accept("null", "true", "false") { return constant }
      if stands("case") { return try choice() }
      let isCall = isSymbol("(", 1)
      if stands("cast"), isCall { return try cast(token) }
      let isFunction = isCall && (stands("like") || stands("glob"))
      guard isFunction || !MappingFunctions.keywords.contains(token.text.lowercased()) else { throw unexpected() }
      return try named(token)
    }
  }

  private mutating func open() throws(ExpressionProblem) {
    guard openParentheses < 64 else {
      throw ExpressionProblem(token()?.position ?? 0, "more than 64 parentheses are open")
    }
    index += 1
    openParentheses += 1
  }

  /// What stands in the parentheses that open here, with commas between.
  mutating func list(mayBeEmpty: Bool) throws(ExpressionProblem) -> [TypedExpression] {
    try open()
    var items: [TypedExpression] = []
    if !mayBeEmpty || !isSymbol(")") {
      let distinct = mayBeEmpty ? accept("distinct") : nil
      repeat { items.append(try series()) } while accept(symbols: [","]) != nil
      if let distinct { items[0] = .series(distinct, items[0]) }
    }
    guard accept(symbols: [")"]) != nil else { throw unexpected() }
    openParentheses -= 1
    return items
  }

  /// `CASE … WHEN … THEN … ELSE … END`.
  private mutating func choice() throws(ExpressionProblem) -> TypedExpression {
    var parts = [try require("case")]
    if !stands("when") { parts.append(try series()) }
    repeat {
      parts += [try require("when"), try series()]
      parts += [try require("then"), try series()]
    } while stands("when")
    if let otherwise = accept("else") { parts += [otherwise, try series()] }
    return TypedExpression(.series(parts + [try require("end")]))
  }

  /// `CAST ( … AS type )`.
  private mutating func cast(_ token: ExpressionToken) throws(ExpressionProblem) -> TypedExpression {
    index += 1
    try open()
    let value = try series()
    guard let type = accept("as integer", "as int", "as real", "as text", "as blob", "as numeric"), isSymbol(")")
    else {
      throw ExpressionProblem(
        token.position, "CAST needs AS and a type",
        hint: "Write CAST(expression AS INTEGER), or REAL, TEXT, BLOB or NUMERIC.")
    }
    index += 1
    openParentheses -= 1
    return .call("CAST", .series(value, type))
  }
}
