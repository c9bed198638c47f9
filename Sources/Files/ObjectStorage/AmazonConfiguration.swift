/// A file of settings as Amazon's tools keep them: sections in brackets, and in them lines with a name and a value.
///
/// (AWS SDKs and Tools Reference Guide, "Shared config and credentials files".) Lines that are indented belong to the line
/// before them, which has no value of its own.
struct AmazonConfiguration {
  /// The largest file that is read, in bytes.
  static let limit = 1 << 20

  private var sections: [String: [String: String]] = [:]

  /// Reads a file; what is no setting is passed over, as Amazon's tools do.
  init(_ text: String) {
    var (section, parent) = (nil as String?, nil as String?)
    for line in text.split(whereSeparator: \.isNewline) {
      let isIndented = line.first == " " || line.first == "\t"
      let content = Self.trimmed(line)
      guard let first = content.first, first != "#", first != ";" else { continue }
      if first == "[" {
        guard let end = content.firstIndex(of: "]") else { continue }
        let words = content[content.index(after: content.startIndex)..<end].split(whereSeparator: \.isWhitespace)
        section = words.joined(separator: " ")
        parent = nil
        continue
      }
      guard let section, let equals = content.firstIndex(of: "=") else { continue }
      let name = Self.trimmed(content[..<equals]).lowercased()
      let value = Self.value(content[content.index(after: equals)...])
      if isIndented, let parent {
        sections[section, default: [:]]["\(parent).\(name)"] = value
      } else {
        parent = value.isEmpty ? name : nil
        sections[section, default: [:]][name] = value
      }
    }
  }

  /// Whether there is a section.
  func has(_ section: String) -> Bool { sections[section] != nil }

  /// A setting; nil where there is none, or an empty one.
  ///
  /// One that belongs to another is named with a point between: `s3.name`.
  func value(_ name: String, in section: String) -> String? {
    sections[section]?[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text.drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
  }

  /// A value without a comment behind it, which a space comes before.
  private static func value(_ text: Substring) -> String {
    var end = text.startIndex
    var isAfterSpace = true
    while end < text.endIndex {
      if isAfterSpace, text[end] == "#" || text[end] == ";" { break }
      isAfterSpace = text[end].isWhitespace
      end = text.index(after: end)
    }
    return String(trimmed(text[..<end]))
  }
}
