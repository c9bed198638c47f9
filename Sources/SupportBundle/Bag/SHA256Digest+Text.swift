internal import Crypto

extension SHA256.Digest {
  /// The sum as the lists of a bag have it: 64 lower-case hexadecimal digits.
  var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
