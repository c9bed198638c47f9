internal import ManagedObjectModel
internal import Platform
internal import SystemPackage

/// One of Core Data's own mapping models as its file says it, before it is fitted to two versions of a model.
///
/// Sources (`.xcmappingmodel`) and compiled ones (`.cdm`) say the same in different words; what only one of them says is
/// optional.
struct MappingModelFile {
  /// What a file of mapping models is.
  enum Format: Sendable, Hashable {
    /// `.xcmappingmodel`: an XML store of Xcode's, which its compiler makes a `.cdm` of.
    case source

    /// `.cdm`: a keyed archive.
    case compiled
  }

  /// One of the two models that the file was made for.
  struct Side {
    /// Where the project kept the model; only sources say it.
    var modelPath: String?

    /// The model itself, as sources embed it; nil where it is not there or cannot be read.
    var model: EditorModel?

    /// The name of the version, from the path: `V2` for `Model.xcdatamodeld/V2.xcdatamodel`.
    var versionName: String? {
      guard let name = modelPath?.split(separator: "/").last, let stem = FilePath(String(name)).stem else { return nil }
      return stem
    }
  }

  let path: FilePath
  let format: Format
  var source = Side()
  var destination = Side()

  /// The mappings in the order in which the file has them carried out.
  var entityMappings: [EntityRecord] = []

  /// How many entries that name no entity were passed over.
  var emptyCount = 0

  /// The name: that of the file.
  var name: String {
    let isInner = path.lastComponent?.string == MappingModelFiles.sourceFileName
    return (isInner ? path.removingLastComponent() : path).stem ?? ""
  }

  /// Where a mapping model made of it came from.
  var origin: MappingModel.Origin {
    switch format {
    case .source: .mappingModelSource(path)
    case .compiled: .compiledMappingModel(path)
    }
  }
}

extension MappingModelFile {
  /// A mapping of an entity.
  struct EntityRecord {
    var name: String
    var sourceName: String?
    var destinationName: String?

    /// The version hash that the source's entity had; only compiled ones say it.
    var sourceHash: VersionHash?

    /// The version hash that the destination's entity had; only compiled ones say it.
    var destinationHash: VersionHash?

    /// The type that the file gives it, by Core Data's number; sources leave it undefined.
    var type = EntityMapping.Kind.undefined

    var policyClassName: String?
    var filter = Filter.all
    var attributes: [PropertyRecord] = []
    var relationships: [PropertyRecord] = []
    var userInfo: [String: String] = [:]

    /// Whether a policy of the app's own may make values; Core Data's own does what the mapping says and nothing else.
    var hasPolicy: Bool { policyClassName != nil && policyClassName != "NSEntityMigrationPolicy" }
  }

  /// Which records of the source a mapping reads.
  enum Filter {
    /// All records of the entity.
    case all

    /// Those that a predicate is true for, in predicate format.
    case predicate(String)

    /// Those that an expression of another form gives.
    case expression(ModelExpression)
  }

  /// A mapping of a property.
  struct PropertyRecord {
    var name: String
    var value: Value
    var userInfo: [String: String] = [:]
  }

  /// Where a property gets its value from.
  enum Value {
    /// Nothing is said: the destination's default, or no records.
    case nothing

    /// Xcode's compiler makes the expression: from the property of the same name, where the source has one.
    case generated

    /// Xcode's compiler makes the expression: what a mapping made of what a key path leads to.
    case through(mapping: String?, keyPath: String?)

    case expression(ModelExpression)

    /// An expression that cannot be read, and what it is.
    case unreadable(String)
  }
}

extension MappingModelFile {
  /// The largest file that is read, in bytes; real ones have a hundred kilobytes.
  static let maximumFileSize = 32 << 20

  /// More entity mappings than any mapping model has.
  static let maximumEntityMappings = 2_000

  /// More property mappings than any mapping model has, all entities together.
  static let maximumPropertyMappings = 200_000

  /// The longest name, in bytes.
  static let maximumNameLength = 1_024

  /// Reads a mapping model.
  ///
  /// - Parameter path: a `.xcmappingmodel` folder, the `xcmapping.xml` in it, or a `.cdm` file.
  /// - Throws: `mapping-invalid` where it is none or is damaged, or a file error.
  static func read(_ path: FilePath, _ fileSystem: FileSystem) throws(MigrationError) -> MappingModelFile {
    var file = path
    try wrapping(MigrationError.init) { () throws(FileError) in
      guard let status = try fileSystem.status(of: path) else {
        throw FileError(.notFound, operation: operation, path: path)
      }
      if status.kind == .directory {
        file = path.appending(MappingModelFiles.sourceFileName)
        guard try fileSystem.status(of: file) != nil else {
          throw FileError(
            .notFound, operation: operation, path: file,
            detail: "the folder has no \(MappingModelFiles.sourceFileName)")
        }
      }
    }
    let bytes = try wrapping(MigrationError.init) { () throws(FileError) in
      try fileSystem.contents(of: file, limit: maximumFileSize)
    }
    return try read(bytes, at: path)
  }

  static let operation = "read the mapping model"

  /// Reads a mapping model from its bytes, whichever of the two forms they are in.
  static func read(_ bytes: [UInt8], at path: FilePath) throws(MigrationError) -> MappingModelFile {
    do {
      if XMLTree.looksLikeXML(bytes) {
        var reader = MappingModelSourceReader(path: path)
        return try reader.read(bytes)
      }
      var reader = CompiledMappingModelReader(path: path)
      return try reader.read(bytes)
    } catch let error as PropertyListError {
      throw MigrationError(.mappingInvalid, because: error, operation: operation, path: path)
    } catch let error as MigrationError {
      throw error
    } catch {
      throw MigrationError(.mappingInvalid, operation: operation, path: path, detail: "it cannot be read")
    }
  }

  /// The error of a file that is no mapping model or a damaged one.
  static func invalid(_ path: FilePath, _ detail: String, entity: String? = nil) -> MigrationError {
    MigrationError(.mappingInvalid, operation: operation, path: path, detail: detail, entityName: entity)
  }

  /// Names that are missing are made as Xcode's compiler makes them, and every name must be there once.
  mutating func finish() throws(MigrationError) {
    // Xcode's editor leaves entries without entities, which Core Data passes over.
    emptyCount = entityMappings.count { $0.sourceName == nil && $0.destinationName == nil }
    entityMappings.removeAll { $0.sourceName == nil && $0.destinationName == nil }
    guard !entityMappings.isEmpty else { throw Self.invalid(path, "it maps no entity") }
    var names: Set<String> = []
    for index in entityMappings.indices {
      let record = entityMappings[index]
      // Names are put together and repeated; an archive may use a long one over and over.
      let texts = [record.name, record.sourceName ?? "", record.destinationName ?? "", record.policyClassName ?? ""]
      guard texts.allSatisfy({ $0.utf8.count <= Self.maximumNameLength }) else {
        throw Self.invalid(path, "it holds a name of more than \(Self.maximumNameLength) bytes")
      }
      if record.name.isEmpty {
        let both = [record.sourceName, record.destinationName].compactMap { $0 }
        entityMappings[index].name = both.joined(separator: "To")
      }
      let name = entityMappings[index].name
      guard names.insert(name).inserted else {
        throw Self.invalid(path, "it has two mappings called \"\(printable(name))\"", entity: record.destinationName)
      }
    }
  }
}

extension MappingModelFile {
  /// The two versions of a model that a mapping model leads from and to.
  struct VersionPair {
    let source: ModelVersion
    let destination: ModelVersion
  }

  /// Which of the two models something is about.
  enum End: String {
    case source, destination
  }

  /// The versions that the file was made for.
  ///
  /// Compiled mapping models apply where every version hash in them is that of the entity in the version. Sources embed
  /// both models, and Xcode's compiler takes the hashes from those; where they are not there or not understood, the
  /// version that the file names counts. Where several pairs fit, because the file maps only some of the entities, the
  /// versions that it names come first, then those closest to each other, then the newest.
  ///
  /// - Throws: `mapping-stale`; it names the side and the first entity that differs.
  func versions(in bundle: ModelBundle) throws(MigrationError) -> VersionPair {
    let sources = candidates(.source, in: bundle)
    let destinations = candidates(.destination, in: bundle)
    guard !sources.isEmpty else { throw stale(.source, in: bundle) }
    guard !destinations.isEmpty else { throw stale(.destination, in: bundle) }
    typealias Rank = (isBackwards: Bool, distance: Int, age: Int)
    var best: (pair: VersionPair, rank: Rank)?
    for from in sources {
      for to in destinations where from != to {
        let pair = VersionPair(source: bundle.versions[from], destination: bundle.versions[to])
        guard pair.source.versionHashes != pair.destination.versionHashes else { continue }
        let rank: Rank = (from > to, abs(to - from), bundle.versions.count - from)
        if let best, !Self.precedes(rank, best.rank) { continue }
        best = (pair, rank)
      }
    }
    if let best { return best.pair }
    throw MigrationError(
      .mappingStale, operation: Self.operation, path: path,
      detail: """
        it leads from version "\(printable(bundle.versions[sources[0]].name))" to versions with the same version hashes
        """)
  }

  private static func precedes(
    _ first: (isBackwards: Bool, distance: Int, age: Int), _ second: (isBackwards: Bool, distance: Int, age: Int)
  ) -> Bool {
    if first.isBackwards != second.isBackwards { return !first.isBackwards }
    if first.distance != second.distance { return first.distance < second.distance }
    return first.age < second.age
  }

  // MARK: One side

  private func side(_ end: End) -> Side { end == .source ? source : destination }

  /// The entities that are mapped on one side, each with the version hash that it had, where that is known.
  private func mapped(_ end: End) -> [(name: String, hash: VersionHash?)] {
    let embedded = embeddedHashes(end)
    return entityMappings.compactMap { record in
      guard let name = end == .source ? record.sourceName : record.destinationName else { return nil }
      return (name, (end == .source ? record.sourceHash : record.destinationHash) ?? embedded?[name])
    }
  }

  /// The hashes of the embedded model, unless something in it was not understood.
  private func embeddedHashes(_ end: End) -> [String: VersionHash]? {
    guard let model = side(end).model, model.isComplete else { return nil }
    return model.model.versionHashes()
  }

  /// The places in the bundle of the versions that one side fits.
  private func candidates(_ end: End, in bundle: ModelBundle) -> [Int] {
    let named = bundle.versions.indices.filter { bundle.versions[$0].name == side(end).versionName }
    if let embedded = embeddedHashes(end) {
      let whole = bundle.versions.indices.filter { bundle.versions[$0].versionHashes == embedded }
      if !whole.isEmpty { return Self.narrowed(whole, to: named) }
    }
    let mapped = mapped(end)
    let fitting = bundle.versions.indices.filter { place in
      let version = bundle.versions[place]
      return mapped.allSatisfy { name, hash in
        guard let found = version.versionHashes[name] else { return false }
        return hash == nil || hash == found
      }
    }
    return Self.narrowed(fitting, to: named)
  }

  private static func narrowed(_ places: [Int], to named: [Int]) -> [Int] {
    let both = places.filter(named.contains)
    return both.isEmpty ? places : both
  }

  // MARK: Staleness

  /// The error of a file that fits no version: against the version that it names, or else the one that is most like it.
  private func stale(_ end: End, in bundle: ModelBundle) -> MigrationError {
    let mapped = mapped(end)
    func differing(_ version: ModelVersion) -> [(name: String, hash: VersionHash?)] {
      mapped.filter { name, hash in version.versionHashes[name].map { hash != nil && hash != $0 } ?? true }
    }
    let named = bundle.versions.first { $0.name == side(end).versionName }
    let closest = named ?? bundle.versions.min { differing($0).count < differing($1).count } ?? bundle.current
    let wrong = differing(closest).map(\.name).inCodeUnitOrder()
    let first = wrong.first ?? ""
    let more = wrong.count > 1 ? " (and \(wrong.count - 1) more)" : ""
    let version = "version \"\(printable(closest.name))\""
    let what =
      closest.model.entities[first] == nil
      ? "\(version) has no entity \"\(printable(first))\", which it maps"
      : "entity \"\(printable(first))\" of \(version) has another version hash than the one it maps"
    return MigrationError(
      .mappingStale, operation: Self.operation, path: path,
      detail: """
        it was made for another \(end.rawValue) model: \(what)\(more)
        """,
      entityName: first)
  }
}

/// Finds the files of Core Data's mapping models below a path.
struct MappingModelFiles {
  /// The file inside of a `.xcmappingmodel`.
  static let sourceFileName = "xcmapping.xml"

  /// More mapping models than any app has.
  static let maximumFiles = 1000

  /// How many entries of folders are looked at.
  static let maximumEntries = 100_000

  /// How deep folders are looked into.
  static let maximumDepth = 16

  let fileSystem: FileSystem

  /// What a path leads to: one mapping model, or a folder that may hold many.
  func find(_ path: FilePath) throws(MigrationError) -> (files: [FilePath], isOne: Bool) {
    do throws(FileError) {
      guard let status = try fileSystem.status(of: path) else {
        throw FileError(.notFound, operation: MappingModelFile.operation, path: path)
      }
      if status.kind != .directory || Self.isSource(path) { return ([path], true) }
      if try fileSystem.status(of: path.appending(Self.sourceFileName)) != nil { return ([path], true) }
      return (try search(path), false)
    } catch {
      throw MigrationError(error)
    }
  }

  private static func isSource(_ path: FilePath) -> Bool { path.extension?.lowercased() == "xcmappingmodel" }

  /// Links inside of the folder are not followed, so that none leads round in a circle.
  private func search(_ folder: FilePath) throws(FileError) -> [FilePath] {
    var result: [FilePath] = []
    var waiting = [(path: folder, depth: 0)]
    var entries = 0
    while let (path, depth) = waiting.popLast() {
      for name in try fileSystem.entries(of: path) {
        entries += 1
        guard entries <= Self.maximumEntries, result.count <= Self.maximumFiles else {
          throw FileError(
            .tooLarge, operation: MappingModelFile.operation, path: folder,
            detail: "the folder holds too much to be one of mapping models")
        }
        let entry = path.appending(name)
        guard let status = try fileSystem.status(of: entry, followingLinks: false) else { continue }
        if status.kind == .directory {
          if Self.isSource(entry) {
            result.append(entry)
          } else if depth < Self.maximumDepth {
            waiting.append((entry, depth + 1))
          }
        } else if status.kind == .regular, entry.extension?.lowercased() == "cdm" {
          result.append(entry)
        }
      }
    }
    return result.ordered { precedesNaturally($0.string, $1.string) }
  }
}
