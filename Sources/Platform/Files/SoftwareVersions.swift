/// The versions of everything that had a part in what was done to a store, as receipts and manifests note them.
public struct SoftwareVersions: Sendable, Hashable, Codable {
  /// The app's own, given by the caller.
  public var app: String?

  /// This library's version.
  public var library: String

  /// The SQLite that this process ran with.
  public var sqlite: String?

  /// The SQLite that wrote the store last, as its header says.
  public var storeWrittenBySQLite: String?

  /// The operating system in words.
  public var operatingSystem: String

  /// The versions, as far as they are known.
  public init(
    app: String? = nil, library: String, sqlite: String? = nil, storeWrittenBySQLite: String? = nil,
    operatingSystem: String
  ) {
    self.app = app
    self.library = library
    self.sqlite = sqlite
    self.storeWrittenBySQLite = storeWrittenBySQLite
    self.operatingSystem = operatingSystem
  }
}
