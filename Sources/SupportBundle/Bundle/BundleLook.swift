public import Platform
public import SystemPackage

/// What a bundle says about itself at its very beginning, without being unpacked: enough to ask whether it may leave the machine.
public struct BundleLook: Sendable, Hashable {
  /// Whether only the holders of certain keys can open it.
  public var isEncrypted: Bool

  /// How much of the store is in it; nil where it is encrypted.
  public var level: BundleLevel?

  /// Its size in bytes.
  public var bytes: Int64

  private static let operation = "look at the bundle"
  private static let limit: Int64 = 1 << 20

  /// Looks at a file.
  ///
  /// - Throws: ``SupportBundleError``: `bundle-unreadable` where the file is no bundle, or what the file system says.
  public init(at path: FilePath, in fileSystem: FileSystem) throws(SupportBundleError) {
    do {
      let file = try fileSystem.open(path)
      let first = try file.bytes(at: 0, length: 4096)
      bytes = file.count
      isEncrypted = AgeOpener.isAge(first)
      if isEncrypted { return }
      guard GzipReader.isGzip(first) else { throw Self.unreadable(path) }
      level = try Self.level(of: file)
      if level == nil { throw Self.unreadable(path) }
    } catch let error as SupportBundleError {
      throw error
    } catch is ArchiveError {
      throw Self.unreadable(path)
    } catch {
      throw SupportBundleError.told(error, operation: Self.operation, path: path)
    }
  }

  private static func unreadable(_ path: FilePath) -> SupportBundleError {
    SupportBundleError(
      .bundleUnreadable, operation: operation, path: path,
      detail: "it is not a bundle that lazaret export wrote",
      hint: "Give the file that lazaret export wrote; nothing else is sent.")
  }

  /// What `bag-info.txt` says, which is among the first files of a bag; nil where it is not there, or says nothing known.
  private static func level(of file: ReadableFile) throws -> BundleLevel? {
    var gzip = try GzipReader(limits: UnpackingLimits(bytes: 64 << 20))
    var tar = TarReader()
    var info: [UInt8] = []
    var stage = Stage.before
    var position: Int64 = 0
    while position < min(file.count, limit), stage != .after {
      let packed = try file.bytes(at: position, length: 16 << 10)
      guard !packed.isEmpty else { break }
      position += Int64(packed.count)
      try gzip.read(packed) { piece in
        guard stage != .after else { return }
        try tar.read(piece) { event in
          switch event {
          case .entry(let entry):
            if stage == .before, !entry.isFolder, entry.components.count == 2, entry.components[1] == "bag-info.txt" {
              stage = .within
            }
          case .content(let bytes):
            guard stage == .within else { return }
            guard info.count + bytes.count <= BagManifest.lengthLimit else {
              throw ArchiveError(.tooLarge, "a file that describes the bundle is too large")
            }
            info += bytes
          case .end: if stage == .within { stage = .after }
          }
        }
      }
    }
    guard stage == .after, let tags = BagTags(info), tags["Lazaret-Bundle-Version"] == "1" else { return nil }
    return tags["Lazaret-Level"].flatMap(BundleLevel.init(rawValue:))
  }

  private enum Stage {
    case before
    case within
    case after
  }
}

/// How much of a store leaves the machine with a bundle.
public enum BundleLevel: String, Sendable, Hashable, Codable, CaseIterable {
  /// Numbers, names of tables and columns, and states: no byte of the user's.
  case facts

  /// Besides, the damaged and orphan pages and those of the schema, as they are.
  case damagedPages = "damaged-pages"

  /// Besides the facts, the whole store with its damage, its values replaced but for those that the report lists.
  case scrubbed

  /// Everything, byte for byte.
  case full

  /// What it means, for the user who is to agree to it.
  public var words: String {
    switch self {
    case .facts: "only numbers, names of tables and columns, and what is damaged; none of your data"
    case .damagedPages: "the facts, and the damaged pages as they are; they can hold some of your data"
    case .scrubbed: "the facts, and the whole store with meaningless values of the same length in the place of its own"
    case .full: "everything, byte for byte, all your data included"
    }
  }
}
