/// Parses the expression and predicate format of model sources.
///
/// Rejects unknown syntax, so callers keep the text.
package struct FormatParser {
  private var scanner: FormatScanner
  private var token: FormatScanner.Token
  private var isBroken = false
  private var depth = 0

  /// The remaining signs: each nests without parentheses.
  private var signBudget = 256

  private static let maximumLength = 16_384
  private static let maximumDepth = 40

  package static func expression(_ text: String) -> ModelExpression? { parsed(text) { $0.sum() } }

  package static func predicate(_ text: String) -> ModelPredicate? { parsed(text) { $0.disjunction() } }

  private static func parsed<Value>(_ text: String, _ parse: (inout FormatParser) -> Value) -> Value? {
    guard text.utf8.count <= maximumLength else { return nil }
    var parser = FormatParser(text)
    let result = parse(&parser)
    return parser.isBroken || parser.token != .end ? nil : result
  }

  private init(_ text: String) {
    scanner = FormatScanner(text)
    token = .end
    advance()
  }

  private mutating func advance() {
    if let next = scanner.next() {
      token = next
    } else {
      isBroken = true
      token = .end
    }
  }

  private mutating func fail() -> ModelExpression {
    isBroken = true
    token = .end
    return .constant(.null)
  }

  private mutating func accept(sign: String) -> Bool {
    guard token == .sign(sign) else { return false }
    advance()
    return true
  }

  private mutating func accept(arithmetic sign: String) -> Bool {
    guard accept(sign: sign) else { return false }
    signBudget -= 1
    if signBudget < 0 { isBroken = true }
    return true
  }

  private mutating func accept(word: String) -> Bool {
    guard case .word(let text) = token, text.uppercased() == word else { return false }
    advance()
    return true
  }

  private mutating func enter() -> Bool {
    depth += 1
    if depth > Self.maximumDepth { isBroken = true }
    return !isBroken
  }

  // MARK: Predicates

  private mutating func disjunction() -> ModelPredicate {
    var parts = [conjunction()]
    while !isBroken, accept(word: "OR") || accept(sign: "||") { parts.append(conjunction()) }
    return parts.count == 1 ? parts[0] : .or(parts)
  }

  private mutating func conjunction() -> ModelPredicate {
    var parts = [negation()]
    while !isBroken, accept(word: "AND") || accept(sign: "&&") { parts.append(negation()) }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  private mutating func negation() -> ModelPredicate {
    guard enter() else { return .always(false) }
    defer { depth -= 1 }
    if accept(word: "NOT") || accept(sign: "!") { return .not(negation()) }
    if accept(word: "TRUEPREDICATE") { return .always(true) }
    if accept(word: "FALSEPREDICATE") { return .always(false) }
    if token == .sign("(") {
      let saved = self
      advance()
      let inner = disjunction()
      if !isBroken, accept(sign: ")"), !startsComparison { return inner }
      self = saved
    }
    return comparison()
  }

  private var startsComparison: Bool {
    if comparisonSign != nil { return true }
    guard case .sign(let text) = token else { return false }
    return ["+", "-", "*", "/", "**"].contains(text)
  }

  private var comparisonSign: ModelPredicate.Comparison? {
    switch token {
    case .sign(let text): Self.comparisonSigns[text]
    case .word(let text): Self.comparisonWords[text.uppercased()]
    case .number, .string, .variable, .end: nil
    }
  }

  private mutating func comparison() -> ModelPredicate {
    var modifier = ModelPredicate.Modifier.direct
    if accept(word: "ANY") || accept(word: "SOME") {
      modifier = .any
    } else if accept(word: "ALL") {
      modifier = .all
    }
    let left = sum()
    guard !isBroken, let found = comparisonSign else {
      _ = fail()
      return .always(false)
    }
    advance()
    var options = 0
    if accept(sign: "[") {
      if case .word(let letters) = token {
        for letter in letters { options |= ["c": 1, "d": 2, "n": 4, "l": 8][letter] ?? 0 }
        advance()
      }
      if !accept(sign: "]") { isBroken = true }
    }
    return .comparison(left, found, sum(), modifier: modifier, options: options)
  }

  private static let comparisonSigns: [String: ModelPredicate.Comparison] = [
    "<": .lessThan, "<=": .lessThanOrEqual, "=<": .lessThanOrEqual, ">": .greaterThan, ">=": .greaterThanOrEqual,
    "=>": .greaterThanOrEqual, "=": .equal, "==": .equal, "!=": .notEqual, "<>": .notEqual,
  ]

  private static let comparisonWords: [String: ModelPredicate.Comparison] = [
    "MATCHES": .matches, "LIKE": .like, "BEGINSWITH": .beginsWith, "ENDSWITH": .endsWith, "IN": .isIn,
    "CONTAINS": .contains, "BETWEEN": .between,
  ]

  // MARK: Expressions

  private mutating func sum() -> ModelExpression {
    guard enter() else { return fail() }
    defer { depth -= 1 }
    var left = product()
    while !isBroken {
      if accept(arithmetic: "+") {
        left = .function("add:to:", [left, product()])
      } else if accept(arithmetic: "-") {
        left = .function("from:subtract:", [left, product()])
      } else {
        break
      }
    }
    return left
  }

  private mutating func product() -> ModelExpression {
    var left = operand()
    while !isBroken {
      if accept(arithmetic: "*") {
        left = .function("multiply:by:", [left, operand()])
      } else if accept(arithmetic: "/") {
        left = .function("divide:by:", [left, operand()])
      } else if accept(arithmetic: "**") {
        left = .function("raise:toPower:", [left, operand()])
      } else {
        break
      }
    }
    return left
  }

  private mutating func operand() -> ModelExpression {
    switch token {
    case .number(let digits):
      advance()
      return number(digits)
    case .string(let text):
      advance()
      return .constant(.string(text))
    case .variable(let name):
      advance()
      return path(after: .variable(name))
    case .word(let word):
      advance()
      return named(word)
    case .sign("-"):
      advance()
      if case .number(let digits) = token {
        advance()
        return number("-" + digits)
      }
      return fail()
    case .sign("("):
      advance()
      let inner = sum()
      return accept(sign: ")") ? path(after: inner) : fail()
    case .sign("{"):
      advance()
      return .aggregate(list(closedBy: "}"))
    case .sign, .end: return fail()
    }
  }

  private mutating func number(_ digits: String) -> ModelExpression {
    if let whole = Int64(digits) { return .constant(.integer(whole)) }
    if let real = Double(digits) { return .constant(.real(real)) }
    return fail()
  }

  /// Parses `$FETCH_SOURCE.alias`.
  private mutating func path(after base: ModelExpression) -> ModelExpression {
    guard accept(sign: ".") else { return base }
    guard case .word(let path) = token else { return fail() }
    advance()
    if path.hasSuffix(".@count") { return .function("count:", [.keyPathOf(base, String(path.dropLast(7)))]) }
    return .keyPathOf(base, path)
  }

  private mutating func named(_ word: String) -> ModelExpression {
    if token == .sign("("), let special = special(word.uppercased()) { return special }
    // Selectors may have parts: `count:(…)`, `add:to:(…)`, `now()`.
    var selector = word
    while accept(sign: ":") {
      selector += ":"
      if case .word(let part) = token {
        selector += part
        advance()
      }
    }
    if accept(sign: "(") { return .function(selector, list(closedBy: ")")) }
    guard selector == word else { return fail() }
    switch word.uppercased() {
    case "SELF": return .selfObject
    case "NIL", "NULL": return .constant(.null)
    case "YES", "TRUE": return .constant(.boolean(true))
    case "NO", "FALSE": return .constant(.boolean(false))
    default: break
    }
    guard !word.hasSuffix("."), !word.contains("..") else { return fail() }
    // `path.@count` is stored and hashed as `count:(path)`; checked against stored hashes.
    if word.hasSuffix(".@count") { return .function("count:", [.keyPath(String(word.dropLast(7)))]) }
    return .keyPath(word.uppercased().hasPrefix("SELF.") ? String(word.dropFirst(5)) : word)
  }

  /// Parses function-like forms; nil for other words.
  private mutating func special(_ word: String) -> ModelExpression? {
    guard ["FUNCTION", "CAST", "TERNARY", "FETCH"].contains(word) else { return nil }
    // Each has own parentheses, which `sum` does not count.
    guard enter() else { return fail() }
    defer { depth -= 1 }
    advance()
    if word == "TERNARY" {
      let predicate = disjunction()
      guard accept(sign: ",") else { return fail() }
      let first = sum()
      guard accept(sign: ",") else { return fail() }
      let second = sum()
      return accept(sign: ")") ? .conditional(predicate, first, second) : fail()
    }
    let arguments = list(closedBy: ")")
    switch (word, arguments.count) {
    case ("FUNCTION", 2...):
      guard case .constant(.string(let selector)) = arguments[1] else { return fail() }
      return .message(arguments[0], selector, Array(arguments[2...]))
    case ("CAST", 2): return .function("castObject:toType:", arguments)
    case ("FETCH", 3):
      guard case .constant(.boolean(let isCountOnly)) = arguments[2] else { return fail() }
      return .fetch(request: arguments[0], context: arguments[1], isCountOnly: isCountOnly)
    default: return fail()
    }
  }

  private mutating func list(closedBy end: String) -> [ModelExpression] {
    var elements: [ModelExpression] = []
    if accept(sign: end) { return elements }
    repeat { elements.append(sum()) } while !isBroken && accept(sign: ",")
    if !accept(sign: end) { isBroken = true }
    return elements
  }
}

// MARK: Tokens

struct FormatScanner {
  enum Token: Hashable {
    case word(String)
    case number(String)
    case string(String)
    case variable(String)
    case sign(String)
    case end
  }

  private let scalars: [Unicode.Scalar]
  private var position = 0

  init(_ text: String) { scalars = Array(text.unicodeScalars) }

  /// Returns nil for invalid text.
  mutating func next() -> Token? {
    while position < scalars.count, scalars[position].properties.isWhitespace { position += 1 }
    guard position < scalars.count else { return .end }
    let scalar = scalars[position]
    if Self.startsName(scalar) { return .word(take(while: Self.isName)) }
    if ("0"..."9").contains(scalar) { return number() }
    switch scalar {
    case "$":
      position += 1
      let name = take { Self.isName($0) && $0 != "." }
      return name.isEmpty ? nil : .variable(name)
    case "\"", "'": return string(closedBy: scalar)
    default: return sign()
    }
  }

  private static func startsName(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || scalar == "@" || scalar.properties.isAlphabetic
  }

  private static func isName(_ scalar: Unicode.Scalar) -> Bool {
    startsName(scalar) || scalar == "." || ("0"..."9").contains(scalar)
  }

  private mutating func take(while condition: (Unicode.Scalar) -> Bool) -> String {
    var result = String.UnicodeScalarView()
    while position < scalars.count, condition(scalars[position]) {
      result.append(scalars[position])
      position += 1
    }
    return String(result)
  }

  private mutating func number() -> Token {
    var text = take { ("0"..."9").contains($0) || $0 == "." }
    if position < scalars.count, scalars[position] == "e" || scalars[position] == "E" {
      position += 1
      var sign = ""
      if position < scalars.count, scalars[position] == "-" || scalars[position] == "+" {
        sign = String(scalars[position])
        position += 1
      }
      text += "e" + sign + take { ("0"..."9").contains($0) }
    }
    return .number(text)
  }

  private mutating func string(closedBy quote: Unicode.Scalar) -> Token? {
    position += 1
    var result = String.UnicodeScalarView()
    while position < scalars.count {
      let scalar = scalars[position]
      position += 1
      if scalar == quote { return .string(String(result)) }
      if scalar == "\\", position < scalars.count {
        result.append(scalars[position])
        position += 1
      } else {
        result.append(scalar)
      }
    }
    return nil
  }

  private mutating func sign() -> Token? {
    for length in [2, 1] where position + length <= scalars.count {
      let text = String(String.UnicodeScalarView(scalars[position..<position + length]))
      if Self.signs.contains(text) {
        position += length
        return .sign(text)
      }
    }
    return nil
  }

  private static let signs: Set<String> = [
    "<", "<=", "=<", ">", ">=", "=>", "=", "==", "!=", "<>", "&&", "||", "!", "(", ")", "{", "}", "[", "]", ",", ":",
    ".", "+", "-", "*", "/", "**",
  ]
}
