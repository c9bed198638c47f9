internal import Compatibility
import Foundation

/// The names that are taken from an archive: relative, without anything that a system could read otherwise.
enum ArchiveName {
  /// The parts of a name; a slash at its end is dropped.
  ///
  /// - Throws: `archive-name` for absolute names, dot segments, backslashes, control characters, names of more than 255 bytes
  ///   a part or 16 parts (what is made of them must be easy to remove again), names that Windows keeps for devices, and names that are not UTF-8.
  static func components(_ bytes: [UInt8]) throws(ArchiveError) -> [String] {
    guard let name = String(utf8: bytes) else {
      throw ArchiveError(.name, "a name is not UTF-8")
    }
    var parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    if parts.count > 1, parts.last == "" { parts.removeLast() }
    if parts.count > 1, parts.first == "." { parts.removeFirst() }
    guard parts.count <= 16 else { throw ArchiveError(.name, "a name has more than 16 parts") }
    for part in parts {
      guard !part.isEmpty, part != ".", part != "..", part.utf8.count <= 255 else { throw refusal(name) }
      let isPlain = part.unicodeScalars.allSatisfy { scalar in
        scalar.value >= 0x20 && scalar.value != 0x7f && scalar != "\\" && scalar != ":"
          && scalar.properties.generalCategory != .format && scalar.properties.generalCategory != .control
      }
      guard isPlain, part.last != ".", part.last != " " else { throw refusal(name) }
    }
    return parts
  }

  /// A spelling that is the same for names which some file system takes for one.
  static func folded(_ name: String) -> String { name.precomposedStringWithCanonicalMapping.lowercased() }

  private static func refusal(_ name: String) -> ArchiveError {
    let shown = String(name.unicodeScalars.prefix(80).map { $0.isASCII && $0.value >= 0x20 ? Character($0) : "?" })
    return ArchiveError(.name, "the name \"\(shown)\" is not one that a bundle has")
  }
}
