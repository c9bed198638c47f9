internal import Foundation
internal import Platform
internal import SystemPackage

/// Takes the folders out of paths in JSON, since their names tell of the user: of each path the last component stays.
///
/// Where a bundle tells only months, it leaves no more than these of dates, too.
struct PathReduction {
  /// Whether of dates and times only the month stays.
  private let tellsOnlyMonths: Bool

  /// Folders that may be named within sentences, the longest first.
  private let folders: [String]

  /// A reduction that knows some folders and files; every other absolute path is told by its looks.
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

  /// A value as JSON text with paths reduced, and the numbers of rows and some keys left out, wherever they are.
  ///
  /// - Throws: what writing and reading the JSON throws.
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
      // A path whose bytes are not UTF-8.
      if object.count == 2, let text = object["text"] as? String, object["bytes"] is String { return reduced(text) }
      return object.filter { !keys.contains($0.key) }.mapValues { reduced($0, keys) }
    default: return value
    }
  }

  /// Text with the folders of its paths left out.
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

  /// Takes `/a/b/` out of `"/a/b/c"`; addresses such as `https://host` stay.
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
        // Between quotation marks a path goes on over spaces.
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

/// Takes the numbers of rows out of texts, as they are values of the user's where an app chooses its keys.
enum RowNumbers {
  /// A text with N for every number that is said to be a row's.
  static func removed(from text: String) -> String {
    guard text.utf8.contains(where: { (0x30...0x39).contains($0) }) else { return text }
    return text.replacing(/(?i)\b(rows?|rowids?|keys?) -?[0-9]+(?:[-–][0-9]+)?/) { "\($0.1) N" }
  }

  /// A line of `integrity_check`, with N also for every other number of more digits than pages have.
  static func removed(fromCheck line: some StringProtocol) -> String {
    removed(from: String(line)).replacing(/-?[0-9]{7,}/, with: "N")
  }
}
