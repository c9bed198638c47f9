/// HTML: literals are markup, values are escaped.
///
/// `"<td title=\"\(name)\">\(value)</td>"` is safe in content and quoted attributes. Interpolate addresses as
/// ``RequestTarget``, so that no value becomes a scheme.
package struct HTML: Sendable, Hashable {
  package private(set) var text: String

  private init(markup: String) { text = markup }

  package static let empty = HTML(markup: "")

  package init(escaping value: some StringProtocol) { text = Self.escaped(String(value)) }

  package static func + (left: HTML, right: HTML) -> HTML { HTML(markup: left.text + right.text) }

  package static func += (left: inout HTML, right: HTML) { left.text += right.text }

  /// Escapes for content and quoted attributes.
  ///
  /// Forbidden control characters become U+FFFD; U+2068 and U+2069 isolate bidirectional ones.
  static func escaped(_ value: String) -> String {
    if isPlain(value) { return value }
    var result = ""
    var turns = false
    for scalar in value.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      case "`": result += "&#96;"
      case "\t", "\n", "\r": result.unicodeScalars.append(scalar)
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}": result += "\u{FFFD}"
      case "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}":
        turns = true
        result.unicodeScalars.append(scalar)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return turns ? "\u{2068}\(result)\u{2069}" : result
  }

  /// Whether the text needs no escaping: a fast path for most.
  private static func isPlain(_ text: String) -> Bool {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "'"),
        UInt8(ascii: "`"), 0x7F:
        return false
      // 0xC2 starts U+0080 to U+00BF, with control characters; 0xE2 starts bidirectional controls.
      case 0..<0x20 where byte != 0x09 && byte != 0x0A && byte != 0x0D, 0xC2, 0xE2: return false
      default: continue
      }
    }
    return true
  }
}

extension HTML: ExpressibleByStringInterpolation {
  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    package init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

    package mutating func appendLiteral(_ literal: String) { text += literal }

    package mutating func appendInterpolation(_ value: String) { text += HTML.escaped(value) }

    package mutating func appendInterpolation(_ value: Substring) { text += HTML.escaped(String(value)) }

    package mutating func appendInterpolation(_ number: some BinaryInteger) { text += String(number) }

    package mutating func appendInterpolation(_ html: HTML) { text += html.text }

    package mutating func appendInterpolation(_ pieces: some Sequence<HTML>) {
      for piece in pieces { text += piece.text }
    }

    package mutating func appendInterpolation(_ target: RequestTarget) {
      text += HTML.escaped(target.path + target.query.text)
    }
  }

  package init(stringLiteral value: String) { self.init(markup: value) }

  package init(stringInterpolation: StringInterpolation) { self.init(markup: stringInterpolation.text) }
}
