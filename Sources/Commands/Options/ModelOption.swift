public import ArgumentParser
import Backup
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import Salvage
import SupportBundle
public import SwiftModelSources
import SystemPackage

struct ModelOption: ParsableArguments {
  static let variable = "LAZARET_MODEL"

  @Option(
    help:
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, a store that carries it, or a .sql schema. If not given, what LAZARET_MODEL names."
  )
  var model: PathArgument?

  static var environment: FilePath? { FilePath(environment: variable) }

  static func chosen(_ given: [PathArgument]) -> [FilePath] {
    given.isEmpty ? [environment].compactMap(\.self) : given.map(\.path)
  }

  var path: FilePath {
    get throws {
      guard let path = model?.path ?? Self.environment else { throw Self.missing }
      return path
    }
  }

  private static var missing: ValidationError {
    ValidationError("Give the app's model with --model, or name it in \(variable).")
  }

  func validate() throws { _ = try path }
}

/// The models of which the one that fits a store is taken.
struct FittingModelsOption: ParsableArguments {
  @Option(
    help:
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, a store that carries it, or a .sql schema; of several, or of those in a folder, the one that fits the store is taken. If not given, what LAZARET_MODEL names."
  )
  var model: [PathArgument] = []

  var paths: [FilePath] { ModelOption.chosen(model) }
}

struct VersionOrderOptions: ParsableArguments {
  @Option(
    help: .text(
      "The model's versions, oldest first, separated by commas. Versions left out are passed over. If not given, only mappings and the lock file tell an order.",
      "names"))
  var versions: String?

  @Option(
    help: .text(
      "The lock file that `model lint` writes, with the hashes and the order of the released versions.", "file"))
  var lock: PathArgument?

  @OptionGroup var sources: SourceOptions

  private var names: [String]? { versions?.split(separator: ",").map { String($0.trimmingSpaces) } }

  /// - Parameters:
  ///   - target: the target, if not the current version.
  ///   - json: whether to report uncertainties of Swift sources as JSON.
  func load(_ path: FilePath, to target: String? = nil, json: Bool) throws -> ModelBundle {
    try loaded(path, to: target, json: json).bundle
  }

  func loaded(_ path: FilePath, to target: String? = nil, json: Bool) throws -> LoadedModel {
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
    var loaded = try LoadedModel.load(path, sources, includingIncomplete: includingIncomplete)
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

/// The facts missing from Swift sources.
struct SourceOptions: ParsableArguments {
  @Option(
    help: .text(
      "Where the model is Swift sources: the classes that make it up, or a VersionedSchema, separated by commas. If not given, what the app gives to its containers is taken, and its VersionedSchemas are the versions.",
      "names"))
  var types: String?

  @Option(help: "Where the model is Swift sources: the platform of #if os(…).")
  var platform: SourcePlatform?

  @Option(
    help: .text("Where the model is Swift sources: a flag that #if finds set; may be given several times.", "flag"))
  var define: [String] = []

  /// Reads sources.
  ///
  /// - Parameters:
  ///   - other: another platform than the given one.
  ///   - onlyItsOwnFiles: whether to skip subfolders.
  func load(
    _ path: FilePath, platform other: SourcePlatform? = nil, onlyItsOwnFiles: Bool = false
  ) throws -> SourceModels {
    let machine = Surroundings.machine
    // Evaluated once, when the model is made, as in SwiftData.
    var models = try SwiftSources.load(
      path,
      options: SwiftSources.Options(
        types: types?.split(separator: ",").map { String($0.trimmingSpaces) } ?? [], platform: other ?? platform,
        flags: Set(define), readsSubfolders: !onlyItsOwnFiles,
        now: machine.now().secondsSinceReferenceDate, identifier: machine.makeUUID().bytes))
    for place in models.findings.indices {
      models.findings[place].hint = OptionHints.worded(models.findings[place].hint)
    }
    return models
  }
}

extension SourcePlatform: ExpressibleByArgument {}

/// A loaded model, with the open questions of Swift sources.
struct LoadedModel {
  var bundle: ModelBundle

  var sources: SourceModels?

  var findings: [SourceFinding] = []

  var isHistory = false

  static func load(_ path: FilePath, json: Bool) throws -> ModelBundle {
    let loaded = try load(path, nil)
    try loaded.tell(json: json)
    return loaded.bundle
  }

  /// Loads a bundle, a compiled model, sources, a model carrier, or a folder of these.
  ///
  /// - Parameter includingIncomplete: whether to include incomplete versions of Swift sources.
  static func load(
    _ path: FilePath, _ options: SourceOptions?,
    includingIncomplete: Bool = false
  ) throws -> LoadedModel {
    if let carrier = try CarrierName.path(path).carrier() { return LoadedModel(bundle: try carrier.load()) }
    let options = try options ?? SourceOptions.parse([])
    if let history = try ModelHistory(path) {
      let found = try history.load(options)
      return LoadedModel(bundle: found.bundle, findings: found.findings, isHistory: true)
    }
    guard try SwiftSources.isSource(path) else { return LoadedModel(bundle: try ModelBundle.load(path: path)) }
    let models = try options.load(path)
    return LoadedModel(bundle: try models.bundle(includingIncomplete: includingIncomplete), sources: models)
  }

  /// Reports on standard error uncertainties and the folder's interpretation.
  func tell(json: Bool) throws {
    try sources?.tell(json: json)
    for finding in findings { try finding.tell(json: json) }
    // Sources report theirs with file and line.
    for unreadable in sources == nil && !json ? bundle.unreadableVersions : [] {
      Terminal.standardError.write(
        "warning: a version of the model cannot be read: \(printable(unreadable.error.detail)) [\(unreadable.error.code)]. "
          + "\(unreadable.error.hint)\n")
    }
    guard isHistory, !json else { return }
    let names = bundle.versions.map { version -> String in
      "\(printable(version.name))\(version.name == bundle.current.name ? " (current)" : "")"
    }
    Terminal.standardError.note(
      "lazaret: the folder is a history of \(counted(Int64(names.count), "version")): \(names.joined(separator: ", "))\n"
    )
  }

  func completeBundle() throws -> ModelBundle {
    guard let sources else { return bundle }
    var part = sources
    part.versions.removeAll { !$0.isComplete }
    guard let last = part.versions.last else { return try sources.bundle() }
    if !part.versions.contains(where: { $0.name == part.currentName }) { part.currentName = last.name }
    return try part.bundle()
  }

  var isComplete: Bool { sources?.versions.allSatisfy(\.isComplete) ?? true }
}

extension SourceModels {
  func tell(json: Bool) throws {
    guard !json else {
      for finding in findings { try finding.tell(json: true) }
      return
    }
    // Report a class of several versions once, with the versions.
    var order: [SourceFinding] = []
    var versions: [SourceFinding: [String]] = [:]
    for finding in findings {
      var common = finding
      common.versionName = nil
      if versions[common] == nil { order.append(common) }
      versions[common, default: []].append(contentsOf: [finding.versionName].compactMap(\.self))
    }
    for var finding in order {
      let names = versions[finding] ?? []
      if names.count > 1 { finding.detail += " (versions \(names.joined(separator: ", ")))" }
      try finding.tell(json: false)
    }
  }
}

extension SourceFinding {
  fileprivate func tell(json: Bool) throws {
    Terminal.standardError.write(try json ? JSON.shown(["source": self], .line) : line)
  }

  /// The finding in compiler format: place, severity, problem, remedy.
  var line: String {
    let start = place.map { "\(printable($0.file)):\($0.line):\($0.column): " } ?? ""
    return "\(start)\(severity.rawValue): \(printable(detail)) [\(kind.rawValue)]. \(hint)\n"
  }
}

/// The file to read a model from, given as a path or by name of a quarantined store or backup.
struct CarrierName {
  private let path: FilePath

  /// The files of a backup.
  private let opened: OpenedFiles?

  /// Looks at the file; nil if missing or without a model.
  func carrier() throws(FileError) -> ModelCarrier? {
    if let opened { return ModelCarrier(opened, at: path) }
    return try ModelCarrier(path)
  }

  /// Resolves a path, or else a name in the environment's home or the current folder.
  ///
  /// - Throws: errors of restoring a backup; an unknown name is a path.
  static func path(_ path: FilePath) throws -> CarrierName {
    guard path.components.count == 1, !path.isAbsolute, try FileSystem().status(of: path) == nil,
      let id = BackupIdentifier(path.string)
    else { return CarrierName(path: path, opened: nil) }
    let home = HomeOptions.environment ?? "."
    // With an unreadable catalogue the path is reported as missing.
    if !id.isMarked, let store = try? Quarantines(home: home).stores().first(where: { $0.id == id.description }) {
      return CarrierName(path: store.files.main, opened: nil)
    }
    guard (try? Backups(home: home).find(id)) != nil else { return CarrierName(path: path, opened: nil) }
    let donor = try UnpackedBackup(
      .backup(id), of: path, home: home, trust: .anyStore, scope: EvidenceScope(lineage: nil, event: nil)
    ).donor
    return CarrierName(path: donor.path, opened: donor.files)
  }
}
