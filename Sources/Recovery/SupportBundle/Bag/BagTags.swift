internal import Compatibility

/// The lines of `bagit.txt` and `bag-info.txt`: a label, a colon, a value.
///
/// Source: RFC 8493, sections 2.1.1 and 2.2.2.
package struct BagTags: Sendable, Hashable {
  /// What `bagit.txt` says.
  package static let declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

  /// Labels and values, in their order.
  package private(set) var pairs: [(label: String, value: String)] = []

  /// Nothing yet.
  package init() {}

  /// Adds a line; what would break it is taken out.
  package mutating func add(_ label: String, _ value: String) {
    pairs.append((label, String(value.map { $0.isNewline ? " " : $0 })))
  }

  /// The first value of a label, whatever its case.
  package subscript(_ label: String) -> String? {
    pairs.first { $0.label.lowercased() == label.lowercased() }?.value
  }

  /// The lines.
  package var text: String { pairs.map { "\($0.label): \($0.value)\n" }.joined() }

  /// Tags as they were written; nil where a line is none.
  ///
  /// A line that begins with white space goes on with the one before.
  package init?(_ bytes: [UInt8]) {
    guard let text = String(utf8: bytes) else { return nil }
    for line in text.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline) {
      if line.first?.isWhitespace == true, !pairs.isEmpty {
        pairs[pairs.count - 1].value += " " + String(line.drop(while: \.isWhitespace))
        continue
      }
      guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else { return nil }
      pairs.append((String(line[..<colon]), String(line[colon...].dropFirst().drop(while: \.isWhitespace))))
    }
  }

  /// Whether they are the same lines.
  package static func == (left: BagTags, right: BagTags) -> Bool { left.text == right.text }

  /// Hashes the lines.
  package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
