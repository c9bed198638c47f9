import Compatibility
import StoreFiles

/// How texts stand in the addresses of requests and are signed.
///
/// (Amazon S3 API Reference, "Signature Calculations for the Authorization Header", UriEncode.)
package enum PercentEncoding {
  /// A text in which every byte of UTF-8 but the unreserved ones is encoded, with upper-case digits.
  ///
  /// - Parameter keepsSlashes: whether slashes stand for themselves, as in the keys of objects.
  package static func encode(_ text: String, keepsSlashes: Bool = false) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    encoded.reserveCapacity(text.utf8.count)
    for byte in text.utf8 {
      if isUnreserved(byte) || keepsSlashes && byte == UInt8(ascii: "/") {
        encoded.append(byte)
      } else {
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// The text that was encoded; nil where it was not, or gives no valid UTF-8.
  ///
  /// A plus sign stands for a space.
  package static func decode(_ text: String) -> String? {
    var decoded: [UInt8] = []
    var bytes = Array(text.utf8)[...]
    while let byte = bytes.popFirst() {
      switch byte {
      case UInt8(ascii: "%"):
        guard bytes.count >= 2, let value = [UInt8](hexadecimal: Array(bytes.prefix(2)))?.first else { return nil }
        decoded.append(value)
        bytes = bytes.dropFirst(2)
      case UInt8(ascii: "+"): decoded.append(UInt8(ascii: " "))
      default: decoded.append(byte)
      }
    }
    return String(utf8: decoded)
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
