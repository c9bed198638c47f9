internal import Cryptography
internal import Foundation
internal import HTTPServer

/// The secret by which a sender is known: shown once, kept only as its SHA-256.
package struct SenderToken: Sendable {
  /// 64 hexadecimal digits behind `lzi_`, by which scanners of repositories can know it.
  package let text: String

  /// A token from the system's generator.
  package static func random() -> SenderToken { SenderToken(text: "lzi_" + Token.random().text) }

  /// The SHA-256 of it.
  package var sum: [UInt8] { Self.sum(of: text) }

  /// The SHA-256 of a text; of one that is far too long, that of its beginning, which is no token's.
  static func sum(of text: String) -> [UInt8] { Array(SHA256.hash(data: Data(text.utf8.prefix(4096)))) }

  /// Whether two sums are the same; how long that takes does not tell where they differ.
  static func matches(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in left.indices { difference |= left[index] ^ right[index] }
    return difference == 0
  }
}
