internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// Turns an SQL expression over a source entity's properties into one over the columns of its table.
///
/// Only what is known to be harmless gets through: names of properties, literals, operators and functions of a list.
struct MappingExpressionRewriter {
  /// The result.
  struct Rewritten {
    /// The expression over the row `o`.
    var sql: String

    /// The attribute, where the expression is nothing but its name.
    var attribute: PropertyPath?

    /// The properties of the source entity that it reads.
    var properties: Set<String>
  }

  let paths: MappingPathResolver
  let entityName: String

  /// What the value is for, such as `PersonToAddress.identifier`: no two places get the same identifiers.
  let place: String

  private var tokens: [MappingExpressionToken] = []
  private var index = 0
  private var output: [String] = []
  private var properties: Set<String> = []
  private var depth = 0

  /// Prepares the rewriting of expressions for a source entity.
  init(_ paths: MappingPathResolver, entity entityName: String, place: String) {
    self.paths = paths
    self.entityName = entityName
    self.place = place
  }

  /// Rewrites an expression.
  mutating func rewrite(_ text: String) throws(MappingExpressionProblem) -> Rewritten {
    tokens = try MappingExpressionScanner.tokens(of: text)
    (index, output, properties, depth) = (0, [], [], 0)
    if let path = onlyPath(), let attribute = paths.attribute(path, of: entityName) {
      return Rewritten(sql: attribute.sql, attribute: attribute.path, properties: [path[0]])
    }
    while index < tokens.count { try step() }
    guard depth == 0 else {
      throw MappingExpressionProblem(position: tokens.last?.position ?? 1, detail: "a parenthesis is not closed")
    }
    return Rewritten(sql: "(\(output.joined(separator: " ")))", attribute: nil, properties: properties)
  }

  private func token(_ ahead: Int = 0) -> MappingExpressionToken? {
    let place = index + ahead
    return tokens.indices.contains(place) ? tokens[place] : nil
  }

  /// The path that all of the expression is.
  private func onlyPath() -> [String]? {
    guard let (path, end) = path(at: 0), end == tokens.count else { return nil }
    if case .word(let word) = tokens[0].kind, MappingFunctions.keywords.contains(word.lowercased()) { return nil }
    return path
  }

  /// The names that begin at a piece, joined by points, and the piece after them.
  private func path(at start: Int) -> (names: [String], end: Int)? {
    var names: [String] = []
    var place = start
    while tokens.indices.contains(place) {
      switch tokens[place].kind {
      case .word(let name), .name(let name): names.append(name)
      case .literal, .symbol: return nil
      }
      place += 1
      guard tokens.indices.contains(place), tokens[place].isSymbol(".") else { return (names, place) }
      place += 1
    }
    return nil
  }

  private mutating func step() throws(MappingExpressionProblem) {
    let token = tokens[index]
    switch token.kind {
    case .literal(let text):
      output.append(text)
      index += 1
    case .symbol(let symbol):
      if symbol == "." {
        throw MappingExpressionProblem(position: token.position, detail: "a point without a name before it")
      }
      if symbol == "(" { depth += 1 }
      if symbol == ")" { depth -= 1 }
      guard depth >= 0 else {
        throw MappingExpressionProblem(position: token.position, detail: "a parenthesis is closed that is not open")
      }
      guard depth <= 64 else {
        throw MappingExpressionProblem(position: token.position, detail: "more than 64 parentheses are open")
      }
      output.append(symbol)
      index += 1
    case .name: try property(token)
    case .word(let word):
      let isCall = self.token(1)?.isSymbol("(") == true
      let lower = word.lowercased()
      if lower == "cast", isCall {
        try cast(token)
      } else if MappingFunctions.keywords.contains(lower), !(isCall && (lower == "like" || lower == "glob")) {
        try keyword(lower, token)
      } else if isCall {
        try function(word, lower, token)
      } else if MappingFunctions.refusedKeywords.contains(lower), !paths.hasProperty(word, of: entityName) {
        throw MappingExpressionProblem(
          position: token.position,
          detail: "the keyword \(lower.uppercased()) belongs to statements, which are not allowed",
          hint: "Write one expression over the attributes of the source. What goes beyond it needs a policy.")
      } else {
        try property(token)
      }
    }
  }

  private mutating func keyword(_ word: String, _ token: MappingExpressionToken) throws(MappingExpressionProblem) {
    output.append(word.uppercased())
    index += 1
    switch word {
    case "collate":
      guard case .word(let name)? = self.token()?.kind, MappingFunctions.collations.contains(name.lowercased()) else {
        throw MappingExpressionProblem(
          position: token.position, detail: "there is no such collation", hint: "Write BINARY, NOCASE or RTRIM.")
      }
      output.append(name.uppercased())
      index += 1
    case "as":
      throw MappingExpressionProblem(position: token.position, detail: "AS is allowed in CAST only")
    default: break
    }
  }

  /// `CAST ( … AS type )`; the expression in it is rewritten by the steps that follow.
  private mutating func cast(_ token: MappingExpressionToken) throws(MappingExpressionProblem) {
    // The matching AS is looked for, so that its type is not taken for a property.
    var open = 0
    var place = index + 1
    while tokens.indices.contains(place) {
      if tokens[place].isSymbol("(") { open += 1 }
      if tokens[place].isSymbol(")") { open -= 1 }
      if open == 0 { break }
      if open == 1, case .word(let word) = tokens[place].kind, word.lowercased() == "as" { break }
      place += 1
    }
    guard tokens.indices.contains(place), case .word(let word) = tokens[place].kind, word.lowercased() == "as",
      tokens.indices.contains(place + 2), case .word(let type) = tokens[place + 1].kind,
      MappingFunctions.types.contains(type.lowercased()), tokens[place + 2].isSymbol(")")
    else {
      throw MappingExpressionProblem(
        position: token.position, detail: "CAST needs AS and a type",
        hint: "Write CAST(expression AS INTEGER), or REAL, TEXT, BLOB or NUMERIC.")
    }
    output += ["CAST", "("]
    index += 2
    let before = depth
    while index < place { try step() }
    guard depth == before else {
      throw MappingExpressionProblem(position: token.position, detail: "a parenthesis is not closed")
    }
    output += ["AS", type.uppercased(), ")"]
    index = place + 3
  }

  private mutating func function(
    _ word: String, _ lower: String, _ token: MappingExpressionToken
  ) throws(MappingExpressionProblem) {
    if MappingFunctions.own.contains(lower) {
      guard self.token(2)?.isSymbol(")") == true else {
        throw MappingExpressionProblem(position: token.position, detail: "\(word)() takes no arguments")
      }
      output.append(
        lower == "uuid"
          ? "\(MappingFunctions.identifierFunction)(o.Z_PK, \(SQLText.literal(place)), "
            + "(SELECT Z_UUID FROM \(paths.schema)Z_METADATA LIMIT 1))"
          : "o.Z_PK")
      index += 3
      return
    }
    if MappingFunctions.aggregate.contains(lower) {
      if let (path, end) = path(at: index + 2), tokens.indices.contains(end), tokens[end].isSymbol(")") {
        output.append(try paths.aggregate(lower, path, of: entityName, position: tokens[index + 2].position))
        if let first = path.first { properties.insert(first) }
        index = end + 1
        return
      }
      guard lower == "min" || lower == "max", hasSeveralArguments() else {
        throw MappingExpressionProblem(
          position: token.position, detail: "\(word)() takes what a to-many relationship leads to",
          hint: "Write count(relationship), or \(lower)(relationship.attribute).")
      }
    } else if !MappingFunctions.scalar.contains(lower) {
      throw MappingExpressionProblem(
        position: token.position, detail: "there is no function \(word)()",
        hint: Self.hint(word, lower), isMissingFunction: true)
    }
    if lower == "printf" || lower == "format" { try checkFormat(token) }
    output.append(word)
    index += 1
  }

  private static func hint(_ word: String, _ lower: String) -> String {
    switch lower {
    case "random", "randomblob":
      "A migration that is repeated must give the same values; write uuid() for an identifier, or primaryKey()."
    default: NameSuggestion.hint(for: word, among: MappingFunctions.names, "functions") + " Others need a policy."
    }
  }

  /// Whether there is a comma between the parentheses that open after the current piece.
  private func hasSeveralArguments() -> Bool {
    var open = 0
    for token in tokens[(index + 1)...] {
      if token.isSymbol("(") { open += 1 }
      if token.isSymbol(")") { open -= 1 }
      if open == 0 { return false }
      if open == 1, token.isSymbol(",") { return true }
    }
    return false
  }

  /// A format could ask for text of any length.
  private func checkFormat(_ token: MappingExpressionToken) throws(MappingExpressionProblem) {
    guard case .literal(let format)? = self.token(2)?.kind, format.hasPrefix("'"), !format.contains("*"),
      !format.split(whereSeparator: { !$0.isNumber }).contains(where: { $0.count > 3 })
    else {
      throw MappingExpressionProblem(
        position: token.position, detail: "the format must be a text in quotes, with widths of at most three digits",
        hint: "Write a format such as '%04d-%02d'.")
    }
  }

  private mutating func property(_ token: MappingExpressionToken) throws(MappingExpressionProblem) {
    guard let (names, end) = path(at: index) else {
      throw MappingExpressionProblem(position: token.position, detail: "a name must follow the point")
    }
    if tokens.indices.contains(end), tokens[end].isSymbol("(") {
      throw MappingExpressionProblem(position: token.position, detail: "a property is not a function")
    }
    output.append(
      try paths.value(
        names, of: entityName, position: token.position, isTestedForNil: isNilTest(at: end)))
    if let first = names.first { properties.insert(first) }
    index = end
  }

  /// Whether `IS NULL` or `IS NOT NULL` stands at a piece.
  private func isNilTest(at start: Int) -> Bool {
    let words = tokens[min(start, tokens.count)...].prefix(3).map { token in
      if case .word(let word) = token.kind { word.lowercased() } else { "" }
    }
    return words.starts(with: ["is", "null"]) || words == ["is", "not", "null"]
  }
}
