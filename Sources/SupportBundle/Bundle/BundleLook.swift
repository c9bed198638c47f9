public import Platform
public import SystemPackage

/// The facts readable without unpacking a bundle, to ask for consent to send it.
public struct BundleLook: Sendable, Hashable {
  /// Whether the bundle is encrypted to certain keys.
  public var isEncrypted: Bool

  /// How much of the store is in it; nil if encrypted.
  public var level: BundleLevel?

  /// The size in bytes.
  public var bytes: Int64

  private static let operation = "look at the bundle"
  private static let limit: Int64 = 1 << 20

  /// Reads the beginning of a file.
  ///
  /// - Throws: ``SupportBundleError``: `bundle-unreadable`, or a file error.
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

  /// Reads the level from `bag-info.txt`; nil if missing or unknown.
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
  /// Numbers, states, and names of tables and columns: no user data.
  case facts

  /// The facts, and the damaged, orphan and schema pages unchanged.
  case damagedPages = "damaged-pages"

  /// The facts, and the whole damaged store with replaced values, except those that the report lists.
  case scrubbed

  /// Everything, byte for byte.
  case full

  /// The description for the user who is asked for consent.
  public var words: String {
    switch self {
    case .facts: "only numbers, names of tables and columns, and what is damaged; none of your data"
    case .damagedPages: "the facts, and the damaged pages as they are; they can hold some of your data"
    case .scrubbed: "the facts, and the whole store with meaningless values of the same length in the place of its own"
    case .full: "everything, byte for byte, all your data included"
    }
  }
}
