import ArgumentParser
import StoreCoordination

/// The app's model of a verb that cannot do without one.
struct ModelOption: ParsableArguments {
  /// The variable of the environment that names the app's model.
  static let variable = "LAZARET_MODEL"

  @Option(
    name: .customLong("model"),
    help: ArgumentHelp(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, a store that carries it, or a .sql schema. If not given, what LAZARET_MODEL names.",
      valueName: "model"))
  var given: PathArgument?

  /// The model that the environment names; nil for none.
  static var environment: FilePath? { HomeOptions.path(inEnvironment: variable) }

  /// The models that were given, else the one that the environment names.
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
