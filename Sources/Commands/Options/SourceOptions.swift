public import ArgumentParser
import Backup
import Lazaret
import ManagedObjectModel
import Platform
import Salvage
import SupportBundle
public import SwiftModelSources
import SystemPackage

/// What Swift sources, given as the model, do not say themselves.
struct SourceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where the model is Swift sources: the classes that make it up, or a VersionedSchema, separated by commas. If not given, what the app gives to its containers is taken, and its VersionedSchemas are the versions.",
      valueName: "names"))
  var types: String?

  @Option(
    help: ArgumentHelp("Where the model is Swift sources: the platform of #if os(…).", valueName: "platform"))
  var platform: SourcePlatform?

  @Option(
    help: ArgumentHelp(
      "Where the model is Swift sources: a flag that #if finds set; may be given several times.", valueName: "flag"))
  var define: [String] = []

  /// Reads sources.
  ///
  /// - Parameters:
  ///   - other: the platform, where it is not the one that was given.
  ///   - onlyItsOwnFiles: whether the folders of a folder are passed over.
  func load(
    _ path: FilePath, platform other: SourcePlatform? = nil, onlyItsOwnFiles: Bool = false
  ) throws(ModelError) -> SourceModels {
    let names = types?.split(separator: ",").map { String($0.trimmingSpaces) } ?? []
    return try Self.load(
      path, types: names, platform: other ?? platform, flags: Set(define), readsSubfolders: !onlyItsOwnFiles)
  }

  /// Reads sources, for verbs without options about them.
  static func load(
    _ path: FilePath, types: [String] = [], platform: SourcePlatform? = nil, flags: Set<String> = [],
    readsSubfolders: Bool = true
  ) throws(ModelError) -> SourceModels {
    let machine = Surroundings.machine
    // As SwiftData does: evaluated once, when the model is made.
    return try SwiftSources.load(
      path,
      options: SwiftSources.Options(
        types: types, platform: platform, flags: flags, readsSubfolders: readsSubfolders,
        now: machine.now().secondsSinceReferenceDate, identifier: machine.makeUUID().bytes))
  }
}

extension SourcePlatform: ExpressibleByArgument {}

/// A model as it was loaded, with what its sources leave open where it is Swift.
struct LoadedModel {
  var bundle: ModelBundle

  /// What the sources declare; nil for a model of another kind.
  var sources: SourceModels?

  /// What Swift sources among other files leave open.
  var findings: [SourceFinding] = []

  /// Whether it is a folder of stores, models and sources, a version of each.
  var isHistory = false

  /// A model of any kind, for verbs without options about it.
  static func load(_ path: FilePath, json: Bool) throws -> ModelBundle {
    let loaded = try load(path, nil)
    try loaded.tell(json: json)
    return loaded.bundle
  }

  /// A model of any kind: a bundle, a compiled model, sources, what carries a model, or a folder with some of them.
  ///
  /// - Parameters:
  ///   - options: what Swift sources do not say; the usual if nil.
  ///   - includingIncomplete: whether versions of Swift sources that are not complete are among them.
  static func load(
    _ path: FilePath, _ options: SourceOptions?,
    includingIncomplete: Bool = false
  ) throws -> LoadedModel {
    let place = try CarrierName.path(path)
    defer { withExtendedLifetime(place) {} }
    let carrier = try wrapping(ModelError.init) { () throws(FileError) in try ModelCarrier(place.path) }
    if let carrier { return LoadedModel(bundle: try carrier.load()) }
    if let history = try ModelHistory(path) {
      let found = try history.load(options ?? SourceOptions.parse([]))
      return LoadedModel(bundle: found.bundle, findings: found.findings, isHistory: true)
    }
    guard try SwiftSources.isSource(path) else {
      return LoadedModel(bundle: try ModelBundle.load(path: path))
    }
    let models = try options.map { try $0.load(path) } ?? SourceOptions.load(path)
    return LoadedModel(
      bundle: try models.bundle(includingIncomplete: includingIncomplete),
      sources: models)
  }

  /// Tells on standard error what is not certain of sources, and what a folder was taken for.
  func tell(json: Bool) throws {
    try sources?.tell(json: json)
    for finding in findings { try finding.tell(json: json) }
    // Sources name what they leave open, with file and line.
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

  /// The versions that are known whole, as far as there are any.
  func completeBundle() throws -> ModelBundle {
    guard let sources else { return bundle }
    var part = sources
    part.versions.removeAll { !$0.isComplete }
    guard let last = part.versions.last else { return try sources.bundle() }
    if !part.versions.contains(where: { $0.name == part.currentName }) { part.currentName = last.name }
    return try part.bundle()
  }

  /// Whether every version is known whole.
  var isComplete: Bool { sources?.versions.allSatisfy(\.isComplete) ?? true }
}

extension SourceModels {
  /// Tells on standard error what is not certain, or cannot be resolved.
  func tell(json: Bool) throws {
    guard !json else {
      for finding in findings { try finding.tell(json: true) }
      return
    }
    // A class that several versions list is told of once, with the versions.
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

  /// The finding as compilers print theirs: place, severity, what, and what to do.
  var line: String {
    let start = place.map { "\(printable($0.file)):\($0.line):\($0.column): " } ?? ""
    return "\(start)\(severity.rawValue): \(printable(detail)) [\(kind.rawValue)]. \(hint)\n"
  }
}

/// The file that a model is read from, where it was given as a path or as the name of a quarantined store or of a backup.
struct CarrierName {
  let path: FilePath

  /// What was unpacked for it; it goes with this value.
  private let backup: UnpackedBackup?

  /// The file of a path; of a name, where no file is called so, what the home knows by it.
  ///
  /// The home is the one that the environment names, else the current folder.
  ///
  /// - Throws: what restoring a backup throws; a name that is not known is a path.
  static func path(_ path: FilePath) throws -> CarrierName {
    guard path.components.count == 1, !path.isAbsolute, try FileSystem().status(of: path) == nil,
      let id = BackupIdentifier(path.string)
    else { return CarrierName(path: path, backup: nil) }
    let home = HomeOptions.environment ?? "."
    // A catalogue that cannot be read knows no name; the path is then told to lead nowhere.
    if !id.isMarked, let store = try? Quarantines(home: home).stores().first(where: { $0.id == id.description }) {
      return CarrierName(path: store.files.main, backup: nil)
    }
    guard (try? Backups(home: home).find(id)) != nil else { return CarrierName(path: path, backup: nil) }
    let backup = try UnpackedBackup(
      .backup(id), of: path, home: home, trust: .anyStore, scope: EvidenceScope(lineage: nil, event: nil))
    return CarrierName(path: backup.donor.path, backup: backup)
  }
}
