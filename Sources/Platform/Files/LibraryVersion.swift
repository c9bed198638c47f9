import Foundation

/// The version of this library, and what it runs on.
public enum LibraryVersion {
  /// Semantic version; written into every receipt and report.
  public static let current = "0.1.0"

  /// The operating system in words.
  package static var operatingSystem: String {
    #if os(Linux)
      "Linux, \(ProcessInfo.processInfo.operatingSystemVersionString)"
    #else
      ProcessInfo.processInfo.operatingSystemVersionString
    #endif
  }
}
