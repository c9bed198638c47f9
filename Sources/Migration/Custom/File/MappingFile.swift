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

  let tree: JSONTree
}

extension MappingFile {
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
    } catch { throw Self.invalid(path, nil, error.line, printable(error.detail)) }
    self = try MappingFileReader(path: path).file(of: tree)
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
      let hashes = version.versionHashes.inCodeUnitOrder()
        .map { JSONTree.Member(key: $0.key, value: .text($0.value.hex)) }
      let members: [JSONTree.Member] = [
        .init(key: "version", value: .text(version.name)), .init(key: "checksum", value: .text(version.checksum)),
        .init(key: "entities", value: JSONTree(value: .object(hashes))),
      ]
      copy.set(key, to: JSONTree(value: .object(members)))
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
    do { return try builder.model() } catch { throw MigrationError(any: error).told(at: path) }
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

// MARK: Reading

/// Reads a mapping file and rejects unknown keys, so that typos show.
struct MappingFileReader {
  static let formatVersion = "1"

  let path: FilePath?

  private func problem(_ node: JSONTree, _ place: String, _ detail: String, hint: String? = nil) -> MigrationError {
    MappingFile.invalid(path, place, node.line, detail, hint: hint)
  }

  func file(of tree: JSONTree) throws -> MappingFile {
    let members = try object(
      tree, "$", ["$schema", "format", "name", "comment", "source", "destination", "rest", "entities", "remove"])
    guard let format = members["format"] else {
      throw problem(tree, "$", "the key \"format\" is missing", hint: "Write \"format\": \(Self.formatVersion).")
    }
    guard case .number(Self.formatVersion) = format.value else {
      throw problem(
        format, "$.format", "this is no format that is known", hint: "Write \"format\": \(Self.formatVersion).")
    }
    let rest = try rest(members["rest"], "$.rest", or: .infer)
    let entities = try list(members["entities"], "$.entities").enumerated().map { index, node in
      try entity(node, "$.entities[\(index)]", rest)
    }
    let removed = try list(members["remove"], "$.remove").enumerated().map { index, node in
      (name: try text(node, "$.remove[\(index)]"), place: "$.remove[\(index)]")
    }
    guard !entities.isEmpty || !removed.isEmpty else {
      throw problem(tree, "$", "there is neither an entity mapping in \"entities\" nor an entity in \"remove\"")
    }
    return MappingFile(
      path: path, name: try members["name"].map { node in try text(node, "$.name") } ?? path?.stem,
      source: try version(members["source"], "$.source", tree),
      destination: try version(members["destination"], "$.destination", tree), rest: rest, entities: entities,
      removed: removed, tree: tree)
  }

  // MARK: Versions

  private func version(_ node: JSONTree?, _ place: String, _ root: JSONTree) throws -> MappingFile.Version {
    guard let node else {
      throw problem(root, place, "it is missing", hint: "Name the version, as in \"source\": \"V1\".")
    }
    if case .string(let name) = node.value { return MappingFile.Version(name: name) }
    let members = try object(node, place, ["version", "checksum", "entities"])
    var version = MappingFile.Version(
      name: try members["version"].map { try text($0, "\(place).version") },
      checksum: try members["checksum"].map { try text($0, "\(place).checksum") })
    if let entities = members["entities"] {
      var hashes: [String: VersionHash] = [:]
      for (name, value) in try object(entities, "\(place).entities", nil) {
        guard case .string(let digits) = value.value, let hash = VersionHash(hex: digits) else {
          throw problem(value, "\(place).entities.\(name)", "this is no version hash of 64 hexadecimal digits")
        }
        hashes[name] = hash
      }
      version.hashes = hashes
    }
    guard version.name != nil || version.checksum != nil || version.hashes != nil else {
      throw problem(node, place, "it names no version", hint: "Give \"version\", \"checksum\" or \"entities\".")
    }
    return version
  }

  // MARK: Entities

  private func entity(_ node: JSONTree, _ place: String, _ rest: MappingFile.Rest) throws -> MappingFile.Entity {
    let members = try object(
      node, place,
      [
        "name", "comment", "source", "destination", "filter", "attributes", "relationships", "policy", "userInfo",
        "rest",
      ])
    func required(_ key: String) throws -> String {
      guard let value = try optional(key) else { throw problem(node, place, "the key \"\(key)\" is missing") }
      return value
    }
    func optional(_ key: String) throws -> String? { try members[key].map { try text($0, "\(place).\(key)") } }
    var entity = MappingFile.Entity(
      name: try optional("name"), source: try required("source"), destination: try required("destination"),
      filter: try optional("filter"), policyClassName: try optional("policy"), userInfo: [:],
      rest: try self.rest(members["rest"], "\(place).rest", or: rest), attributes: [], relationships: [], place: place)
    if let info = members["userInfo"] {
      for (key, value) in try object(info, "\(place).userInfo", nil) {
        entity.userInfo[key] = try text(value, "\(place).userInfo.\(key)")
      }
    }
    for member in try list(of: members["attributes"], "\(place).attributes") {
      let place = "\(place).attributes.\(member.key)"
      entity.attributes.append((member.key, try attribute(member.value, place), place))
    }
    for member in try list(of: members["relationships"], "\(place).relationships") {
      let place = "\(place).relationships.\(member.key)"
      entity.relationships.append((member.key, try relationship(member.value, place), place))
    }
    return entity
  }

  private func list(of node: JSONTree?, _ place: String, hint: String? = nil) throws -> [JSONTree.Member] {
    guard let node else { return [] }
    guard case .object(let members) = node.value else {
      throw problem(node, place, "\(node.kindName) stands where an object is expected", hint: hint)
    }
    return members
  }

  private func attribute(_ node: JSONTree, _ place: String) throws -> MappingFile.AttributeContent {
    if case .string(let sql) = node.value { return .sql(sql) }
    let allowed =
      "Write an SQL expression as a text, or one of {\"sql\": …}, {\"copy\": …}, {\"constant\": …}, "
      + "{\"default\": true}, {\"null\": true}."
    guard case .object(let list) = node.value, list.count == 1, let only = list.first else {
      throw problem(node, place, "\(node.kindName) stands where the value of an attribute is expected", hint: allowed)
    }
    switch only.key {
    case "sql": return .sql(try text(only.value, "\(place).sql"))
    case "copy": return .copy(try text(only.value, "\(place).copy"))
    case "constant": return .constant(only.value)
    case "default" where only.value.value == .boolean(true): return .defaultValue
    case "null" where only.value.value == .boolean(true): return .null
    default: throw problem(node, place, "\"\(printable(only.key))\" is no value of an attribute", hint: allowed)
    }
  }

  private func relationship(_ node: JSONTree, _ place: String) throws -> MappingFile.RelationshipContent {
    let allowed =
      "Write the name of a relationship of the source as a text, or one of {\"copy\": …}, "
      + "{\"madeBy\": …, \"through\": …}, {\"inverse\": true}, {\"null\": true}."
    if case .string(let name) = node.value { return .relationship(name) }
    let members = try object(node, place, ["copy", "madeBy", "through", "inverse", "null"], hint: allowed)
    if let mapping = members["madeBy"], members.keys.allSatisfy({ $0 == "madeBy" || $0 == "through" }) {
      let through = try members["through"].map { node in try text(node, "\(place).through") }
      return .madeBy(try text(mapping, "\(place).madeBy"), through: through)
    }
    if members.count == 1 {
      if let copy = members["copy"] { return .relationship(try text(copy, "\(place).copy")) }
      if members["inverse"]?.value == .boolean(true) { return .inverse }
      if members["null"]?.value == .boolean(true) { return .null }
    }
    throw problem(node, place, "these keys do not make the value of a relationship", hint: allowed)
  }

  // MARK: Parts

  private func rest(_ node: JSONTree?, _ place: String, or usual: MappingFile.Rest) throws -> MappingFile.Rest {
    guard let node else { return usual }
    if case .string(let word) = node.value, let rest = MappingFile.Rest(rawValue: word) { return rest }
    throw problem(node, place, "it must be \"infer\" or \"none\"")
  }

  private func list(_ node: JSONTree?, _ place: String) throws -> [JSONTree] {
    guard let node else { return [] }
    guard case .array(let items) = node.value else {
      throw problem(node, place, "\(node.kindName) stands where a list is expected")
    }
    guard items.count <= MappingFile.entityLimit else {
      throw problem(node, place, "it has more than \(MappingFile.entityLimit) items")
    }
    return items
  }

  private func text(_ node: JSONTree, _ place: String) throws -> String {
    guard case .string(let text) = node.value, !text.isEmpty else {
      throw problem(node, place, "\(node.kindName) stands where a text is expected that is not empty")
    }
    return text
  }

  private func object(
    _ node: JSONTree, _ place: String, _ known: [String]?, hint: String? = nil
  ) throws -> [String: JSONTree] {
    let members = try list(of: node, place, hint: hint)
    if let known {
      for member in members where !known.contains(member.key) {
        throw problem(
          member.value, place, "there is no key \"\(printable(member.key))\" here",
          hint: hint ?? NameSuggestion.hint(for: member.key, among: known, "keys"))
      }
    }
    return Dictionary(members.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
  }
}
