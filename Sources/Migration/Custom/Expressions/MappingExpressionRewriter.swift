internal import PersistentStore

/// Turns an SQL expression over a source entity's properties into one over the columns of its table.
///
/// Only what is known to be harmless gets through: names of properties, literals, operators and functions of a list.
struct MappingExpressionRewriter {
  /// A piece of the result, with the place in the text that it was made of.
  struct Piece {
    let sql: String
    let position: Int
  }

  /// The result.
  struct Rewritten {
    /// The expression over the row `o`.
    var sql: String

    /// The attribute, where the expression is nothing but its name.
    var attribute: PropertyPath?

    /// The properties of the source entity that it reads, by their names and by the paths that begin with them.
    var properties: Set<String>

    /// The pieces in their order; none where the expression is nothing but a name.
    var pieces: [Piece] = []
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

  /// How much had been written when a piece of the text was come to.
  private var marks: [(written: Int, position: Int)] = []

  /// Prepares the rewriting of expressions for a source entity.
  init(_ paths: MappingPathResolver, entity entityName: String, place: String) {
    self.paths = paths
    self.entityName = entityName
    self.place = place
  }

  /// Rewrites an expression.
  mutating func rewrite(_ text: String) throws(MappingExpressionProblem) -> Rewritten {
    tokens = try MappingExpressionScanner.tokens(of: text)
    (index, output, properties, depth, marks) = (0, [], [], 0, [])
    if let path = onlyPath(), let attribute = paths.attribute(path, of: entityName) {
      return Rewritten(
        sql: attribute.sql, attribute: attribute.path, properties: [path[0], attribute.path.description])
    }
    while index < tokens.count { try step() }
    guard depth == 0 else {
      throw MappingExpressionProblem(position: tokens.last?.position ?? 1, detail: "a parenthesis is not closed")
    }
    return Rewritten(
      sql: "(\(output.joined(separator: " ")))", attribute: nil, properties: properties, pieces: pieces())
  }

  private func pieces() -> [Piece] {
    marks.indices.map { place in
      let end = place + 1 < marks.count ? marks[place + 1].written : output.count
      return Piece(
        sql: output[marks[place].written..<end].joined(separator: " "), position: marks[place].position)
    }
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
    marks.append((output.count, token.position))
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
        noteProperty(path)
        index = end + 1
        return
      }
      guard lower == "min" || lower == "max", hasSeveralArguments() else {
        throw MappingExpressionProblem(
          position: token.position, detail: "\(word)() takes what a to-many relationship leads to",
          hint: "Write count(relationship), or \(lower)(relationship.attribute).")
      }
    } else if !MappingFunctions.available.contains(lower) {
      throw MappingExpressionProblem(
        position: token.position, detail: "there is no function \(word)()",
        hint: Self.hint(word, lower), isUnsupported: true)
    }
    if let place = MappingFunctions.dateFunctions[lower] { try checkTime(lower, place, token) }
    if lower == "printf" || lower == "format" { try checkFormat(token) }
    output.append(word)
    index += 1
  }

  /// A date function that speaks of the present gives something else each time.
  private func checkTime(
    _ name: String, _ place: Int, _ token: MappingExpressionToken
  ) throws(MappingExpressionProblem) {
    func problem(_ position: Int, _ detail: String) -> MappingExpressionProblem {
      MappingExpressionProblem(
        position: position, detail: detail + ", which is another each time the migration is repeated",
        hint: "Write NSCoreDataNow() for when the migration began, in seconds since 2001-01-01T00:00:00Z; as text: "
          + "datetime(NSCoreDataNow() + 978307200, 'unixepoch').")
    }
    var open = 0
    var argument = 0
    var isThere = false
    for token in tokens[(index + 1)...] {
      if token.isSymbol(")") { open -= 1 }
      if open == 0, token.isSymbol(")") { break }
      if open == 1, token.isSymbol(",") {
        argument += 1
      } else if open > 0 {
        if argument == place { isThere = true }
        if case .literal(let text) = token.kind {
          let isPresent = text.lowercased() == "'now'"
          let isOmitted =
            argument == place && open == 1 && ["'subsec'", "'subsecond'"].contains(text.lowercased())
          if isPresent || isOmitted { throw problem(token.position, "\(name)() with \(text) tells the present") }
        }
      }
      if token.isSymbol("(") { open += 1 }
    }
    guard isThere else { throw problem(token.position, "\(name)() without a time value tells the present") }
  }

  private static func hint(_ word: String, _ lower: String) -> String {
    switch lower {
    case _ where MappingFunctions.scalar.contains(lower):
      "The SQLite of this process (\(SQLiteLibrary.version)) does not have it."
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
    noteProperty(names)
    index = end
  }

  /// Notes what a path reads: the property by its name, and the leaf of a composite attribute by its path.
  private mutating func noteProperty(_ names: [String]) {
    guard let first = names.first else { return }
    properties.formUnion([first, names.joined(separator: ".")])
  }

  /// Whether `IS NULL` or `IS NOT NULL` stands at a piece.
  private func isNilTest(at start: Int) -> Bool {
    let words = tokens[min(start, tokens.count)...].prefix(3).map { token in
      if case .word(let word) = token.kind { word.lowercased() } else { "" }
    }
    return words.starts(with: ["is", "null"]) || words == ["is", "not", "null"]
  }
}
