import Foundation

/// The software versions noted in receipts and manifests.
public struct SoftwareVersions: Sendable, Hashable, Codable {
  /// The app's version, given by the caller.
  public var app: String?

  /// This library's version.
  public var library: String

  /// The SQLite of this process.
  public var sqlite: String?

  /// The SQLite that last wrote the store, by its header.
  public var storeWrittenBySQLite: String?

  /// The operating system.
  public var operatingSystem: String

  /// Collects the versions.
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

/// The version of this library and of the system.
public enum LibraryVersion {
  /// The semantic version; written into every receipt and report.
  public static let current = "0.1.0"

  package static var operatingSystem: String {
    #if os(Linux)
      "Linux, \(ProcessInfo.processInfo.operatingSystemVersionString)"
    #else
      ProcessInfo.processInfo.operatingSystemVersionString
    #endif
  }
}
