import Foundation
import Platform
import SystemPackage

/// The text style by options, environment and terminal.
///
/// Before a verb's options are read, text is unstyled.
struct TextStyle: Sendable {
  enum ColorChoice: String, CaseIterable, Sendable {
    case auto, always, never
  }

  /// Whether text is for people; JSON and text for other processes stay unchanged.
  var isForPeople = false

  var color = ColorChoice.auto

  /// Whether only errors, warnings and questions appear.
  var isQuiet = false

  var isVerbose = false

  var showsZeros = false

  /// The absolute current folder with a final slash; nil to keep paths whole.
  var folder: String?

  private static let shared = Mutex(TextStyle())

  static var current: TextStyle { shared.withLock { $0 } }

  static func change(_ change: (inout sending TextStyle) -> Void) { shared.withLock { change(&$0) } }

  /// Returns the current folder; nil if no displayed path can begin with it.
  static func currentFolder() -> String? {
    // A removed folder.
    guard let path = try? FileSystem().realPath(".").string, path != "/", printable(path) == path else { return nil }
    return path + "/"
  }

  func showsColor(isInteractive: Bool) -> Bool {
    switch color {
    case .always: return isForPeople
    case .never: return false
    case .auto:
      let environment = ProcessInfo.processInfo.environment
      // See https://no-color.org: any nonempty text.
      guard isForPeople, isInteractive, environment["NO_COLOR"]?.isEmpty ?? true else { return false }
      return environment["TERM"] != "dumb"
    }
  }

  /// Shortens every path below the current folder.
  ///
  /// A path begins at a word boundary; a name like an option keeps its `./`.
  func shortened(_ line: String) -> String {
    guard let folder, line.contains(folder) else { return line }
    var result = ""
    var rest = line[...]
    while let found = rest.range(of: folder) {
      let before = rest[..<found.lowerBound]
      rest = rest[found.upperBound...]
      result += before
      let isStart = (result.unicodeScalars.last).map { Self.opening.contains($0) } ?? true
      let next = rest.unicodeScalars.first
      if isStart, let next, !Self.closing.contains(next) {
        if next == "-" { result += "./" }
      } else {
        result += folder
      }
    }
    return result + rest
  }

  private static let opening: Set<Unicode.Scalar> = [" ", "\"", "'", "(", "[", "=", "\t", "\u{F}"]

  /// The characters that cannot continue a path after a folder's slash.
  private static let closing: Set<Unicode.Scalar> = [" ", "\"", "'", ")", "]", ",", "/", "\t", "\u{E}", "\u{F}"]
}
