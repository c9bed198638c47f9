import Platform
import SystemPackage

/// The file checksums of a bag: `manifest-sha256.txt`, in the form of `sha256sum -c`.
///
/// Source: RFC 8493, section 2.1.3. Carriage returns, line feeds and percent signs in names are percent-encoded.
struct BagManifest: Sendable, Hashable {
  private(set) var sums: [String: String] = [:]

  static let lengthLimit = 16 << 20

  init() {}

  mutating func add(_ path: String, sha256: String) { sums[path] = sha256 }

  var text: String { sums.sorted { $0.key < $1.key }.map { "\($0.value)  \(Self.encoded($0.key))\n" }.joined() }

  /// Parses a manifest; nil if malformed or with a repeated file.
  init?(_ bytes: [UInt8]) {
    guard let text = String(utf8: bytes) else { return nil }
    for line in text.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline) {
      let digits = line.prefix(64)
      let path = line.dropFirst(64).drop { $0 == " " || $0 == "*" || $0 == "\t" }
      guard digits.utf8.count == 64, digits.allSatisfy(\.isHexDigit), line.dropFirst(64).first == " ", !path.isEmpty,
        let name = Self.decoded(path), sums.updateValue(digits.lowercased(), forKey: name) == nil
      else { return nil }
    }
  }

  private static func encoded(_ path: String) -> String {
    path.replacing("%", with: "%25").replacing("\n", with: "%0A").replacing("\r", with: "%0D")
  }

  private static func decoded(_ path: Substring) -> String? {
    var result = ""
    var rest = path
    while let percent = rest.firstIndex(of: "%") {
      result += rest[..<percent]
      switch rest[percent...].prefix(3).dropFirst().uppercased() {
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

/// The lines of `bagit.txt` and `bag-info.txt`: a label, a colon, a value.
///
/// Source: RFC 8493, sections 2.1.1 and 2.2.2.
struct BagTags: Sendable {
  static let declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

  private(set) var pairs: [(label: String, value: String)] = []

  init() {}

  /// Adds a line, filtering its characters.
  mutating func add(_ label: String, _ value: String) {
    pairs.append((label, String(value.map { $0.isNewline ? " " : $0 })))
  }

  /// The first value of a label, case-insensitive.
  subscript(_ label: String) -> String? { pairs.first { $0.label.lowercased() == label.lowercased() }?.value }

  var text: String { pairs.map { "\($0.label): \($0.value)\n" }.joined() }

  /// Parses tags; nil if malformed.
  ///
  /// White space at the start continues the previous line.
  init?(_ bytes: [UInt8]) {
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
}

struct UnpackedBag {
  let folder: FilePath
  let fileSystem: FileSystem
  var files: [String: (bytes: Int64, sha256: String)] = [:]

  private static let operation = "check the bundle"
  private static let required = ["bagit.txt", "bag-info.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt"]

  /// Verifies every file against the manifest.
  func checked(_ path: FilePath, sha256: String, bytes: Int64, isEncrypted: Bool) throws -> ReceivedBundle {
    for name in Self.required where files[name] == nil { throw damaged(path, "it has no \(name)") }
    guard let declaration = BagTags(try content("bagit.txt")), declaration["BagIt-Version"] == "1.0" else {
      throw damaged(path, "bagit.txt does not say that it is a bag of version 1.0")
    }
    guard let info = BagTags(try content("bag-info.txt")), info["Lazaret-Bundle-Version"] == "1",
      let level = info["Lazaret-Level"].flatMap(BundleLevel.init(rawValue:))
    else {
      throw damaged(path, "bag-info.txt does not say what is in it, or a later version of this software wrote it")
    }
    guard let manifest = BagManifest(try content("manifest-sha256.txt")),
      let tagManifest = BagManifest(try content("tagmanifest-sha256.txt"))
    else { throw damaged(path, "a list of its files is damaged") }
    var listed = Set<String>()
    for (name, sum) in manifest.sums {
      guard name.hasPrefix("data/") else { throw damaged(path, "its list names a file that is not below data/") }
      guard let file = files[name] else { throw damaged(path, "a file of its list is missing") }
      guard file.sha256 == sum else { throw damaged(path, "a file is not the one that the list says") }
      listed.insert(name)
    }
    for (name, sum) in tagManifest.sums {
      guard !name.hasPrefix("data/"), files[name]?.sha256 == sum else {
        throw damaged(path, "a file that describes the bundle is missing or was altered")
      }
      listed.insert(name)
    }
    listed.insert("tagmanifest-sha256.txt")
    guard Self.required.allSatisfy(listed.contains), files.keys.allSatisfy(listed.contains) else {
      throw damaged(path, "it holds a file that is on no list")
    }
    let content = files.filter { $0.key.hasPrefix("data/") }
    let size = content.values.reduce(0) { $0 + $1.bytes }
    if let oxum = info["Payload-Oxum"], oxum != "\(size).\(content.count)" {
      throw damaged(path, "it does not hold as many bytes and files as it says")
    }
    return ReceivedBundle(
      folder: folder, level: level, app: info["Lazaret-App"], store: info["Lazaret-Store"] ?? "store",
      date: info["Lazaret-Date"].flatMap(Timestamp.init), identifier: info["External-Identifier"] ?? "",
      isEncrypted: isEncrypted, sha256: sha256, bytes: bytes,
      files: content.map { ReceivedBundle.File(name: String($0.key.dropFirst(5)), bytes: $0.value.bytes) }
        .ordered { $0.name < $1.name })
  }

  private func content(_ name: String) throws -> [UInt8] {
    guard let file = files[name], file.bytes <= BagManifest.lengthLimit else {
      throw FileError(.archiveTooLarge, "a file that describes the bundle is too large")
    }
    return try fileSystem.contents(of: folder.appending(name), limit: BagManifest.lengthLimit)
  }

  private func damaged(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.bundleDamaged, operation: Self.operation, path: path, detail: detail)
  }
}
