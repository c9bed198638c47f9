import Foundation
import Platform

/// The digest that servers compare the body of a request with.
enum ContentDigest {
  /// The MD5 of bytes in base64, as the field `Content-MD5` has it (RFC 1864).
  ///
  /// It is no proof against intent; the signature covers the SHA-256.
  static func md5(_ bytes: ArraySlice<UInt8>) -> String {
    Data(Insecure.MD5.hash(data: bytes)).base64EncodedString()
  }
}
