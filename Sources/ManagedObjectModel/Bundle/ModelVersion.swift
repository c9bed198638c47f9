public import Platform
public import SystemPackage

/// One version of an app's model.
public struct ModelVersion: Sendable, Hashable {
  /// The file's or folder's name without extension.
  public let name: String

  /// The version's model.
  public let model: ManagedObjectModel

  /// Whether it is the bundle's current version.
  public private(set) var isCurrent: Bool

  /// The computed version hashes of all completely known entities.
  public private(set) var versionHashes: [String: VersionHash]

  /// The incomplete entities, which have no hash.
  public private(set) var incompleteEntities: Set<String> = []

  /// Whether the whole version is known and has a checksum.
  public private(set) var isComplete = true

  /// The hashes in a compiled bundle's `VersionInfo.plist`.
  public let storedHashes: [String: VersionHash]?

  /// The checksum in a compiled bundle's `VersionInfo.plist`.
  public let storedChecksum: String?

  /// Creates a version and computes its hashes once.
  public init(
    name: String, model: ManagedObjectModel, isCurrent: Bool, storedHashes: [String: VersionHash]? = nil,
    storedChecksum: String? = nil
  ) {
    self.name = name
    self.model = model
    self.isCurrent = isCurrent
    versionHashes = model.versionHashes()
    self.storedHashes = storedHashes
    self.storedChecksum = storedChecksum
  }

  func named(current: String) -> ModelVersion {
    var version = self
    version.isCurrent = name == current
    return version
  }

  package func incomplete(_ entities: Set<String>) -> ModelVersion {
    var version = self
    version.isComplete = false
    version.incompleteEntities = entities
    for name in entities { version.versionHashes[name] = nil }
    return version
  }

  /// The checksum as stored in metadata (base 64); empty if incomplete.
  public var checksum: String { isComplete ? ManagedObjectModel.versionChecksum(of: versionHashes) : "" }

  /// The entities with different computed and stored hashes, sorted.
  ///
  /// Empty unless the bundle mixes versions.
  public var mismatchedEntityNames: [String] {
    guard let storedHashes else { return [] }
    return Set(storedHashes.keys).union(versionHashes.keys)
      .filter { storedHashes[$0] != versionHashes[$0] }.inCodeUnitOrder()
  }
}

extension ModelBundle {
  /// Loads a `.xcdatamodeld`, `.xcdatamodel`, `.momd` or `.mom`, regardless of its name.
  ///
  /// `unreadableVersions` lists unreadable ones.
  ///
  /// - Parameters:
  ///   - path: The file or folder.
  ///   - order: The versions, oldest first, including the current one; nil if only names exist.
  ///     Others are recognized, but never passed through.
  ///   - fileSystem: The file system.
  /// - Throws: `ModelError` if the current version is unreadable.
  public static func load(
    path: FilePath, order: [String]? = nil, fileSystem: FileSystem = FileSystem()
  ) throws(ModelError) -> ModelBundle {
    var loader = ModelBundleLoader(path: path, fileSystem: fileSystem)
    return try loader.load(order: order)
  }
}

private struct ModelBundleLoader {
  let path: FilePath
  let files: ModelFileReader
  private var versions: [ModelVersion] = []
  private var unreadable: [ModelBundle.UnreadableVersion] = []

  private static let maximumVersions = 1000

  init(path: FilePath, fileSystem: FileSystem) {
    self.path = path
    files = ModelFileReader(fileSystem: fileSystem)
  }

  mutating func load(order: [String]?) throws(ModelError) -> ModelBundle {
    let isFolder = try files.isFolder(path)
    let entries = isFolder ? try files.entries(path) : []
    if !isFolder {
      try loadFile()
    } else if entries.contains("contents") || entries.contains("elements") {
      try loadSourceVersion(path, name: path.stem ?? "", isCurrent: true)
    } else if entries.contains(where: { $0.hasSuffix(".xcdatamodel") }) {
      try loadSourceBundle(entries)
    } else if entries.contains(where: { $0.hasSuffix(".mom") }) {
      try loadCompiledBundle(entries)
    } else {
      throw ModelError(
        entries.contains { $0.hasSuffix(".omo") } ? .optimizedFormat : .noVersions, path: path,
        detail: "the folder holds neither a model's contents nor versions of one")
    }
    guard
      let bundle = ModelBundle(
        name: path.stem ?? "", path: path, versions: versions.ordered { precedesNaturally($0.name, $1.name) },
        isOrdered: false, unreadableVersions: unreadable)
    else { throw ModelError(.noVersions, path: path, detail: "the bundle holds no version that can be read") }
    return try order.map { names throws(ModelError) in try bundle.ordered(names) } ?? bundle
  }

  /// Loads a compiled model or source `contents`.
  private mutating func loadFile() throws(ModelError) {
    guard path.extension?.lowercased() != "sql" else {
      throw ModelError(
        .notAModel, path: path,
        detail: "it is a schema in SQL, which has no versions that a store could be migrated between")
    }
    let bytes = try files.read(path)
    // Some compiled models are XML archives too.
    let isSource = XMLTree.looksLikeXML(bytes) && path.extension != "mom" && path.extension != "omo"
    let isContents = path.lastComponent?.string == "contents"
    let name = isContents ? path.removingLastComponent().stem ?? "" : path.stem ?? ""
    try append(name: name, isCurrent: true, path: path, nil) { () throws(ModelError) in
      isSource ? try ManagedObjectModel(source: bytes) : try ManagedObjectModel(compiled: bytes)
    }
  }

  private mutating func loadSourceBundle(_ entries: [String]) throws(ModelError) {
    let folders = entries.filter { $0.hasSuffix(".xcdatamodel") }
    try requireFew(folders.count)
    var current: String?
    if entries.contains(".xccurrentversion") {
      let place = path.appending(".xccurrentversion")
      let bytes = try files.read(place)
      do {
        current = try PropertyList(bytes)["_XCCurrentVersionName"]?.string
      } catch {
        throw ModelError(error).told(path: place)
      }
    }
    // Without a current version the naturally last one counts.
    let currentFolder = current ?? folders.max { precedesNaturally(Self.stem($0), Self.stem($1)) }
    if let current, !folders.contains(current) { throw missingCurrent(current) }
    for folder in folders {
      let name = Self.stem(folder)
      try loadSourceVersion(path.appending(folder), name: name, isCurrent: folder == currentFolder)
    }
  }

  private static func stem(_ folder: String) -> String { String(folder.dropLast(".xcdatamodel".count)) }

  private mutating func loadSourceVersion(_ folder: FilePath, name: String, isCurrent: Bool) throws(ModelError) {
    let contents = folder.appending("contents")
    let files = files
    try append(name: name, isCurrent: isCurrent, path: folder, nil) { () throws(ModelError) in
      let entries = try files.entries(folder)
      if entries.contains("elements"), !entries.contains("contents") {
        throw ModelError(
          .oldFormat, path: folder, detail: "it is in the format of Xcode 3 (a file called elements, no contents)")
      }
      return try ManagedObjectModel(source: try files.read(contents))
    }
  }

  private mutating func loadCompiledBundle(_ entries: [String]) throws(ModelError) {
    let momFiles = entries.filter { $0.hasSuffix(".mom") }
    try requireFew(momFiles.count)
    let names = momFiles.map { String($0.dropLast(".mom".count)) }
    var info: VersionInfo?
    if entries.contains("VersionInfo.plist") {
      let place = path.appending("VersionInfo.plist")
      do {
        info = try VersionInfo(try files.read(place))
      } catch {
        throw error.told(path: place)
      }
    }
    if let current = info?.currentVersionName, !names.contains(current) { throw missingCurrent(current) }
    let current = info?.currentVersionName ?? names.max { precedesNaturally($0, $1) }
    let files = files
    for (file, name) in zip(momFiles, names) {
      let place = path.appending(file)
      try append(name: name, isCurrent: name == current, path: place, info) { () throws(ModelError) in
        try ManagedObjectModel(compiled: try files.read(place))
      }
    }
  }

  private mutating func append(
    name: String, isCurrent: Bool, path: FilePath, _ info: VersionInfo?,
    _ model: () throws(ModelError) -> ManagedObjectModel
  ) throws(ModelError) {
    do {
      versions.append(
        ModelVersion(
          name: name, model: try model(), isCurrent: isCurrent, storedHashes: info?.hashes[name],
          storedChecksum: info?.checksums[name]))
    } catch {
      let told = error.told(path: path, versionName: name)
      guard !isCurrent else { throw told }
      unreadable.append(ModelBundle.UnreadableVersion(name: name, error: told))
    }
  }

  private func requireFew(_ count: Int) throws(ModelError) {
    guard count <= Self.maximumVersions else {
      throw ModelError(.tooLarge, path: path, detail: "it has more than \(Self.maximumVersions) versions")
    }
  }

  private func missingCurrent(_ name: String) -> ModelError {
    ModelError(
      .currentVersionMissing, path: path,
      detail: "its current version is \"\(printable(name))\", which is not in the bundle")
  }
}

/// A compiled bundle's `VersionInfo.plist` (section 2.1).
struct VersionInfo {
  var currentVersionName: String?

  var hashes: [String: [String: VersionHash]]

  /// Base-64 checksums, from newer compilers.
  var checksums: [String: String]

  init(_ bytes: [UInt8]) throws(ModelError) {
    let list = try ModelError.reading { () throws(FileError) in try PropertyList(bytes) }
    currentVersionName = list["NSManagedObjectModel_CurrentVersionName"]?.string
    hashes = [:]
    for (version, entities) in list["NSManagedObjectModel_VersionHashes"]?.dictionary ?? [:] {
      hashes[version] = (entities.dictionary ?? [:]).compactMapValues { $0.data.flatMap { VersionHash(bytes: $0) } }
    }
    checksums = (list["NSManagedObjectModel_VersionChecksums"]?.dictionary ?? [:]).compactMapValues(\.string)
  }
}

/// Reads a model's files with errors as `ModelError`.
struct ModelFileReader {
  /// The limit in bytes.
  static let maximumFileSize = 64 << 20

  /// More than any real model's.
  static let maximumEntries = 10_000

  let fileSystem: FileSystem

  /// Reads a whole file, rejecting pipes and devices unread.
  ///
  /// It alone reads files in this module.
  func read(_ path: FilePath) throws(ModelError) -> [UInt8] {
    try ModelError.reading { () throws(FileError) in try fileSystem.contents(of: path, limit: Self.maximumFileSize) }
  }

  /// Whether a path is a folder, following links.
  func isFolder(_ path: FilePath) throws(ModelError) -> Bool {
    try ModelError.reading { () throws(FileError) in
      guard let status = try fileSystem.status(of: path) else {
        throw FileError(.notFound, operation: "read the model", path: path)
      }
      return status.kind == .directory
    }
  }

  func entries(_ path: FilePath) throws(ModelError) -> [String] {
    try ModelError.reading { () throws(FileError) in
      let names = try fileSystem.entries(of: path).map(\.string)
      guard names.count <= Self.maximumEntries else {
        throw FileError(
          .tooLarge, operation: "read the model", path: path,
          detail: "the folder has more than \(Self.maximumEntries) entries")
      }
      return names.inCodeUnitOrder()
    }
  }
}
