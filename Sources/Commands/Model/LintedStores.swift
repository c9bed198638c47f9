import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SupportBundle
import SwiftModelSources
import SystemPackage

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
    stores.map {
      ReleasedVersion(name: $0.name, origin: .store, hashes: $0.hashes, model: $0.examination.storeModel)
    }
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
