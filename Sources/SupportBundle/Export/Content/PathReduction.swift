internal import Foundation
internal import Platform
internal import SystemPackage

/// Reduces paths in JSON to their last component, as folder names reveal the user, and optionally dates to months.
struct PathReduction {
  private let tellsOnlyMonths: Bool

  /// Folders to remove within sentences, longest first.
  private let folders: [String]

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
    case let text as String: return RowNumbers.removed(from: reduced(text))
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
    if text.hasPrefix("/"), !text.contains("\n") {
      return FilePath(text).lastComponent?.string ?? "/"
    }
    var result = text
    for folder in folders where result.contains(folder) { result = result.replacing(folder, with: "") }
    guard result.contains("/") else { return result }
    return Self.withoutFolders(result)
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
        return
          $0 == "\"" || $0 == " " || $0 == "\n" || $0 == "'" || $0 == ")" || $0 == "”"
      }
      let path = rest[slash..<(end ?? rest.endIndex)]
      result += path.split(separator: "/").last ?? ""
      rest = rest[(end ?? rest.endIndex)...]
    }
    return result + rest
  }
}

/// Removes row numbers, since an app's own keys can be user data.
enum RowNumbers {
  /// Replaces every row number by N.
  static func removed(from text: String) -> String {
    guard text.utf8.contains(where: { (0x30...0x39).contains($0) }) else { return text }
    return text.replacing(/(?i)\b(rows?|rowids?|keys?) -?[0-9]+(?:[-–][0-9]+)?/) { "\($0.1) N" }
  }

  /// Also replaces numbers longer than page numbers in `integrity_check` lines.
  static func removed(fromCheck line: some StringProtocol) -> String {
    removed(from: String(line)).replacing(/-?[0-9]{7,}/, with: "N")
  }
}
