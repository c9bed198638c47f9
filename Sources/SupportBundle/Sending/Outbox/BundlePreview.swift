internal import Lazaret
public import Platform
public import SystemPackage

/// What would be sent, as it is shown before the user agrees to it.
public struct BundlePreview: Sendable, Hashable {
  /// The file.
  public var path: FilePath

  /// Its size in bytes.
  public var bytes: Int64

  /// Its SHA-256 in hexadecimal digits: only what has this sum is sent.
  public var sha256: String

  /// How much of the store is in it; nil where it is encrypted and no receipt of the home tells.
  public var level: BundleLevel?

  /// Whether only the holders of certain keys can open it.
  public var isEncrypted: Bool

  /// Its name, as the receiver is told it.
  public var name: String { path.lastComponent.map { printable($0.string) } ?? "bundle" }

  /// Whether a third party on the way could read records of the user's.
  public var showsRecords: Bool { !isEncrypted && (level == .full || level == .damagedPages) }

  /// Looks at a bundle and sums it up.
  ///
  /// - Throws: `bundle-unreadable` where it is none, or what the file system says.
  public init(
    of path: FilePath, home: FilePath, surroundings: Surroundings = .machine,
    progress: (_ done: Int64, _ total: Int64) throws -> Void = { _, _ in }
  ) throws(SendingError) {
    do {
      let look = try BundleLook(at: path, in: surroundings.fileSystem)
      self.path = path
      isEncrypted = look.isEncrypted
      let file = try surroundings.fileSystem.open(path)
      bytes = file.count
      sha256 = try FileDigest(of: file) { try progress($0, look.bytes) }.hexadecimal
      level = look.level
      if level == nil { level = try Self.level(of: sha256, home: home, surroundings) }
    } catch {
      throw SendingError.told(error, operation: "look at the bundle", path: path)
    }
  }

  /// What the receipts of the home's quarantined stores say of a bundle.
  private static func level(of sha256: String, home: FilePath, _ surroundings: Surroundings) throws -> BundleLevel? {
    do {
      for stored in try QuarantineCatalogue(home: home, surroundings: surroundings).stores() {
        if let export = stored.receipt?.exports?.last(where: { $0.sha256 == sha256 }) {
          return BundleLevel(rawValue: export.level)
        }
      }
    } catch is QuarantineError {
      // What cannot be read says nothing; that is for other verbs to tell.
    }
    return nil
  }
}
