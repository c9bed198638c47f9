import ArgumentParser
import StoreCoordination

/// A path on the command line; any bytes but zero.
struct PathArgument: ExpressibleByArgument {
  var path: FilePath

  /// Whether it ends in a slash, which only a folder's does.
  private let isFolder: Bool

  init?(argument: String) {
    guard !argument.isEmpty else { return nil }
    path = RawArguments.path(of: argument)
    isFolder = argument.hasSuffix("/")
  }

  /// Refuses the place of something new that is written as a folder where there is no such folder, or that is the name of a
  /// part of a store.
  func requirePlace() throws {
    if let store = try StoreFileSet.store(withPart: path, in: FileSystem()) {
      throw ValidationError(
        "\(quoted(path)) is the name of a part of the store \(quoted(store)), and SQLite would take it for one. Choose another name."
      )
    }
    guard isFolder, try FileSystem().status(of: path)?.kind != .directory else { return }
    throw ValidationError("There is no folder \(quoted(path)). Make it first, or leave out the / at the end.")
  }

  static var defaultCompletionKind: CompletionKind { .file() }
}
