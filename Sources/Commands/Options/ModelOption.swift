import ArgumentParser
import Platform
import SystemPackage

struct ModelOption: ParsableArguments {
  static let variable = "LAZARET_MODEL"

  @Option(
    name: .customLong("model"),
    help: ArgumentHelp(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, a store that carries it, or a .sql schema. If not given, what LAZARET_MODEL names.",
      valueName: "model"))
  var given: PathArgument?

  static var environment: FilePath? { HomeOptions.path(inEnvironment: variable) }

  static func chosen(_ given: [PathArgument]) -> [FilePath] {
    given.isEmpty ? [environment].compactMap(\.self) : given.map(\.path)
  }

  var path: FilePath {
    get throws {
      guard let path = given?.path ?? Self.environment else { throw Self.missing }
      return path
    }
  }

  private static var missing: ValidationError {
    ValidationError("Give the app's model with --model, or name it in \(variable).")
  }

  func validate() throws { _ = try path }
}

/// A path argument; any bytes but zero.
struct PathArgument: ExpressibleByArgument {
  var path: FilePath

  private let isFolder: Bool

  init?(argument: String) {
    guard !argument.isEmpty else { return nil }
    path = RawArguments.path(of: argument)
    isFolder = argument.hasSuffix("/")
  }

  /// Throws for a new file written as a missing folder or named like a part of a store.
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
