import ArgumentParser
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import SupportBundle
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

struct VersionOrderOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The model's versions, oldest first, separated by commas. Versions left out are passed over. If not given, only mappings and the lock file tell an order.",
      valueName: "names"))
  var versions: String?

  @Option(
    help: ArgumentHelp(
      "The lock file that `model lint` writes, with the hashes and the order of the released versions.",
      valueName: "file"))
  var lock: PathArgument?

  @OptionGroup var sources: SourceOptions

  private var names: [String]? { versions?.split(separator: ",").map { String($0.trimmingSpaces) } }

  /// - Parameters:
  ///   - target: the target, if not the current version.
  ///   - json: whether to report uncertainties of Swift sources as JSON.
  func load(
    _ path: FilePath, to target: String? = nil, json: Bool
  ) throws -> ModelBundle {
    try loaded(path, to: target, json: json).bundle
  }

  func loaded(
    _ path: FilePath, to target: String? = nil, json: Bool
  ) throws -> LoadedModel {
    var loaded = try loadUnlocked(path, to: target)
    try loaded.tell(json: json)
    loaded.bundle = try locked(loaded.bundle, to: target)
    return loaded
  }

  /// Loads them for display, with incomplete versions and open questions.
  func loadWhole(_ path: FilePath) throws -> LoadedModel {
    var loaded = try loadUnlocked(path, includingIncomplete: true)
    loaded.bundle = try locked(loaded.bundle, to: nil)
    return loaded
  }

  private func locked(_ bundle: ModelBundle, to target: String?) throws -> ModelBundle {
    guard let place = lock, names == nil else { return bundle }
    guard let lock = try ModelLock.read(place.path) else {
      throw FileError(.notFound, operation: "read the lock file", path: place.path)
    }
    return try lock.ordered(bundle, to: target, path: place.path)
  }

  /// Loads them without the lock file, which a verb may write; drafts too.
  func loadUnlocked(
    _ path: FilePath, to target: String? = nil, includingIncomplete: Bool = false
  ) throws -> LoadedModel {
    var loaded = try LoadedModel.load(
      path, sources, includingIncomplete: includingIncomplete)
    if let names { loaded.bundle = try loaded.bundle.ordered(names, to: target) }
    return loaded
  }

  /// Returns the given version order, for a worker that loads the models itself.
  func order(of models: [FilePath]) throws -> [String]? {
    if let names { return names }
    guard lock != nil, let model = models.first else { return nil }
    return try load(model, json: true).versions.map(\.name)
  }

  /// Loads the model that fits a store best, of several or a folder's; nil if not given.
  func loadAppModel(
    _ paths: [FilePath], fitting store: @autoclosure () throws -> FilePath, json: Bool
  ) throws -> AppModel? {
    let models = try paths.flatMap { try Self.models(at: $0) }.map { try loadAppModel($0, json: json) }
    return models.count > 1 ? AppModel.fitting(models, try store()) : models.first
  }

  /// Returns the models in a folder that is no model itself, by name; else the path.
  private static func models(at path: FilePath) throws -> [FilePath] {
    let endings: Set<String> = ["xcdatamodeld", "xcdatamodel", "momd", "mom", "sql"]
    func isModel(_ name: String?) -> Bool { name.map { endings.contains($0.lowercased()) } ?? false }
    let system = FileSystem()
    guard !isModel(path.extension), try system.status(of: path)?.kind == .directory, try ModelHistory(path) == nil
    else { return [path] }
    let found = try system.entries(of: path).filter { isModel($0.extension) }.sorted { $0.string < $1.string }
    return found.isEmpty ? [path] : found.map { path.appending($0) }
  }

  /// Loads an app's model, Swift sources or `.sql` schema.
  ///
  /// - Parameter target: a version in place of the current one.
  func loadAppModel(_ path: FilePath, to target: String? = nil, json: Bool) throws -> AppModel {
    do {
      let isScript = try AppModel.isScript(path)
      let place = isScript ? nil : try CarrierName.path(path)
      if let schema = try isScript ? AppModel.load(path) : place.flatMap({ try $0.carrier()?.schema() }) {
        guard target == nil else { throw ValidationError("A schema in SQL has no versions for --to.") }
        return schema
      }
      let bundle = try load(path, to: target, json: json)
      guard let target else { return .coreData(bundle) }
      guard let chosen = bundle.choosing(target) else {
        let names = bundle.versions.map { printable($0.name) }.joined(separator: ", ")
        throw ModelError(
          .versionOrder, path: path,
          detail: "it has no version \"\(printable(target))\" that can be read; it has \(names)",
          hint: "Name one of these versions.")
      }
      return .coreData(chosen)
    } catch {
      if path == ModelOption.environment, !json {
        Terminal.standardError.write("lazaret: \(ModelOption.variable) names the model \(quoted(path)).\n")
      }
      throw error
    }
  }
}

extension Substring {
  var trimmingSpaces: Substring {
    var rest = drop { $0 == " " }
    while rest.last == " " { rest.removeLast() }
    return rest
  }
}
