internal import Cryptography
internal import StoreFiles

/// The version hash of an entity: the 32 bytes by which Core Data recognizes what a store was written with.
public struct VersionHash: Sendable, Hashable, CustomStringConvertible {
  /// The 32 bytes.
  public let bytes: [UInt8]

  /// A hash from its 32 bytes; nil where there are not 32 of them.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.bytes = bytes
  }

  /// A hash from 64 hexadecimal digits; nil where the text is anything else.
  public init?(hex: String) {
    guard let bytes = [UInt8](hexadecimal: hex) else { return nil }
    self.init(bytes: bytes)
  }

  /// The SHA-256 of a message.
  init(of message: [UInt8]) { bytes = Array(SHA256.hash(data: message)) }

  /// The hash as 64 lower-case hexadecimal digits.
  public var hex: String { bytes.hexadecimal }

  /// The hash in base 64, as Xcode shows it.
  public var base64: String { Base64.text(of: bytes) }

  /// The hash as hexadecimal digits.
  public var description: String { hex }
}

/// Base 64 with padding, as model checksums are written.
enum Base64 {
  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func text(of bytes: [UInt8]) -> String {
    var out: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      var bits: UInt32 = 0
      for index in 0..<3 { bits = bits << 8 | UInt32(index < group.count ? group[start + index] : 0) }
      for index in 0..<4 {
        out.append(index <= group.count ? letters[Int(bits >> (18 - 6 * UInt32(index)) & 63)] : UInt8(ascii: "="))
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}

/// Text in the order that Core Data sorts names by: UTF-16 code unit by code unit, capital letters before small ones.
package func precedesByCodeUnit(_ first: String, _ second: String) -> Bool {
  first.utf16.lexicographicallyPrecedes(second.utf16)
}

extension Sequence<String> {
  /// The names in the order of their code units, sorted by code that is compiled once.
  package func inCodeUnitOrder() -> [String] { sorted(by: precedesByCodeUnit) }
}
