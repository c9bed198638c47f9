import Platform

/// The file checksums of a bag: `manifest-sha256.txt`, in the form of `sha256sum -c`.
///
/// Source: RFC 8493, section 2.1.3. Carriage returns, line feeds and percent signs in names are percent-encoded.
package struct BagManifest: Sendable, Hashable {
  package private(set) var sums: [String: String] = [:]

  package static let lengthLimit = 16 << 20

  package init() {}

  package mutating func add(_ path: String, sha256: String) { sums[path] = sha256 }

  package var text: String {
    sums.sorted { $0.key < $1.key }.map { "\($0.value)  \(Self.encoded($0.key))\n" }.joined()
  }

  /// Parses a manifest; nil if malformed or with a repeated file.
  package init?(_ bytes: [UInt8]) {
    guard let text = String(utf8: bytes) else { return nil }
    for line in text.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline) {
      let digits = line.prefix(64)
      let path = line.dropFirst(64).drop { $0 == " " || $0 == "*" || $0 == "\t" }
      guard digits.utf8.count == 64, digits.utf8.allSatisfy(Self.isHexadecimal), line.dropFirst(64).first == " ",
        !path.isEmpty, let name = Self.decoded(path), sums.updateValue(digits.lowercased(), forKey: name) == nil
      else { return nil }
    }
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...102).contains(byte) || (65...70).contains(byte)
  }

  private static func encoded(_ path: String) -> String {
    path.replacing("%", with: "%25").replacing("\n", with: "%0A").replacing("\r", with: "%0D")
  }

  private static func decoded(_ path: Substring) -> String? {
    var result = ""
    var rest = path
    while let percent = rest.firstIndex(of: "%") {
      result += rest[..<percent]
      let code = rest[percent...].prefix(3).dropFirst().uppercased()
      switch code {
      case "25": result += "%"
      case "0A": result += "\n"
      case "0D": result += "\r"
      default: return nil
      }
      rest = rest[percent...].dropFirst(3)
    }
    return result + rest
  }
}
