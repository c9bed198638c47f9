import Foundation
import StoreCoordination

/// The browser of the user of this machine.
enum BrowserWindow {
  /// Whether there is a user to open a window for: a terminal, and on Linux a display too.
  static var isLikely: Bool {
    guard Terminal.standardOutput.isInteractive else { return false }
    #if os(macOS)
      return true
    #else
      let environment = ProcessInfo.processInfo.environment
      return environment["DISPLAY"]?.isEmpty == false || environment["WAYLAND_DISPLAY"]?.isEmpty == false
    #endif
  }

  /// Opens a link, where there is a browser; without one the link is on the terminal.
  static func open(_ link: String) {
    guard isLikely, let tool = find() else { return }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: tool)
    process.arguments = [link]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    // What does not start was a convenience; the link is printed in any case.
    try? process.run()
  }

  private static func find() -> String? {
    #if os(macOS)
      return "/usr/bin/open"
    #else
      let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
      return folders.map { "\($0)/xdg-open" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    #endif
  }
}
