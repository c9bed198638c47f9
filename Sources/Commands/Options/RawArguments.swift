import Lazaret
import Synchronization

/// The arguments of this process, byte for byte.
///
/// A path need not be valid UTF-8, but the parser of the command line knows only text. Such an argument is given to it
/// under a stand-in, and `PathArgument` looks up what it stands for.
enum RawArguments {
  private static let paths = Mutex<[String: FilePath]>([:])

  /// The arguments without the command's name.
  static func take() -> [String] {
    var result: [String] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let raw = unsafe CommandLine.unsafeArgv[index] else { break }
      if let text = unsafe String(validatingCString: raw) {
        result.append(text)
      } else {
        let standIn = "\u{FFFD}argument-\(index)"
        let path = unsafe FilePath(platformString: raw)
        paths.withLock { $0[standIn] = path }
        result.append(standIn)
      }
    }
    return result
  }

  /// The path that an argument stands for.
  static func path(of argument: String) -> FilePath {
    paths.withLock { $0[argument] } ?? FilePath(argument)
  }
}
