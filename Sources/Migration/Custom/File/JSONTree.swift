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
    get {
      guard case .object(let members) = value else { return nil }
      return members.first { $0.key == key }?.value
    }
    set {
      guard case .object(var members) = value else { return }
      if let index = members.firstIndex(where: { $0.key == key }) {
        if let newValue { members[index].value = newValue } else { members.remove(at: index) }
      } else if let newValue {
        members.append(Member(key: key, value: newValue))
      }
      value = .object(members)
    }
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
