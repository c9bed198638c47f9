import Cryptography

/// A SHA-256 of bytes that come one after the other.
package struct RunningDigest: Sendable {
  private var hasher = SHA256()

  /// The digest of nothing yet.
  package init() {}

  /// Adds bytes.
  package mutating func add(_ bytes: [UInt8]) { hasher.update(data: bytes) }

  /// Adds bytes.
  package mutating func add(_ bytes: ArraySlice<UInt8>) { hasher.update(data: bytes) }

  /// The digest of everything so far.
  package var value: FileDigest { FileDigest(hasher.finalize()) }

  /// The same in hexadecimal digits.
  package var hexadecimal: String { value.hexadecimal }
}
