/// A piece of HTML: what is written in the source is taken as it is, what is interpolated is escaped.
///
/// `"<td title=\"\(name)\">\(value)</td>"` is safe for any value, in content and in quoted attributes. Only another
/// `HTML` is interpolated as it is. Addresses are interpolated as ``RequestTarget``, so that no value becomes a scheme.
package struct HTML: Sendable, Hashable {
  /// The markup.
  package private(set) var text: String

  private init(markup: String) { text = markup }

  /// No markup.
  package static let empty = HTML(markup: "")

  /// A value as text.
  package init(escaping value: some StringProtocol) { text = Self.escaped(String(value)) }

  /// One piece behind the other.
  package static func + (left: HTML, right: HTML) -> HTML { HTML(markup: left.text + right.text) }

  /// Adds a piece.
  package static func += (left: inout HTML, right: HTML) { left.text += right.text }

  /// A text with every character replaced that could end an element's content or a quoted attribute.
  ///
  /// Control characters that HTML does not allow become U+FFFD; those that turn the direction of text around stay
  /// within their element by U+2068 and U+2069 where they occur.
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
}

extension HTML {
  /// Whether a text, in UTF-8, can stand as it is: most do, and are not looked at character by character.
  private static func isPlain(_ text: String) -> Bool {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "'"),
        UInt8(ascii: "`"), 0x7F:
        return false
      // 0xC2 begins U+0080 to U+00BF, with control characters; 0xE2 begins the signs that turn the direction of text.
      case 0..<0x20 where byte != 0x09 && byte != 0x0A && byte != 0x0D, 0xC2, 0xE2: return false
      default: continue
      }
    }
    return true
  }
}

extension HTML: ExpressibleByStringInterpolation {
  /// What a literal is put together with.
  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    package init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

    package mutating func appendLiteral(_ literal: String) { text += literal }

    /// A value, escaped.
    package mutating func appendInterpolation(_ value: String) { text += HTML.escaped(value) }

    /// A part of a text, escaped.
    package mutating func appendInterpolation(_ value: Substring) { text += HTML.escaped(String(value)) }

    /// A number.
    package mutating func appendInterpolation(_ number: some BinaryInteger) { text += String(number) }

    /// Markup that is safe already.
    package mutating func appendInterpolation(_ html: HTML) { text += html.text }

    /// Pieces of markup, one behind the other.
    package mutating func appendInterpolation(_ pieces: some Sequence<HTML>) {
      for piece in pieces { text += piece.text }
    }

    /// An address on this server, in a quoted attribute.
    package mutating func appendInterpolation(_ target: RequestTarget) {
      text += HTML.escaped(target.path + target.query.text)
    }
  }

  /// Markup from a literal in the source.
  package init(stringLiteral value: String) { self.init(markup: value) }

  /// Markup from a literal with values in it.
  package init(stringInterpolation: StringInterpolation) { self.init(markup: stringInterpolation.text) }
}
