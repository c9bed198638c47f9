internal import Foundation
internal import Platform
internal import SystemPackage

/// Reduces paths in JSON to their last component, as folder names reveal the user, and optionally dates to months.
struct PathReduction {
  private let tellsOnlyMonths: Bool

  /// Folders to remove within sentences, longest first.
  private let folders: [String]

  let numbers = RowNumbers()

  init(knowing paths: [FilePath], tellingOnlyMonths tellsOnlyMonths: Bool) {
    self.tellsOnlyMonths = tellsOnlyMonths
    var known = Set<String>()
    for path in paths {
      var folder = path.folder
      while folder.isAbsolute, folder.components.count > 0 {
        known.insert(folder.string + "/")
        folder = folder.folder
      }
    }
    folders = known.sorted { ($0.utf8.count, $0) > ($1.utf8.count, $1) }
  }

  /// Returns JSON with reduced paths, without row numbers and the given keys.
  func json(_ value: some Encodable, without keys: Set<String> = []) throws -> [UInt8] {
    let bytes = try JSON.bytes(of: value, .line, to: "export the store")
    let value = reduced(try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed), keys)
    let data = try JSONSerialization.data(
      withJSONObject: value, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed])
    return [UInt8](data) + [UInt8(ascii: "\n")]
  }

  private func reduced(_ value: Any, _ keys: Set<String>) -> Any {
    switch value {
    case let text as String: return numbers.removed(from: reduced(text))
    case let list as [Any]: return list.map { reduced($0, keys) }
    case let object as [String: Any]:
      // The path is not UTF-8.
      if object.count == 2, let text = object["text"] as? String, object["bytes"] is String { return reduced(text) }
      return object.filter { !keys.contains($0.key) }.mapValues { reduced($0, keys) }
    default: return value
    }
  }

  func reduced(_ text: String) -> String {
    let text = withoutKnownFolders(text)
    return tellsOnlyMonths ? Timestamp.inMonths(text) : text
  }

  private func withoutKnownFolders(_ text: String) -> String {
    if text.hasPrefix("/"), !text.contains("\n") { return FilePath(text).lastComponent?.string ?? "/" }
    var result = text
    for folder in folders where result.contains(folder) { result = result.replacing(folder, with: "") }
    return result.contains("/") ? Self.withoutFolders(result) : result
  }

  /// Removes `/a/b/` from `"/a/b/c"`; addresses such as `https://host` stay.
  private static func withoutFolders(_ text: String) -> String {
    var result = ""
    var rest = text[...]
    while let slash = rest.firstIndex(of: "/") {
      let before = rest[..<slash].last
      result += rest[..<slash]
      let isStart = before.map { $0 == " " || $0 == "\"" || $0 == "'" || $0 == "(" || $0 == "“" } ?? result.isEmpty
      guard isStart else {
        result += "/"
        rest = rest[rest.index(after: slash)...]
        continue
      }
      let end = rest[slash...].firstIndex {
        // A quoted path may contain spaces.
        if before == "\"" { return $0 == "\"" }
        return $0 == "\"" || $0 == " " || $0 == "\n" || $0 == "'" || $0 == ")" || $0 == "”"
      }
      let path = rest[slash..<(end ?? rest.endIndex)]
      result += path.split(separator: "/").last ?? ""
      rest = rest[(end ?? rest.endIndex)...]
    }
    return result + rest
  }
}

/// Removes row numbers, since an app's own keys can be user data.
///
/// An instance compiles its expressions once, which takes longer than searching a line.
struct RowNumbers {
  private let rows = /(?i)\b(rows?|rowids?|keys?) -?[0-9]+(?:[-–][0-9]+)?/
  private let longNumbers = /-?[0-9]{7,}/

  /// Replaces every row number by N.
  func removed(from text: String) -> String {
    guard text.utf8.contains(where: { (0x30...0x39).contains($0) }) else { return text }
    return text.replacing(rows) { "\($0.1) N" }
  }

  /// Also replaces numbers longer than page numbers in `integrity_check` lines.
  func removed(fromCheck line: some StringProtocol) -> String {
    removed(from: String(line)).replacing(longNumbers, with: "N")
  }
}

extension Timestamp {
  /// Replaces dates and times by the start of the month, in the same length.
  ///
  /// Covers RFC 3339, the readable form, and names of quarantined stores and backups.
  static func inMonths(_ text: String) -> String {
    var bytes = Array(text.utf8)
    var index = 0
    while index + 10 <= bytes.count {
      guard index == 0 || !isDigit(bytes[index - 1]), isLike("0000-00-00", bytes, at: index) else {
        index += 1
        continue
      }
      bytes.replaceSubrange((index + 8)..<(index + 10), with: "01".utf8)
      index += 10
      var end = index
      if isLike("-00-00-00", bytes, at: index) {
        end = index + 9
      } else if isLike("T00:00", bytes, at: index) || isLike(" 00:00", bytes, at: index) {
        end = index + 6
        while end < bytes.count, isDigit(bytes[end]) || bytes[end] == 0x2e || bytes[end] == 0x3a { end += 1 }
      }
      for place in index..<end where isDigit(bytes[place]) { bytes[place] = 0x30 }
      index = end
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Whether bytes match a form, with 0 for any digit.
  private static func isLike(_ form: String, _ bytes: [UInt8], at start: Int) -> Bool {
    let form = form.utf8
    return start + form.count <= bytes.count
      && zip(form, bytes[start...]).allSatisfy { $0 == 0x30 ? isDigit($1) : $0 == $1 }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
