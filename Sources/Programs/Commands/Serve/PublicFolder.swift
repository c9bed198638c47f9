import Foundation
import StoreCoordination

/// Where the files of the inspector's pages are.
enum PublicFolder {
  /// The first of: `LAZARET_PUBLIC`; `../share/lazaret/Public` beside the executable; `Public` in a folder above it.
  ///
  /// The last is for builds in the folder of the sources. The program itself knows no folder of the machine that built it.
  ///
  /// - Throws: `file-not-found` where none of them has the stylesheet.
  static func find() throws -> FilePath {
    let system = FileSystem()
    if let named = ProcessInfo.processInfo.environment["LAZARET_PUBLIC"], !named.isEmpty { return FilePath(named) }
    var candidates: [FilePath] = []
    if let executable = executable(system) {
      var folder = executable.removingLastComponent()
      candidates.append(folder.removingLastComponent().appending("share/lazaret/Public"))
      for _ in 0..<8 where folder.lastComponent != nil {
        candidates.append(folder.appending("Public"))
        folder.removeLastComponent()
      }
    }
    for candidate in candidates where try system.status(of: candidate.appending("lazaret.css")) != nil {
      return candidate
    }
    throw FileError(
      .notFound, operation: "find the files of the pages", path: candidates.first,
      detail: "they are not near the executable",
      hint: "Put the folder Public into ../share/lazaret beside the executable, or name it in LAZARET_PUBLIC.")
  }

  /// The executable of this process, links resolved; nil where the system does not tell.
  static func executable(_ system: FileSystem) -> FilePath? {
    for candidate in ["/proc/self/exe", CommandLine.arguments.first].compactMap(\.self) {
      // A name without a folder was found by PATH; where that is, only the system can tell.
      if let path = try? system.realPath(FilePath(candidate)) { return path }
    }
    return nil
  }
}
