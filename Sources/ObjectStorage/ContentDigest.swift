import Foundation
import Platform

enum ContentDigest {
  /// The base64 MD5 for `Content-MD5` (RFC 1864).
  ///
  /// It does not protect against intent; the signature covers the SHA-256.
  static func md5(_ bytes: ArraySlice<UInt8>) -> String {
    Data(Insecure.MD5.hash(data: bytes)).base64EncodedString()
  }
}
