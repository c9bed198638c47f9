extension SQLExpressionParser {
  /// The names that begin at a piece, joined by points, and the piece after them.
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

  /// What a word that is no keyword of expressions stands for: a function or a property.
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
        token.position, "there is no function \(word)()",
        hint: MappingFunctions.hint(word, lower), isUnsupported: true)
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

  /// A date function that speaks of the present gives something else each time.
  private func checkTime(
    _ name: String, _ arguments: [TypedExpression], from start: Int
  ) throws(ExpressionProblem) {
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

  /// A format could ask for text of any length.
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
