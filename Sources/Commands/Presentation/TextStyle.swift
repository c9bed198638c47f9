import Foundation
import Platform
import SystemPackage

/// How this process shows text: as the options of the command line, the environment and the terminal have it.
///
/// Until a verb's options were read, and for a verb that has none, text is shown as it is.
struct TextStyle: Sendable {
  enum ColorChoice: String, CaseIterable, Sendable {
    case auto, always, never
  }

  /// Whether text is for people; JSON, and what one process writes for another, is never changed.
  var isForPeople = false

  var color = ColorChoice.auto

  /// Whether nothing but errors, warnings and questions is said.
  var isQuiet = false

  /// Whether columns and details are shown that are usually left out.
  var isVerbose = false

  /// Whether rows of nothing but zeros are shown too.
  var showsZeros = false

  /// The current folder from the root, with a slash at its end; nil where nothing is named from it.
  var folder: String?

  private static let shared = Mutex(TextStyle())

  /// The style of this process.
  static var current: TextStyle { shared.withLock { $0 } }

  /// Changes the style of this process.
  static func change(_ change: (inout sending TextStyle) -> Void) { shared.withLock { change(&$0) } }

  /// The current folder as texts name it; nil where no path can begin with it as texts show it.
  static func currentFolder() -> String? {
    // A folder that is gone names nothing.
    guard let path = try? FileSystem().realPath(".").string, path != "/", printable(path) == path else { return nil }
    return path + "/"
  }

  /// Whether colours are shown on a stream.
  ///
  /// - Parameter isInteractive: whether the stream is a terminal.
  func showsColor(isInteractive: Bool) -> Bool {
    switch color {
    case .always: return isForPeople
    case .never: return false
    case .auto:
      let environment = ProcessInfo.processInfo.environment
      // See https://no-color.org: any text but an empty one.
      guard isForPeople, isInteractive, environment["NO_COLOR"]?.isEmpty ?? true else { return false }
      return environment["TERM"] != "dumb"
    }
  }

  /// A line in which every path below the current folder is named from there.
  ///
  /// A path begins where no other word leads to it; a name that would be read as an option keeps a `./` before it.
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

  /// What cannot follow a folder's slash where a path goes on.
  private static let closing: Set<Unicode.Scalar> = [" ", "\"", "'", ")", "]", ",", "/", "\t", "\u{E}", "\u{F}"]
}
