internal import Platform

/// A JSON text (RFC 8259) as a tree with key order and line numbers.
///
/// Depth is bounded, keys are unique, and numbers keep their spelling.
struct JSONTree: Sendable, Hashable {
  indirect enum Value: Sendable, Hashable {
    case null
    case boolean(Bool)
    case number(String)
    case string(String)
    case array([JSONTree])
    case object([Member])
  }

  struct Member: Sendable, Hashable {
    var key: String
    var value: JSONTree
  }

  var value: Value

  /// From 1; 0 if not read.
  var line = 0

  subscript(key: String) -> JSONTree? {
    guard case .object(let members) = value else { return nil }
    return members.first { $0.key == key }?.value
  }

  /// Sets the value of a key, in its place or at the end.
  mutating func set(_ key: String, to new: JSONTree) {
    guard case .object(var members) = value else { return }
    if let index = members.firstIndex(where: { $0.key == key }) {
      members[index].value = new
    } else {
      members.append(Member(key: key, value: new))
    }
    value = .object(members)
  }

  static func text(_ text: String) -> JSONTree { JSONTree(value: .string(text)) }

  var kindName: String {
    switch value {
    case .null: "null"
    case .boolean: "true or false"
    case .number: "a number"
    case .string: "a text"
    case .array: "a list"
    case .object: "an object"
    }
  }

  // MARK: Writing

  func text(indent: String = "") -> String {
    let inner = indent + "  "
    switch value {
    case .null: return "null"
    case .boolean(let flag): return flag ? "true" : "false"
    case .number(let digits): return digits
    case .string(let text): return Self.quoted(text)
    case .array(let items):
      if items.isEmpty { return "[]" }
      return "[\n" + items.map { inner + $0.text(indent: inner) }.joined(separator: ",\n") + "\n\(indent)]"
    case .object(let members):
      if members.isEmpty { return "{}" }
      let lines = members.map { "\(inner)\(Self.quoted($0.key)): \($0.value.text(indent: inner))" }
      return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case "\r": result += "\\r"
      default:
        if scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) {
          let digits = String(scalar.value, radix: 16)
          result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        } else {
          result.unicodeScalars.append(scalar)
        }
      }
    }
    return result + "\""
  }
}

// MARK: Reading

/// Reads a JSON text of bounded depth; never traps.
struct JSONTreeReader {
  struct Problem: Error {
    var line: Int
    var detail: String
  }

  private static let depthLimit = 32

  private let bytes: [UInt8]
  private var offset = 0
  private var line = 1

  static func read(_ bytes: [UInt8]) throws(Problem) -> JSONTree {
    guard String(utf8: bytes) != nil else { throw Problem(line: 1, detail: "the file is no UTF-8 text") }
    var reader = JSONTreeReader(bytes: bytes)
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { reader.offset = 3 }
    let tree = try reader.value(depth: 0)
    reader.skipSpace()
    guard reader.offset == bytes.count else { throw reader.problem("something follows the end of the object") }
    return tree
  }

  private func problem(_ detail: String) -> Problem { Problem(line: line, detail: detail) }

  private var byte: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  private mutating func skipSpace() {
    while let next = byte, next == 0x20 || next == 0x09 || next == 0x0A || next == 0x0D {
      if next == 0x0A { line += 1 }
      offset += 1
    }
  }

  private mutating func takes(_ character: Character) -> Bool {
    skipSpace()
    guard byte == character.asciiValue else { return false }
    offset += 1
    return true
  }

  private mutating func value(depth: Int) throws(Problem) -> JSONTree {
    guard depth < Self.depthLimit else {
      throw problem("objects and lists are nested more than \(Self.depthLimit) deep")
    }
    skipSpace()
    let start = line
    guard let first = byte else { throw problem("the file ends where a value is expected") }
    switch first {
    case UInt8(ascii: "{"): return JSONTree(value: .object(try members(depth)), line: start)
    case UInt8(ascii: "["): return JSONTree(value: .array(try items(depth)), line: start)
    case UInt8(ascii: "\""): return JSONTree(value: .string(try string()), line: start)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      return JSONTree(value: .number(try number()), line: start)
    default: return JSONTree(value: try word(), line: start)
    }
  }

  private mutating func members(_ depth: Int) throws(Problem) -> [JSONTree.Member] {
    offset += 1
    var result: [JSONTree.Member] = []
    var keys: Set<String> = []
    if takes("}") { return result }
    repeat {
      skipSpace()
      guard byte == UInt8(ascii: "\"") else { throw problem("a key in quotes is expected") }
      let key = try string()
      guard keys.insert(key).inserted else { throw problem("the key \"\(key)\" comes twice") }
      guard takes(":") else { throw problem("a colon is expected after the key \"\(key)\"") }
      result.append(JSONTree.Member(key: key, value: try value(depth: depth + 1)))
    } while takes(",")
    guard takes("}") else { throw problem("a comma or the end of the object is expected") }
    return result
  }

  private mutating func items(_ depth: Int) throws(Problem) -> [JSONTree] {
    offset += 1
    var result: [JSONTree] = []
    if takes("]") { return result }
    repeat { result.append(try value(depth: depth + 1)) } while takes(",")
    guard takes("]") else { throw problem("a comma or the end of the list is expected") }
    return result
  }

  private mutating func word() throws(Problem) -> JSONTree.Value {
    for (text, value) in [
      ("null", JSONTree.Value.null), ("true", .boolean(true)), ("false", .boolean(false)),
    ] where bytes[offset...].starts(with: text.utf8) {
      offset += text.utf8.count
      return value
    }
    throw problem("a value is expected")
  }

  private mutating func number() throws(Problem) -> String {
    let start = offset
    func isPart(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte) }
    while let next = byte, isPart(next) { offset += 1 }
    let text = String(decoding: bytes[start..<offset], as: UTF8.self)
    let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    let startsWell = digits.hasPrefix("0") ? digits.count == 1 || !(digits.dropFirst().first?.isNumber ?? false) : true
    guard let value = Double(text), value.isFinite, startsWell, digits.first?.isNumber == true, !text.hasSuffix("."),
      text.utf8.count <= 64
    else { throw problem("this is no number") }
    return text
  }

  private mutating func string() throws(Problem) -> String {
    offset += 1
    var content: [UInt8] = []
    while let next = byte {
      offset += 1
      switch next {
      case UInt8(ascii: "\""): return String(decoding: content, as: UTF8.self)
      case UInt8(ascii: "\\"): content += try escape()
      case 0..<0x20: throw problem("a line break or control character in a text must be written as an escape")
      default: content.append(next)
      }
    }
    throw problem("the text that begins here has no end")
  }

  private mutating func escape() throws(Problem) -> [UInt8] {
    guard let next = byte else { throw problem("the text has no end") }
    offset += 1
    switch next {
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [next]
    case UInt8(ascii: "u"):
      var code = try hexadecimal()
      if (0xD800..<0xDC00).contains(code), bytes[offset...].starts(with: "\\u".utf8) {
        offset += 2
        let low = try hexadecimal()
        guard (0xDC00..<0xE000).contains(low) else { throw problem("half of a surrogate pair") }
        code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(code) else { throw problem("half of a surrogate pair") }
      return Array(String(Character(scalar)).utf8)
    default: throw problem("there is no such escape")
    }
  }

  private mutating func hexadecimal() throws(Problem) -> UInt32 {
    let digits = bytes[offset...].prefix(4)
    guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let code = UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw problem("four hexadecimal digits are expected") }
    offset += 4
    return code
  }
}
