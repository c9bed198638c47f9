import ArgumentParser
import Lazaret

/// How results are printed.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON for programs; errors go to standard error as JSON too.")
  var json = false
}

/// Where the catalogue of quarantined stores is.
struct HomeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The folder with Backups/ and the catalogue of quarantined stores; the current one if not given.",
      valueName: "dir"))
  var home: PathArgument?

  /// The folder; the current one if none was given.
  var path: FilePath { home?.path ?? "." }
}

/// The order of a model's versions.
struct VersionOrderOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The model's versions, oldest first, separated by commas; the natural order of their names, with the current one last, if not given.",
      valueName: "names"))
  var versions: String?

  /// The names; nil if none were given.
  var order: [String]? { versions?.split(separator: ",").map { String($0.trimmingSpaces) } }
}

extension Substring {
  fileprivate var trimmingSpaces: Substring {
    var rest = drop { $0 == " " }
    while rest.last == " " { rest.removeLast() }
    return rest
  }
}
