/// Scans for nesting that would overflow the parser's recursion.
///
/// It knows no grammar; its limits exceed any real code.
struct SourceScan {
  private let bytes: [UInt8]
  private var index = 0

  /// The open brackets and interpolations.
  private var brackets: [(byte: UInt8, isInterpolation: Bool, quote: Quote?)] = []
  private var squares = 0
  private var angles = 0
  private var conditions = 0
  private var prefixes = 0
  private var arrows = 0
  private var alternatives = 0
  private var interpolations = 0

  /// Number signs, and whether multi-line.
  private struct Quote {
    var signs: Int
    var isMultiline: Bool
  }

  private static let maximumBrackets = 100

  /// Each nested square bracket doubles the parser's time.
  private static let maximumSquares = 12

  /// The limit of other nesting syntax.
  private static let maximumRun = 100

  private static let maximumAlternatives = 250

  private static let maximumInterpolations = 12

  /// The words that nest the parser one level deeper.
  private static let prefixWords: Set<String> = [
    "try", "await", "unsafe", "let", "var", "inout", "some", "any", "each", "repeat", "consume", "copy", "borrow",
    "consuming", "borrowing", "sending", "isolated", "if", "else", "switch", "return", "throw", "indirect",
  ]

  private static let declarationWords: Set<String> = ["func", "var", "let", "init", "subscript", "case", "typealias"]

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  static func isBounded(_ bytes: [UInt8]) -> Bool {
    var scan = SourceScan(bytes)
    return scan.run()
  }

  private func byte(_ offset: Int = 0) -> UInt8 { index + offset < bytes.count ? bytes[index + offset] : 0 }

  private mutating func run() -> Bool {
    while index < bytes.count {
      let isFine = step()
      let isShallow =
        brackets.count <= Self.maximumBrackets && squares <= Self.maximumSquares && angles <= Self.maximumRun
        && conditions <= Self.maximumRun && prefixes <= Self.maximumRun && arrows <= Self.maximumRun
        && alternatives <= Self.maximumAlternatives && interpolations <= Self.maximumInterpolations
      guard isFine, isShallow else { return false }
    }
    return true
  }

  private mutating func step() -> Bool {
    let byte = byte()
    switch byte {
    case UInt8(ascii: "/") where self.byte(1) == UInt8(ascii: "/"):
      while index < bytes.count, bytes[index] != 0x0A { index += 1 }
    case UInt8(ascii: "/") where self.byte(1) == UInt8(ascii: "*"): skipComment()
    case UInt8(ascii: "\""): skipText(Quote(signs: 0, isMultiline: false), isOpening: true)
    case UInt8(ascii: "#"): numberSign()
    case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"):
      brackets.append((byte, false, nil))
      if byte == UInt8(ascii: "{") { endStatement() }
      if byte == UInt8(ascii: "[") { squares += 1 }
      prefixes = 0
      index += 1
    case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"): close(byte)
    case UInt8(ascii: ";"):
      endStatement()
      index += 1
    case UInt8(ascii: "<"):
      angles += 1
      index += 1
    case UInt8(ascii: ">"):
      angles = max(0, angles - 1)
      index += 1
    case UInt8(ascii: "-") where self.byte(1) == UInt8(ascii: ">"):
      arrows += 1
      index += 2
    case _ where Self.isWordByte(byte): word()
    default:
      if byte != 0x20, byte != 0x0A, byte != 0x0D, byte != 0x09 { prefixes = 0 }
      index += 1
    }
    return true
  }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...0xFF:
      true
    default: false
    }
  }

  private mutating func endStatement() {
    angles = 0
    arrows = 0
    prefixes = 0
  }

  private mutating func word() {
    let start = index
    while index < bytes.count, Self.isWordByte(bytes[index]) { index += 1 }
    guard index - start <= 16 else {
      prefixes = 0
      return
    }
    let word = String(decoding: bytes[start..<index], as: UTF8.self)
    if word == "else" { alternatives += 1 }
    prefixes = Self.prefixWords.contains(word) ? prefixes + 1 : 0
    if Self.declarationWords.contains(word) {
      angles = 0
      arrows = 0
    }
  }

  private mutating func close(_ byte: UInt8) {
    index += 1
    prefixes = 0
    let last = brackets.popLast()
    if last?.byte == UInt8(ascii: "[") { squares -= 1 }
    if byte == UInt8(ascii: "}") {
      endStatement()
      // Only `else` continues a chain of alternatives.
      var next = index
      while next < bytes.count, [0x20, 0x0A, 0x0D, 0x09].contains(bytes[next]) { next += 1 }
      if !bytes[next...].starts(with: Array("else".utf8)) { alternatives = 0 }
    }
    if let last, last.isInterpolation, let quote = last.quote {
      interpolations -= 1
      skipText(quote, isOpening: false)
    }
  }

  private mutating func skipComment() {
    var depth = 0
    while index < bytes.count {
      if byte() == UInt8(ascii: "/"), byte(1) == UInt8(ascii: "*") {
        depth += 1
        index += 2
      } else if byte() == UInt8(ascii: "*"), byte(1) == UInt8(ascii: "/") {
        depth -= 1
        index += 2
        if depth == 0 { return }
      } else {
        index += 1
      }
    }
  }

  private mutating func numberSign() {
    var signs = 0
    while byte(signs) == UInt8(ascii: "#") { signs += 1 }
    if byte(signs) == UInt8(ascii: "\"") {
      index += signs
      skipText(Quote(signs: signs, isMultiline: false), isOpening: true)
      return
    }
    index += signs
    if bytes[index...].starts(with: Array("if".utf8)) { conditions += 1 }
    if bytes[index...].starts(with: Array("endif".utf8)) { conditions = max(0, conditions - 1) }
  }

  private mutating func skipText(_ quote: Quote, isOpening: Bool) {
    var quote = quote
    if isOpening {
      quote.isMultiline = byte(1) == UInt8(ascii: "\"") && byte(2) == UInt8(ascii: "\"")
      index += quote.isMultiline ? 3 : 1
    }
    while index < bytes.count {
      if byte() == UInt8(ascii: "\\"), hasSigns(quote.signs, at: 1) {
        index += 1 + quote.signs
        if byte() == UInt8(ascii: "(") {
          brackets.append((byte(), true, quote))
          interpolations += 1
          index += 1
          return
        }
        index += 1
      } else if byte() == UInt8(ascii: "\"") {
        let length = quote.isMultiline ? 3 : 1
        let isEnd = (0..<length).allSatisfy { byte($0) == UInt8(ascii: "\"") } && hasSigns(quote.signs, at: length)
        index += isEnd ? length + quote.signs : 1
        if isEnd { return }
      } else if byte() == 0x0A, !quote.isMultiline {
        return
      } else {
        index += 1
      }
    }
  }

  private func hasSigns(_ count: Int, at offset: Int) -> Bool {
    (0..<count).allSatisfy { byte(offset + $0) == UInt8(ascii: "#") }
  }
}
