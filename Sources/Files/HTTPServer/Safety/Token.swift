/// 256 random bits as text for links, cookies and forms.
package struct Token: Sendable, Hashable {
  /// 64 hexadecimal digits.
  package let text: String

  /// A token from the system's generator, which is made for secrets.
  package static func random() -> Token {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// A token from a generator; only the system's keeps a secret.
  package static func random(using generator: inout some RandomNumberGenerator) -> Token {
    let words = (0..<4).map { _ in UInt64.random(in: .min ... .max, using: &generator) }
    return Token(
      text: words.map { word in
        let digits = String(word, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
      }.joined())
  }

  /// Whether a text is this token; how long that takes does not tell where they differ.
  package func matches(_ other: String?) -> Bool {
    let (own, others) = (Array(text.utf8), Array((other ?? "").utf8))
    guard own.count == others.count else { return false }
    var difference: UInt8 = 0
    for index in own.indices { difference |= own[index] ^ others[index] }
    return difference == 0
  }
}
