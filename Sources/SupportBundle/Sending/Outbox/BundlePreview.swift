internal import Lazaret
public import Platform
public import SystemPackage

/// The bundle to send, shown to the user for consent.
public struct BundlePreview: Sendable, Hashable {
  /// The file.
  public var path: FilePath

  /// The size in bytes.
  public var bytes: Int64

  /// The hexadecimal SHA-256; only content with this checksum is sent.
  public var sha256: String

  /// How much of the store is in it; nil if encrypted and in no receipt.
  public var level: BundleLevel?

  /// Whether it is encrypted.
  public var isEncrypted: Bool

  /// The name for the receiver.
  public var name: String { path.lastComponent.map { printable($0.string) } ?? "bundle" }

  /// Whether a third party could read user records in transit.
  public var showsRecords: Bool { !isEncrypted && (level == .full || level == .damagedPages) }

  /// Reads and hashes a bundle.
  ///
  /// - Throws: `bundle-unreadable`, or a file error.
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

  /// Finds the level in receipts of quarantined stores.
  private static func level(of sha256: String, home: FilePath, _ surroundings: Surroundings) throws -> BundleLevel? {
    do {
      for stored in try QuarantineCatalogue(home: home, surroundings: surroundings).stores() {
        if let export = stored.receipt?.exports?.last(where: { $0.sha256 == sha256 }) {
          return BundleLevel(rawValue: export.level)
        }
      }
    } catch is QuarantineError {
      // Other commands report unreadable receipts.
    }
    return nil
  }
}
