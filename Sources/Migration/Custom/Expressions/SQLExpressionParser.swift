/// Parses an expression over a source entity.
///
/// Only harmless elements pass: property names, literals, operators and listed functions.
struct SQLExpressionParser {
  var readings: [TypedExpression.Reading] = []

  let tokens: [ExpressionToken]

  let isProperty: (String) -> Bool
  var index = 0
  private var openParentheses = 0
  private var nesting = 0

  init(_ text: String, isProperty: @escaping (String) -> Bool) throws(ExpressionProblem) {
    tokens = try ExpressionScanner.tokens(of: text)
    self.isProperty = isProperty
  }

  mutating func expression() throws(ExpressionProblem) -> TypedExpression {
    let result = try series()
    guard index == tokens.count else { throw unexpected() }
    return result
  }

  // MARK: Tokens

  private func token(_ ahead: Int = 0) -> ExpressionToken? {
    let place = index + ahead
    return tokens.indices.contains(place) ? tokens[place] : nil
  }

  func isSymbol(_ text: String, _ ahead: Int = 0) -> Bool { token(ahead)?.isSymbol(text) == true }

  func stands(_ words: String) -> Bool {
    let words = words.split(separator: " ").map(String.init)
    return tokens[index...].prefix(words.count).map(\.keyword) == words
  }

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
      // Report an unknown word first.
      do throws(ExpressionProblem) { _ = try named(token) } catch { return error }
    }
    return .compilation("a syntax error", at: token.position)
  }

  // MARK: Operators

  private static let prefixes: Set<String> = ["-", "+", "~"]

  private static let infixes: Set<String> = [
    "||", "->", "->>", "*", "/", "%", "+", "-", "&", "|", "<<", ">>", "<", "<=", ">", ">=", "=", "==", "<>", "!=",
  ]

  /// Operands with their prefix, infix and suffix operators.
  private mutating func series() throws(ExpressionProblem) -> TypedExpression {
    nesting += 1
    defer { nesting -= 1 }
    guard nesting <= 128 else {
      throw ExpressionProblem(token()?.position ?? 0, "more than 128 expressions are nested")
    }
    var parts: [TypedExpression] = []
    // The `BETWEEN`s awaiting `AND`.
    var waiting = 0
    while true {
      while let sign = accept(symbols: Self.prefixes) ?? accept("not") { parts.append(sign) }
      parts.append(try operand())
      while let sign = try suffix() { parts.append(sign) }
      // OR needs parentheses between BETWEEN and its AND.
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
    guard let type = accept("as integer", "as int", "as real", "as text", "as blob", "as numeric"), isSymbol(")") else {
      throw ExpressionProblem(
        token.position, "CAST needs AS and a type",
        hint: "Write CAST(expression AS INTEGER), or REAL, TEXT, BLOB or NUMERIC.")
    }
    index += 1
    openParentheses -= 1
    return .call("CAST", .series(value, type))
  }
}

extension SQLExpressionParser {
  /// The dotted path from a token, and the index after it.
  private func path(at start: Int) -> (names: [String], end: Int)? {
    var names: [String] = []
    var place = start
    while tokens.indices.contains(place) {
      guard tokens[place].kind == .word || tokens[place].kind == .name else { return nil }
      names.append(tokens[place].text)
      place += 1
      guard tokens.indices.contains(place), tokens[place].isSymbol(".") else { return (names, place) }
      place += 1
    }
    return nil
  }

  mutating func property(_ token: ExpressionToken) throws(ExpressionProblem) -> TypedExpression {
    guard let (names, end) = path(at: index) else {
      throw ExpressionProblem(token.position, "a name must follow the point")
    }
    index = end
    guard !isSymbol("(") else { throw ExpressionProblem(token.position, "a property is not a function") }
    let isTestedForNil = stands("is null") || stands("is not null")
    return read(.init(path: names, position: token.position, isTestedForNil: isTestedForNil))
  }

  private mutating func read(_ reading: TypedExpression.Reading) -> TypedExpression {
    readings.append(reading)
    return TypedExpression(.reading(reading))
  }

  mutating func named(_ token: ExpressionToken) throws(ExpressionProblem) -> TypedExpression {
    let lower = token.text.lowercased()
    if isSymbol("(", 1) { return try function(lower, token) }
    guard !MappingFunctions.refusedKeywords.contains(lower) || isProperty(token.text) else {
      throw ExpressionProblem(
        token.position, "the keyword \(lower.uppercased()) belongs to statements, which are not allowed",
        hint: "Write one expression over the attributes of the source. What goes beyond it needs a policy.")
    }
    return try property(token)
  }

  private mutating func function(
    _ lower: String, _ token: ExpressionToken
  ) throws(ExpressionProblem) -> TypedExpression {
    let word = token.text
    if MappingFunctions.own.contains(lower) {
      guard isSymbol(")", 2) else { throw ExpressionProblem(token.position, "\(word)() takes no arguments") }
      index += 3
      return read(.init(function: lower, path: []))
    }
    let isAggregate = MappingFunctions.aggregate.contains(lower)
    if isAggregate, let (path, end) = path(at: index + 2), tokens.indices.contains(end), tokens[end].isSymbol(")") {
      let position = tokens[index + 2].position
      index = end + 1
      return read(.init(function: lower, path: path, position: position))
    }
    guard isAggregate || MappingFunctions.available.contains(lower) else {
      throw ExpressionProblem(
        token.position, "there is no function \(word)()", hint: MappingFunctions.hint(word, lower), isUnsupported: true)
    }
    let misuse = ExpressionProblem(
      token.position, "\(word)() takes what a to-many relationship leads to",
      hint: "Write count(relationship), or \(lower)(relationship.attribute).")
    if isAggregate, lower != "min", lower != "max" { throw misuse }
    let start = index
    index += 1
    let arguments = try list(mayBeEmpty: true)
    if isAggregate, arguments.count < 2 { throw misuse }
    try checkTime(lower, arguments, from: start)
    if lower == "printf" || lower == "format" { try checkFormat(from: start) }
    return TypedExpression(.call(word, arguments))
  }

  /// Rejects date functions of the present, because they are not deterministic.
  private func checkTime(_ name: String, _ arguments: [TypedExpression], from start: Int) throws(ExpressionProblem) {
    guard let place = MappingFunctions.dateFunctions[name] else { return }
    func refuse(_ token: ExpressionToken, _ detail: String) throws(ExpressionProblem) {
      throw ExpressionProblem(
        token.position, "\(name)() \(detail) tells the present, which is another each time the migration is repeated",
        hint: "Write NSCoreDataNow() for when the migration began, in seconds since 2001-01-01T00:00:00Z; as text: "
          + "datetime(NSCoreDataNow() + 978307200, 'unixepoch').")
    }
    let omissions = arguments.dropFirst(place).first?.signs.intersection(["'subsec'", "'subsecond'"])
    for token in tokens[start..<index] {
      let text = token.text.lowercased()
      guard token.kind == .literal, text == "'now'" || omissions?.contains(text) == true else { continue }
      try refuse(token, "with \(token.text)")
    }
    if omissions == nil { try refuse(tokens[start], "without a time value") }
  }

  /// Rejects formats that ask for text of any length.
  private func checkFormat(from start: Int) throws(ExpressionProblem) {
    let format = tokens[min(start + 2, tokens.count - 1)]
    guard format.kind == .literal, format.text.hasPrefix("'"), !format.text.contains("*"),
      !format.text.split(whereSeparator: { !$0.isNumber }).contains(where: { $0.count > 3 })
    else {
      throw ExpressionProblem(
        tokens[start].position, "the format must be a text in quotes, with widths of at most three digits",
        hint: "Write a format such as '%04d-%02d'.")
    }
  }
}

struct ExpressionToken {
  enum Kind {
    /// A keyword, function or property.
    case word

    /// A quoted property name.
    case name
    case literal

    /// An operator, parenthesis, comma or point.
    case symbol
  }

  let kind: Kind

  /// The text; names without quotes.
  let text: String

  /// From 1.
  let position: Int

  func isSymbol(_ text: String) -> Bool { kind == .symbol && self.text == text }

  /// The lowercase bare word, if it is one.
  var keyword: String? { kind == .word ? text.lowercased() : nil }
}

struct ExpressionProblem: Error {
  /// From 1; 0 if unknown.
  var position: Int

  /// The error, without a full stop.
  var detail: String

  /// The correction, in full sentences.
  var hint: String?

  var isUnsupported: Bool

  init(_ position: Int, _ detail: String, hint: String? = nil, isUnsupported: Bool = false) {
    (self.position, self.detail, self.hint, self.isUnsupported) = (position, detail, hint, isUnsupported)
  }

  var words: String { position > 0 ? "character \(position): \(detail)" : detail }

  static func compilation(_ detail: String, at position: Int) -> Self {
    Self(
      position, "SQLite cannot compile the expression: \(detail)",
      hint: "Correct the expression; SQLite's rules for expressions hold.")
  }
}
