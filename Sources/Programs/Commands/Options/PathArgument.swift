import ArgumentParser
import StoreCoordination

/// A path on the command line; any bytes but zero.
struct PathArgument: ExpressibleByArgument {
  var path: FilePath

  init?(argument: String) {
    guard !argument.isEmpty else { return nil }
    path = RawArguments.path(of: argument)
  }

  static var defaultCompletionKind: CompletionKind { .file() }
}
