public import StoreFiles
public import SystemPackage

/// A bundle that was unpacked and whose every file is what its list says.
public struct ReceivedBundle: Sendable, Hashable, Encodable {
  /// The folder with the bag.
  public var folder: FilePath

  /// How much of the store is in it.
  public var level: BundleLevel

  /// The app, as the sender says; not to be trusted.
  public var app: String?

  /// The store's name, as the sender says; not to be trusted.
  public var store: String

  /// When it was made, as the sender says.
  public var date: Timestamp?

  /// What the sender calls it.
  public var identifier: String

  /// Whether it was encrypted.
  public var isEncrypted: Bool

  /// The SHA-256 of the bundle as it arrived, in hexadecimal digits.
  public var sha256: String

  /// Its size as it arrived, in bytes.
  public var bytes: Int64

  /// What is below `data/`.
  public var files: [File]

  /// A file below `data/`.
  public struct File: Sendable, Hashable, Encodable {
    /// Its path below `data/`.
    public var name: String

    /// Its size in bytes.
    public var bytes: Int64
  }

  /// Where the store's main file is; nil where the level has none.
  public var storePath: FilePath? {
    guard let file = files.first(where: { $0.name.hasPrefix("store/") && $0.name.hasSuffix(".sqlite") }) else {
      return nil
    }
    return folder.appending("data").pushing(FilePath(file.name))
  }

  /// Writes what it is; where it was unpacked to is not told.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "identifier": identifier, "level": level, "app": app, "store": store, "date": date, "encrypted": isEncrypted,
      "sha256": sha256, "bytes": bytes, "files": files,
    ])
  }
}
