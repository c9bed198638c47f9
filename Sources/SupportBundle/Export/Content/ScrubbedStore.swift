import Lazaret
internal import Platform
internal import Salvage
internal import SystemPackage

/// The level `scrubbed`: the store with replaced values.
struct ScrubbedStore: Sendable {
  let items: [BundleItem]

  let result: StoreScrubber.Result

  var checkSeconds: Double { (result.checkDuration / .milliseconds(1)).rounded() / 1000 }

  init(_ work: ExportWork, _ evidence: ExportEvidence, in folder: FilePath) throws {
    guard evidence.hasMain else {
      throw SupportBundleError(
        .store, operation: SupportBundleErrors.operation, path: work.source.originalPath,
        detail: "its main file is missing, so that nothing can be scrubbed")
    }
    try ExportFolder.requireRoom(evidence.allBytes, at: folder, work.fileSystem)
    let target = folder.appending("scrubbed")
    try work.fileSystem.makeDirectory(target, permissions: .ownerReadWriteExecute)
    let key: ScrubbingKey =
      work.options.usesSameKey ? try ScrubbingKeyFile(home: work.home, in: work.fileSystem).key() : .random()
    do {
      result = try Self.scrubber(work, key: key).scrub(evidence.files, into: target) {
        [progress = work.progress] phase, done, total in
        progress(phase == .check ? .checking : .scrubbing, done, total)
      }
    } catch { throw Self.told(SupportBundleError(scrubbing: error), work) }
    var items = StoreItems.items(
      of: try ExportEvidence(resting: result.files, in: work.fileSystem), named: work.bundledName, "values replaced")
    // A quarantined store's name contains its time.
    var told = result.report
    if let stem = evidence.files.main.stem, let bundled = FilePath(work.bundledName).stem {
      for index in told.files.indices {
        let name = told.files[index].name.text
        told.files[index].name = PathText(FilePath(name.replacing(stem, with: bundled)))
      }
    }
    items.append(
      BundleItem(
        "scrub.json", .bytes(try JSON.bytes(of: told, to: "export the store")),
        words: "what was replaced, and what was overwritten because it could not be read"))
    self.items = items
  }

  private static func scrubber(_ work: ExportWork, key: ScrubbingKey) -> StoreScrubber {
    StoreScrubber(
      key: key, model: work.options.model.map(SalvageModel.init),
      rules: ScrubRules(keeping: work.options.keeping, dropping: work.options.dropping), fileSystem: work.fileSystem)
  }

  private static func told(_ error: SupportBundleError, _ work: ExportWork) -> SupportBundleError {
    switch error.kind {
    case .cancelled: return SupportBundleErrors.cancelled()
    case .valuesFound:
      return SupportBundleError(
        .notScrubbed, because: error, operation: SupportBundleErrors.operation, path: work.source.originalPath,
        detail: error.detail + SupportBundleErrors.keptDetail(work.options.keeping),
        hint: SupportBundleErrors.keptHint(work.options.keeping))
    default: return error
    }
  }
}

extension ScrubbedStore {
  static func scanner(_ work: ExportWork, _ evidence: ExportEvidence) throws -> ValueScanner? {
    do {
      return try scrubber(work, key: .random()).scanner(of: evidence.files) {
        [progress = work.progress] _, done, total in
        progress(.checking, done, total)
      }
    } catch { throw told(SupportBundleError(scrubbing: error), work) }
  }
}

/// The files of a store in a bundle: `store/App.sqlite` and companions.
enum StoreItems {
  /// - Parameter manner: the fidelity, such as `byte for byte`.
  static func items(of evidence: ExportEvidence, named name: String, _ manner: String) -> [BundleItem] {
    var items: [BundleItem] = []
    for member in evidence.members where member.status.kind == .regular {
      let (suffix, words) =
        switch member.part {
        case .main: ("", "the store")
        case .wal: ("-wal", "its write-ahead log")
        case .sharedMemory: ("-shm", "the index of the log")
        case .journal: ("-journal", "its rollback journal")
        // A file cannot be the store's folder.
        case .externalData: ("-external-data", "a file in the place of the folder with large values")
        }
      items.append(
        BundleItem(
          "store/\(name)\(suffix)", .file(member.path, size: member.status.size), words: "\(words), \(manner)"))
    }
    let stem = name.hasSuffix(".sqlite") ? String(name.dropLast(".sqlite".count)) : name
    for file in evidence.external {
      let rest = file.name.split(separator: "/").dropFirst().joined(separator: "/")
      items.append(
        BundleItem(
          "store/.\(stem)_SUPPORT/\(rest)", .file(file.path, size: file.size),
          words: "a large value in a file of its own, \(manner)"))
    }
    return items
  }
}

/// The scrubbing key of a home: `Keys/scrubbing.key`, readable only by its owner.
///
/// It gives all scrubbed bundles of the owner the same pseudonyms, and never goes into a bundle.
struct ScrubbingKeyFile {
  static let place: FilePath = "Keys/scrubbing.key"

  private let path: FilePath
  private let fileSystem: FileSystem

  init(home: FilePath, in fileSystem: FileSystem) {
    path = home.pushing(Self.place)
    self.fileSystem = fileSystem
  }

  /// Returns the key, creating it if needed.
  ///
  /// - Throws: `bundle-request` if malformed; file errors.
  func key() throws -> ScrubbingKey {
    if let key = try read() { return key }
    try fileSystem.makeDirectory(path.folder, permissions: .ownerReadWriteExecute)
    let key = ScrubbingKey.random()
    let text = key.bytes.hexadecimal + "\n"
    do throws(FileError) {
      try fileSystem.writeAtomically(Array(text.utf8), to: path, replacing: false, permissions: .ownerReadWrite)
    } catch {
      guard error.kind == .alreadyExists, let key = try read() else { throw error }
      return key
    }
    return key
  }

  private func read() throws -> ScrubbingKey? {
    guard try fileSystem.status(of: path, followingLinks: false) != nil else { return nil }
    let digits = try fileSystem.contents(of: path, limit: 256).filter { $0 > 0x20 }
    guard let bytes = [UInt8](hexadecimal: digits), bytes.count == ScrubbingKey.length else {
      throw SupportBundleError(
        .request, operation: "read the scrubbing key", path: path, detail: "it is not 64 hexadecimal digits",
        hint: "Move it away; the next export makes a new one, with other pseudonyms.")
    }
    return try ScrubbingKey(bytes)
  }
}

/// The secret from which pseudonyms are derived.
///
/// The same key gives the same pseudonyms, so scrubbed copies of a store can be compared. Its holder can test guesses,
/// so it stays with the store's owner and never goes into a bundle.
public struct ScrubbingKey: Sendable {
  /// The length of a key in bytes.
  public static let length = 32

  let bytes: [UInt8]

  /// Creates a key of 32 bytes.
  ///
  /// - Throws: `scrubbing-key` for any other length.
  public init(_ bytes: [UInt8]) throws {
    guard bytes.count == Self.length else {
      throw SupportBundleError(
        .scrubbingKey, operation: "use the scrubbing key", detail: "it has \(bytes.count) bytes",
        hint: "A key has \(Self.length) bytes.")
    }
    self.bytes = bytes
  }

  private init(random bytes: [UInt8]) { self.bytes = bytes }

  /// Returns a random key from the system's generator.
  public static func random() -> ScrubbingKey {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// Returns a random key from a generator.
  public static func random(using generator: inout some RandomNumberGenerator) -> ScrubbingKey {
    ScrubbingKey(random: (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }

  /// Derives a keyed function (HKDF-Expand with SHA-256, RFC 5869).
  func function(for purpose: String, attempt: Int) -> KeyedFunction {
    let info = Array("lazaret scrubbing 1 \(purpose) \(attempt)".utf8) + [1]
    let material = Array(HMAC<SHA256>.authenticationCode(for: info, using: SymmetricKey(data: bytes)))
    func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    return KeyedFunction(word(material[..<8]), word(material[8..<16]))
  }
}
