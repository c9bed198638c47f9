import ArgumentParser
import Foundation
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SupportBundle
import SwiftModelSources
import SystemPackage

/// `lazaret model lint`: finds changes that would harm existing stores.
struct ModelLintCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "lint", abstract: "Checks a model's versions for changes that lose data or break rules.",
    usage: "lazaret model lint <model> [--lock <file>] [--store <store>] [--cloudkit] [<options>]",
    discussion: """
      Names what each step from version to version would lose, what depends on the data, what cannot be migrated, \
      renames without a renaming identifier, and renames that no migration would carry out. With a lock file, released \
      versions that were edited afterwards are named, and steps between released versions are left out. A lock file that \
      is not there yet is written. With stores of released versions, those of no version are named, and records are \
      counted.

      Of Swift sources, each finding has its file and line: historical schemas with classes or values that change with the \
      app, copies under another name, versions that the plan lacks, and what differs by platform are found too.
      """, examples: "lazaret model lint App.xcdatamodeld --lock released.json",
    exitCodes: ExitStatus.codes(
      done: "nothing found", doubtful: "something was found; the output says what",
      unavailable: "the model is out of reach"))

  @OptionGroup var options: ModelOptions

  @Flag(help: "Write the lock file anew, with the versions as they are, after the check.")
  var writeLock = false

  @Flag(
    name: .customLong("cloudkit"), help: "Check the rules of CloudKit too: what it takes, and additive changes only.")
  var cloudKit = false

  @Flag(help: "Check steps between released versions too.") var all = false

  @Option(help: "A store that a released version wrote, or a folder with some; may be given several times.")
  var store: [PathArgument] = []

  @OptionGroup var annotations: AnnotationOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if annotations.annotate != nil, output.json { throw ValidationError("Give --annotate or --json, not both.") }
    if writeLock, options.versionOrder.lock == nil { throw ValidationError("Give --lock with --write-lock.") }
  }

  func perform() throws {
    let lock = options.versionOrder.lock
    let loaded = try options.versionOrder.loadUnlocked(options.model.path, includingIncomplete: true)
    // An unresolved version would seem to lose properties.
    let bundle = try loaded.isComplete ? loaded.bundle : loaded.completeBundle()
    let known = try lock.flatMap { try ModelLock.read($0.path) }
    let stores = try LintedStores(store.map(\.path))
    let rules = ModelLint.Options(checksCloudKit: cloudKit, checksReleasedSteps: all)
    var lint = try stores.counting(ModelLint(bundle, lock: known, options: rules), in: bundle)
    if let sources = loaded.sources {
      let released = stores.released + Self.released(known)
      let found = SchemaLint(sources, released: released, others: try others(sources)).findings
      let more = sources.findings.filter { $0.kind != .platformDependent } + found
      lint = lint.adding(more.map { LintFinding($0, current: bundle.current.name) })
      if sources.versions.allSatisfy({ $0.schemaName == nil }) {
        lint = lint.adding(try stores.steps(to: bundle.current, rules))
      }
      lint = try lint.comparing(bundle, with: known, in: sources).placed(in: sources)
    } else {
      lint = lint.adding(try stores.unknown(to: bundle))
    }
    lint = lint.changing { $0.hint = OptionHints.worded($0.hint) }
    // For models of Xcode, only JSON has files and lines; people see version, entity and property.
    let located = lint.located(ModelPlaces(bundle, sources: loaded.sources).place)
    var text = try output.json ? JSON.shown(located) : OptionHints.worded(LintListing(lint).text)
    // Do not lock unknown hashes.
    if let lock, writeLock || known == nil, loaded.isComplete {
      try ModelLock(bundle, after: known) { loaded.sources == nil ? nil : Self.declaration(of: $0) }
        .write(to: lock.path)
      if !output.json {
        let drafts = ModelLock.drafts(in: bundle).map { printable($0.name) }
        if !drafts.isEmpty {
          text +=
            "left out of the order, since their names come after the current version's: "
            + "\(drafts.joined(separator: ", ")); --versions says where they belong\n"
        }
        text += "wrote the hashes of \(counted(Int64(bundle.versions.count), "version")) to \(quoted(lock.path))\n"
      }
    }
    Terminal.standardOutput.write(text)
    if let style = annotations.annotate {
      Terminal.standardOutput.writeContent(located.findings.map { Annotation($0).text(style) + "\n" }.joined())
    }
    guard lint.findings.isEmpty else { throw ExitStatus.doubtful }
  }

  private static func released(_ lock: ModelLock?) -> [ReleasedVersion] {
    (lock?.versions ?? [:]).sorted { precedesByCodeUnit($0.key, $1.key) }.map { name, version in
      ReleasedVersion(name: name, origin: .lock, hashes: version.entities.compactMapValues { VersionHash(hex: $0) })
    }
  }

  private func others(_ sources: SourceModels) throws -> [(platform: SourcePlatform, models: SourceModels)] {
    let own = options.versionOrder.sources.platform ?? .iOS
    return try SourcePlatform.allCases.filter { $0 != own }.map { platform in
      (platform: platform, models: try options.versionOrder.sources.load(options.model.path, platform: platform))
    }
  }

  private static func declaration(of version: ModelVersion) -> String? {
    // A version that cannot be declared is locked by its hashes alone.
    try? FrozenSchema(version.model, name: ModelFreezeCommand.lockedSchema).text
  }
}

extension ModelLint {
  /// Adds the edits to findings about edited versions, from the lock file's declarations.
  fileprivate func comparing(_ bundle: ModelBundle, with lock: ModelLock?, in sources: SourceModels) throws -> ModelLint
  {
    var differences: [String: ModelDifference] = [:]
    for finding in findings where finding.rule == .editedAfterRelease && differences[finding.place] == nil {
      guard let text = lock?.versions[finding.place]?.declaration, let version = bundle.version(named: finding.place)
      else { continue }
      let locked = try FrozenSchema.version(in: Array(text.utf8), schema: ModelFreezeCommand.lockedSchema)
      differences[finding.place] = ModelDifference(from: locked.model, to: version.model)
    }
    return changing { finding in
      guard finding.rule == .editedAfterRelease, let difference = differences[finding.place] else { return }
      let added = difference.addedProperties.filter { $0.entity == finding.entityName }
      let changed = difference.changedProperties.filter { $0.entity == finding.entityName }
      let removed = difference.removedProperties.filter { $0.entity == finding.entityName }
      var words = added.map { "\(printable($0.property)) (added)" }
      words += changed.map { "\(printable($0.property)) (\($0.changes.joined(separator: ", ")))" }
      words += removed.map { "\(printable($0.property)) (removed)" }
      guard let first = added.first ?? changed.first ?? removed.first else { return }
      finding.detail += ": \(words.prefix(8).joined(separator: ", "))"
      let place = sources.place(version: finding.place, entity: finding.entityName, property: first.property)
      finding.file = place?.file
      finding.line = place?.line
    }
  }

  fileprivate func placed(in sources: SourceModels) -> ModelLint {
    changing { finding in
      finding.tellInSwift()
      guard finding.file == nil else { return }
      // A step refers to its newer version, and a lost item there to its class.
      let name = finding.place.components(separatedBy: " → ").last ?? finding.place
      let constraint = finding.entityName.flatMap { entity -> SourcePlace? in
        guard finding.propertyName == nil, finding.detail.contains("unique") else { return nil }
        return sources.constraintPlace(version: name, entity: entity, named: finding.detail)
      }
      let place =
        constraint ?? sources.place(version: name, entity: finding.entityName, property: finding.propertyName)
        ?? sources.place(version: sources.currentName, entity: finding.entityName, property: finding.propertyName)
      finding.file = place?.file
      finding.line = place?.line
    }
  }
}

extension LintFinding {
  fileprivate mutating func tellInSwift() {
    switch rule {
    case .possibleRename:
      hint =
        propertyName == nil
        ? "If it is the same, keep the class's name, which is the entity's; or move the records in a custom stage."
        : "If it is the same, declare it with @Attribute(originalName:) or @Relationship(originalName:) and its old name."
    case .renameWithoutMigration:
      hint = """
        Give a property of the class a hashModifier in the newer schema, so that the schemas differ and a migration runs; or \
        leave the names as they were.
        """
    case .brokenRename, .disagreeingIdentifiers:
      hint = "Correct the originalName, so that it is the name in the version before."
    case .dependsOnData where hint.hasPrefix("Give the attribute a default"):
      hint = "Give it an initial value in its declaration, or make it optional."
    case .dependsOnData where hint.hasPrefix("Remove duplicates"):
      hint = "Remove duplicates in a custom stage's willMigrate, or in an app version before."
    case .cloudKitMandatoryAttribute: hint = "Make it optional, or give it an initial value in its declaration."
    case .editedAfterRelease:
      hint = "Undo the edit; freeze the version with: lazaret model freeze <lock> --version-name <name>."
    case .inconsistentModel: hint = "Correct the declaration."
    case .dataLoss, .dependsOnData, .droppedIdentifier, .notMigratable, .cloudEncryptionChanged, .missingRelease,
      .mismatchedHashes,
      .unreadableVersion, .unresolvedSource, .uncertainSource, .liveClass, .aliasName, .duplicateChecksum,
      .unplannedRelease, .unknownRelease, .foreignVersionClass, .unfrozenType, .unlistedClass, .platformDependent,
      .cloudKitUniqueness, .cloudKitMandatoryRelationship, .cloudKitMissingInverse, .cloudKitOrdered, .cloudKitDenyRule,
      .cloudKitType, .cloudKitNotAdditive:
      break
    }
  }

  /// Converts an open question of Swift sources to a lint finding.
  fileprivate init(_ finding: SourceFinding, current: String) {
    self.init(
      Rule(rawValue: finding.kind.rawValue) ?? (finding.severity == .error ? .unresolvedSource : .uncertainSource),
      in: finding.versionName ?? current,
      entity: finding.entityName, property: finding.propertyName, detail: finding.detail, hint: finding.hint)
    file = finding.place?.file
    line = finding.place?.line
  }
}

struct LintedStores {
  private struct Store {
    var path: FilePath
    var examination: Examination
    var hashes: [String: VersionHash]

    var name: String { path.lastComponent?.string ?? path.string }
  }

  private static let maximumStores = 1000

  private let stores: [Store]

  /// - Throws: if a named store is unavailable or not of Core Data.
  init(_ paths: [FilePath]) throws {
    var stores: [Store] = []
    for path in paths {
      let isFolder = try FileSystem().status(of: path)?.kind == .directory
      let files = isFolder ? try Self.stores(in: path) : [path]
      for file in files {
        let examination = try Examiner().examine(file, options: .init(countsRecords: false))
        try examination.requireReachable(at: file)
        guard let hashes = examination.metadata?.versionHashes, !hashes.isEmpty else {
          guard !isFolder else { continue }
          throw ModelError(
            .noVersions, operation: "read the store's version", path: file,
            detail: examination.kind == .sqlite ? "it is a plain store" : "its metadata does not say which one it is",
            hint: "Name stores of the app with --store.")
        }
        stores.append(Store(path: file, examination: examination, hashes: hashes))
      }
    }
    self.stores = stores
  }

  private static func stores(in folder: FilePath) throws -> [FilePath] {
    let names = try FileSystem().entries(of: folder).filter { !$0.string.hasPrefix(".") }
      .sorted { precedesByCodeUnit($0.string, $1.string) }
    let files = try names.prefix(maximumStores).map { folder.appending($0) }
      .filter { try ModelCarrier($0)?.kind == .store }
    guard files.isEmpty else { return files }
    throw ModelError(
      .noVersions, operation: "read the stores' versions", path: folder, detail: "no store lies in the folder",
      hint: "Name stores of the app with --store.")
  }

  var released: [ReleasedVersion] {
    stores.map { ReleasedVersion(name: $0.name, origin: .store, hashes: $0.hashes, model: $0.examination.storeModel) }
  }

  /// Returns findings about stores of unknown versions, for models other than Swift.
  func unknown(to bundle: ModelBundle) throws -> [LintFinding] {
    try stores.compactMap { store in
      guard bundle.version(matching: store.hashes) == nil else { return nil }
      let examination = try Examiner().examine(
        store.path, model: .coreData(bundle), options: .init(countsRecords: false))
      let nearest = NearestVersion(to: examination, in: .coreData(bundle))
      var detail = "\(printable(store.name)) is of none of the versions"
      if let nearest {
        let names = nearest.entities.prefix(8).map { printable($0.name) }.joined(separator: ", ")
        detail += "; the nearest is \(printable(nearest.name)), which differs in \(names)"
      }
      return LintFinding(
        .unknownRelease, in: nearest?.name ?? bundle.current.name, entity: nearest?.entities.first?.name,
        detail: detail,
        hint: "Add the version that it was written with: lazaret model export <store> --output <name>.xcdatamodel.")
    }
  }

  /// Plans the migration of stores of unknown versions to the current one, from the models they carry.
  ///
  /// SwiftData migrates this way without schemas of earlier versions.
  func steps(to current: ModelVersion, _ options: ModelLint.Options) throws -> [LintFinding] {
    var findings: [LintFinding] = []
    for store in stores where store.hashes != current.versionHashes {
      guard let model = store.examination.storeModel else { continue }
      let versions = [
        ModelVersion(name: store.name, model: model, isCurrent: false),
        ModelVersion(name: current.name, model: current.model, isCurrent: true),
      ]
      guard let bundle = ModelBundle(name: store.name, path: store.path, versions: versions) else { continue }
      let lint = try counting(ModelLint(bundle, options: options), in: bundle)
      findings += lint.findings.filter { $0.place.contains(" → ") && !findings.contains($0) }
    }
    return findings
  }

  /// Adds record counts to the findings, and the findings that need stores.
  func counting(_ lint: ModelLint, in bundle: ModelBundle) throws -> ModelLint {
    var lint = lint
    for store in stores {
      guard let version = bundle.version(matching: store.hashes), version.name != bundle.current.name,
        !bundle.isNewer(version, than: bundle.current)
      else { continue }
      // Only counts: the step's findings have the rest.
      let plan = try Migrator(bundle).plan(store.path, tryingSteps: false)
      for found in plan.failures + plan.losses {
        guard let rows = found.rows, rows > 0 else { continue }
        var isTold = false
        lint = lint.changing { finding in
          guard Self.isSame(finding, found) else { return }
          isTold = true
          finding.detail += "; \(counted(Int64(rows), "record")) in \(printable(store.name))"
        }
        guard !isTold, plan.failures.contains(found) else { continue }
        lint = lint.adding([
          LintFinding(
            .dependsOnData, in: "\(plan.from ?? version.name) → \(plan.to)", entity: found.entity,
            property: found.property,
            detail: "\(found.text); \(counted(Int64(rows), "record")) in \(printable(store.name))",
            hint: "Correct the records in a custom step before, or change the new version.")
        ])
      }
    }
    return lint
  }

  private static func isSame(_ finding: LintFinding, _ found: MigrationPlan.Finding) -> Bool {
    guard [.dependsOnData, .dataLoss].contains(finding.rule), finding.entityName == found.entity else { return false }
    if finding.propertyName == found.property { return true }
    // A constraint names its properties only in the text.
    guard finding.propertyName == nil, finding.rule == .dependsOnData, let property = found.property else {
      return false
    }
    return finding.detail.contains(property)
  }
}
