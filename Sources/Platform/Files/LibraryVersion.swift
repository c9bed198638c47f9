import Foundation

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
