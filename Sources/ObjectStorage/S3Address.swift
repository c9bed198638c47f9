import Platform

/// A bucket or a prefix in it: `s3://bucket/prefix`.
///
/// Free of secrets, so it can be shown and logged.
package struct S3Address: Sendable, Hashable, CustomStringConvertible {
  package let bucket: String

  /// The key prefix without outer slashes; empty for the whole bucket.
  package let prefix: String

  package static let scheme = "s3://"

  /// In bytes; a key has at most 1,024, and names follow the prefix.
  private static let longestPrefix = 700

  /// Parses an address.
  ///
  /// - Throws: `s3-address`, without a text that may hold a secret.
  package init(_ text: String) throws(S3Error) {
    guard text.hasPrefix(Self.scheme) else { throw Self.refused("it does not begin with s3://") }
    let rest = text.dropFirst(Self.scheme.count)
    // `user:secret@` must not be shown.
    guard !rest.contains("@") else { throw Self.refused("it contains @, and credentials are no part of an address") }
    guard !rest.contains(where: { $0 == "?" || $0 == "#" }) else { throw Self.refused("it contains ? or #") }
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    let bucket = String(rest[..<slash])
    guard Self.isBucket(bucket) else { throw Self.refused("\(printable(bucket)) is not a name that a bucket can have") }
    self.bucket = bucket
    var prefix = rest[slash...].dropFirst()
    if prefix.last == "/" { prefix.removeLast() }
    guard prefix.utf8.count <= Self.longestPrefix else { throw Self.refused("its prefix is too long") }
    let parts = prefix.split(separator: "/", omittingEmptySubsequences: false)
    guard prefix.isEmpty || parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }) else {
      throw Self.refused("a part of its prefix is empty, . or ..")
    }
    guard prefix.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }) else {
      throw Self.refused("its prefix contains control characters")
    }
    self.prefix = String(prefix)
  }

  package func key(_ name: String) -> String { prefix.isEmpty ? name : "\(prefix)/\(name)" }

  package var description: String { Self.scheme + bucket + (prefix.isEmpty ? "" : "/" + prefix) }

  /// Whether a name follows Amazon's rules: 3 to 63 lower-case letters, digits, dots and hyphens, the first and last a
  /// letter or digit.
  ///
  /// (Amazon S3 User Guide, "General purpose bucket naming rules".)
  private static func isBucket(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    guard (3...63).contains(bytes.count), let first = bytes.first, let last = bytes.last else { return false }
    func isAlphanumeric(_ byte: UInt8) -> Bool { (97...122).contains(byte) || (48...57).contains(byte) }
    guard isAlphanumeric(first), isAlphanumeric(last), !name.contains("..") else { return false }
    return bytes.allSatisfy { isAlphanumeric($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-") }
  }

  private static func refused(_ detail: String) -> S3Error {
    S3Error(.address, operation: "read the address of the object storage", detail: detail)
  }
}
