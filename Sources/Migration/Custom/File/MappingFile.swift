public import ManagedObjectModel
public import Platform
public import SystemPackage

/// A mapping file: a custom mapping as JSON, written without a compiler.
///
/// The format is described in `Documentation/MAPPING_FILE.md` and the JSON Schema next to it. The rest is inferred.
public struct MappingFile: Sendable {
  /// In bytes.
  static let sizeLimit = 4 << 20

  static let entityLimit = 2000

  struct Version: Sendable, Hashable {
    var name: String?
    var checksum: String?
    var hashes: [String: VersionHash]?
  }

  enum Rest: String, Sendable, CaseIterable {
    case infer

    /// Properties get their defaults, entities are removed.
    case none
  }

  struct Entity: Sendable {
    var name: String?
    var source: String
    var destination: String
    var filter: String?
    var policyClassName: String?
    var userInfo: [String: String]
    var rest: Rest

    /// The values by destination property, with their places in the file.
    var attributes: [(name: String, value: AttributeContent, place: String)]
    var relationships: [(name: String, value: RelationshipContent, place: String)]

    var place: String
  }

  enum AttributeContent: Sendable, Hashable {
    case sql(String)
    case copy(String)
    case constant(JSONTree)
    case defaultValue
    case null
  }

  enum RelationshipContent: Sendable, Hashable {
    case relationship(String)
    case madeBy(String, through: String?)
    case inverse
    case null
  }

  /// The file; nil for bytes.
  public let path: FilePath?

  /// The name in the file, else the file's name.
  public let name: String?

  let source: Version
  let destination: Version
  let rest: Rest
  let entities: [Entity]

  let removed: [(name: String, place: String)]

  private(set) var tree: JSONTree

  /// Reads a mapping file from its bytes.
  ///
  /// - Throws: `mapping-invalid` with the line, the place in the file, the error and the allowed values.
  public init(bytes: [UInt8], path: FilePath? = nil) throws {
    guard bytes.count <= Self.sizeLimit else {
      throw Self.invalid(path, "$", 1, "the file is larger than \(Self.sizeLimit) bytes")
    }
    let tree: JSONTree
    do throws(JSONTreeReader.Problem) {
      tree = try JSONTreeReader.read(bytes)
    } catch {
      throw Self.invalid(path, nil, error.line, printable(error.detail))
    }
    var reader = MappingFileReader(path: path)
    let content = try reader.content(of: tree)
    self.path = path
    self.tree = tree
    name = content.name ?? path?.stem
    source = content.source
    destination = content.destination
    rest = content.rest
    entities = content.entities
    removed = content.removed
  }

  /// Reads a mapping file.
  public init(contentsOf path: FilePath, in fileSystem: FileSystem = FileSystem()) throws {
    let bytes = try fileSystem.contents(of: path, limit: Self.sizeLimit)
    try self.init(bytes: bytes, path: path)
  }

  /// Reads a mapping file and makes its mapping models for the versions of a bundle.
  ///
  /// - Throws: A file error, `mapping-invalid`, `mapping-stale`, `mapping-not-inferable` for the inferred rest, or
  ///   `expression-unsupported` for a missing function.
  public static func load(
    _ path: FilePath, in bundle: ModelBundle, fileSystem: FileSystem = FileSystem()
  ) throws -> [MappingModel] {
    [try MappingFile(contentsOf: path, in: fileSystem).mappingModel(in: bundle)]
  }

  /// The file with both models' version hashes, so that later changes to either are noticed.
  ///
  /// - Throws: The version errors of `mappingModel(in:)`.
  public func sealed(in bundle: ModelBundle) throws -> MappingFile {
    var copy = tree
    for (key, version) in [
      ("source", try version(source, "source", in: bundle)),
      ("destination", try version(destination, "destination", in: bundle)),
    ] {
      let hashes = version.versionHashes.ordered { precedesByCodeUnit($0.key, $1.key) }
        .map { JSONTree.Member(key: $0.key, value: .text($0.value.hex)) }
      copy[key] = JSONTree(
        value: .object([
          .init(key: "version", value: .text(version.name)), .init(key: "checksum", value: .text(version.checksum)),
          .init(key: "entities", value: JSONTree(value: .object(hashes))),
        ]))
    }
    return try MappingFile(bytes: Array(copy.text().utf8), path: path)
  }

  /// The text: original key order, two spaces a level, a final line break.
  public var text: String { tree.text() + "\n" }

  static func invalid(
    _ path: FilePath?, _ place: String?, _ line: Int, _ detail: String, hint: String? = nil
  ) -> MigrationError {
    MigrationError(
      .mappingInvalid, operation: "read the mapping file", path: path,
      detail: "line \(line)\(place.map { ", \(printable($0))" } ?? ""): \(detail)",
      hint: hint ?? "Correct the file; its format is described in MAPPING_FILE.md.")
  }
}

extension MappingFile {
  /// The mapping model described by the file.
  ///
  /// - Throws: `mapping-invalid`, `mapping-stale` if the file's version hashes differ from the versions',
  ///   `mapping-not-inferable` for the inferred rest.
  public func mappingModel(in bundle: ModelBundle) throws -> MappingModel {
    let from = try version(source, "source", in: bundle)
    let to = try version(destination, "destination", in: bundle)
    var builder = MappingFileBuilder(file: self, source: from.model, destination: to.model)
    do {
      return try builder.model()
    } catch {
      var told = MigrationError(any: error)
      told.path = told.path ?? path
      throw told
    }
  }

  func version(_ wanted: Version, _ word: String, in bundle: ModelBundle) throws -> ModelVersion {
    var found = bundle.versions.filter { version in
      (wanted.hashes.map { $0 == version.versionHashes } ?? true)
        && (wanted.checksum.map { $0 == version.checksum } ?? true)
    }
    // Names distinguish versions of equal hashes.
    if let name = wanted.name,
      found.contains(where: { $0.name == name }) || wanted.checksum == nil && wanted.hashes == nil
    {
      found = found.filter { $0.name == name }
    }
    if let version = found.last { return version }
    if let name = wanted.name, bundle.version(named: name) == nil, wanted.checksum == nil, wanted.hashes == nil {
      throw Self.invalid(
        path, "$.\(word)", tree[word]?.line ?? 1, "the model has no version \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: bundle.versions.map(\.name), "versions"))
    }
    throw stale(wanted, word, bundle)
  }

  private func stale(_ wanted: Version, _ word: String, _ bundle: ModelBundle) -> MigrationError {
    let named = wanted.name.flatMap { bundle.version(named: $0) }
    var detail = "the \(word) of mapping \"\(printable(name ?? "without a name"))\" is of no version of the model"
    if let hashes = wanted.hashes {
      let nearest =
        named
        ?? bundle.versions.min { first, second in
          UnusedMapping.differing(hashes, first.versionHashes).count
            < UnusedMapping.differing(hashes, second.versionHashes).count
        }
      if let nearest {
        let names = UnusedMapping.differing(hashes, nearest.versionHashes)
        let shown = names.prefix(10).map(printable).joined(separator: ", ")
        detail +=
          "; version \(printable(nearest.name)) has other version hashes of "
          + (names.isEmpty ? "no entity, but another checksum" : shown)
          + (names.count > 10 ? " and \(names.count - 10) more" : "")
      }
    } else if let named {
      detail += "; version \(printable(named.name)) has another checksum"
    }
    return MigrationError(
      .mappingStale, operation: "read the mapping file", path: path, detail: detail,
      hint: "Look through the mapping and correct it for the versions as they are now. Then delete \"checksum\" and "
        + "\"entities\" of both versions in the file, and run `lazaret model seal`.",
      entityName: nil)
  }
}

/// Reads a JSON text of bounded depth; never traps.
struct JSONTreeReader {
  struct Problem: Error {
    var line: Int
    var detail: String
  }

  private static let depthLimit = 32

  private let bytes: [UInt8]
  private var offset = 0
  private var line = 1

  static func read(_ bytes: [UInt8]) throws(Problem) -> JSONTree {
    guard String(utf8: bytes) != nil else {
      throw Problem(line: 1, detail: "the file is no UTF-8 text")
    }
    var reader = JSONTreeReader(bytes: bytes)
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { reader.offset = 3 }
    let tree = try reader.value(depth: 0)
    reader.skipSpace()
    guard reader.offset == bytes.count else { throw reader.problem("something follows the end of the object") }
    return tree
  }

  private func problem(_ detail: String) -> Problem { Problem(line: line, detail: detail) }

  private var byte: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  private mutating func skipSpace() {
    while let next = byte, next == 0x20 || next == 0x09 || next == 0x0A || next == 0x0D {
      if next == 0x0A { line += 1 }
      offset += 1
    }
  }

  private mutating func takes(_ character: Character) -> Bool {
    skipSpace()
    guard byte == character.asciiValue else { return false }
    offset += 1
    return true
  }

  private mutating func value(depth: Int) throws(Problem) -> JSONTree {
    guard depth < Self.depthLimit else {
      throw problem("objects and lists are nested more than \(Self.depthLimit) deep")
    }
    skipSpace()
    let start = line
    guard let first = byte else { throw problem("the file ends where a value is expected") }
    switch first {
    case UInt8(ascii: "{"): return JSONTree(value: .object(try members(depth)), line: start)
    case UInt8(ascii: "["): return JSONTree(value: .array(try items(depth)), line: start)
    case UInt8(ascii: "\""): return JSONTree(value: .string(try string()), line: start)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      return JSONTree(value: .number(try number()), line: start)
    default: return JSONTree(value: try word(), line: start)
    }
  }

  private mutating func members(_ depth: Int) throws(Problem) -> [JSONTree.Member] {
    offset += 1
    var result: [JSONTree.Member] = []
    var keys: Set<String> = []
    if takes("}") { return result }
    repeat {
      skipSpace()
      guard byte == UInt8(ascii: "\"") else { throw problem("a key in quotes is expected") }
      let key = try string()
      guard keys.insert(key).inserted else { throw problem("the key \"\(key)\" comes twice") }
      guard takes(":") else { throw problem("a colon is expected after the key \"\(key)\"") }
      result.append(JSONTree.Member(key: key, value: try value(depth: depth + 1)))
    } while takes(",")
    guard takes("}") else { throw problem("a comma or the end of the object is expected") }
    return result
  }

  private mutating func items(_ depth: Int) throws(Problem) -> [JSONTree] {
    offset += 1
    var result: [JSONTree] = []
    if takes("]") { return result }
    repeat { result.append(try value(depth: depth + 1)) } while takes(",")
    guard takes("]") else { throw problem("a comma or the end of the list is expected") }
    return result
  }

  private mutating func word() throws(Problem) -> JSONTree.Value {
    for (text, value) in [
      ("null", JSONTree.Value.null), ("true", .boolean(true)), ("false", .boolean(false)),
    ] where bytes[offset...].starts(with: text.utf8) {
      offset += text.utf8.count
      return value
    }
    throw problem("a value is expected")
  }

  private mutating func number() throws(Problem) -> String {
    let start = offset
    func isPart(_ byte: UInt8) -> Bool {
      (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte)
    }
    while let next = byte, isPart(next) { offset += 1 }
    let text = String(decoding: bytes[start..<offset], as: UTF8.self)
    let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    let startsWell = digits.hasPrefix("0") ? digits.count == 1 || !(digits.dropFirst().first?.isNumber ?? false) : true
    guard let value = Double(text), value.isFinite, startsWell, digits.first?.isNumber == true, !text.hasSuffix("."),
      text.utf8.count <= 64
    else { throw problem("this is no number") }
    return text
  }

  private mutating func string() throws(Problem) -> String {
    offset += 1
    var content: [UInt8] = []
    while let next = byte {
      offset += 1
      switch next {
      case UInt8(ascii: "\""): return String(decoding: content, as: UTF8.self)
      case UInt8(ascii: "\\"): content += try escape()
      case 0..<0x20: throw problem("a line break or control character in a text must be written as an escape")
      default: content.append(next)
      }
    }
    throw problem("the text that begins here has no end")
  }

  private mutating func escape() throws(Problem) -> [UInt8] {
    guard let next = byte else { throw problem("the text has no end") }
    offset += 1
    switch next {
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [next]
    case UInt8(ascii: "u"):
      var code = try hexadecimal()
      if (0xD800..<0xDC00).contains(code), bytes[offset...].starts(with: "\\u".utf8) {
        offset += 2
        let low = try hexadecimal()
        guard (0xDC00..<0xE000).contains(low) else { throw problem("half of a surrogate pair") }
        code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(code) else { throw problem("half of a surrogate pair") }
      return Array(String(Character(scalar)).utf8)
    default: throw problem("there is no such escape")
    }
  }

  private mutating func hexadecimal() throws(Problem) -> UInt32 {
    let digits = bytes[offset...].prefix(4)
    guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let code = UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw problem("four hexadecimal digits are expected") }
    offset += 4
    return code
  }
}
