package import Lazaret
package import PersistentStore
package import Platform
internal import Salvage
package import SystemPackage

/// Support bundles of a home's stores, within their owner's consent.
///
/// ```swift
/// let exports = SupportExports(home: home)
/// let prepared = try exports.make(store, ExportOptions(app: "com.example.Garage", appVersion: "2.3"))
/// // Show OpeningNotice.consent(to: prepared.preview), and go on if the user agrees.
/// let summary = try exports.write(prepared, to: [vendorKey], at: folder)
/// ```
package struct SupportExports: Sendable {
  /// The folder with the catalogue and the scrubbing key.
  let home: FilePath

  private let place: ExportFolder.Place
  private let surroundings: Surroundings

  package init(home: FilePath, place: ExportFolder.Place = .home, surroundings: Surroundings = .machine) {
    self.home = home
    self.place = place
    self.surroundings = surroundings
  }

  /// Makes the content of a bundle of a live or quarantined store.
  ///
  /// - Parameter name: a path, or the name of a quarantined store.
  /// - Throws: `not-in-quarantine` if not found, `is-a-directory`; errors of ``StoreExporter/make(_:progress:)``.
  package func make(
    _ name: FilePath, _ options: ExportOptions = ExportOptions(),
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try StoreExporter(try source(name), home: home, place: place, surroundings: surroundings)
      .make(options, progress: progress)
  }

  /// Writes a bundle, and records it in the receipt of a quarantined store.
  ///
  /// - Parameters:
  ///   - recipients: the keys to encrypt to; not encrypted if empty.
  ///   - isArmored: whether an encrypted bundle is text.
  ///   - path: an existing folder, or the bundle's path.
  /// - Throws: ``SupportBundleError`` or a file error, leaving no file.
  package func write(
    _ prepared: PreparedExport, to recipients: [AgeRecipient] = [], armored isArmored: Bool = false, at path: FilePath,
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    let summary = try prepared.write(to: recipients, armored: isArmored, at: path, progress: progress)
    if let folder = prepared.quarantineFolder { try note(summary, in: folder) }
    return summary
  }

  /// Makes and writes a bundle, for callers with consent.
  package func export(
    _ name: FilePath, _ options: ExportOptions = ExportOptions(), to recipients: [AgeRecipient] = [],
    armored isArmored: Bool = false, at path: FilePath, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    try write(
      try make(name, options, progress: progress), to: recipients, armored: isArmored, at: path, progress: progress)
  }

  private func source(_ name: FilePath) throws -> ExportSource {
    let fileSystem = surroundings.fileSystem
    let isFile = try fileSystem.status(of: name)?.kind == .regular
    let isInQuarantine = isFile ? try QuarantineFolder.isOne(fileSystem.realPath(name).folder) : true
    guard isInQuarantine else { return .store(name) }
    do {
      let (folder, stored) = try Quarantines(home: home, surroundings: surroundings).find(name)
      return .quarantined(stored, report: folder.result(of: stored)?.report)
    } catch let error as LazaretError {
      if error.kind == .notInQuarantine, try fileSystem.status(of: name)?.kind == .directory {
        throw FileError(.isDirectory, operation: "find the store", path: name)
      }
      guard isFile, error.kind == .notInQuarantine else { throw error }
      return .store(name)
    }
  }

  private func note(_ summary: ExportSummary, in path: FilePath) throws {
    guard let id = summary.quarantineID else { return }
    let folder = QuarantineFolder(path, surroundings: surroundings)
    let lock = try folder.salvageLock(patience: 1_000)
    let date = surroundings.now()
    let bundle = summary.bundle
    // The current folder may change.
    let place = try bundle.path.path.map { PathText(try surroundings.fileSystem.realPath($0)) } ?? bundle.path
    try folder.update(id) { receipt in
      receipt.add(
        Receipt.Export(
          at: date, level: bundle.level.rawValue, path: place, bytes: bundle.bytes, sha256: bundle.sha256,
          isEncrypted: !bundle.recipients.isEmpty), at: date)
    }
    lock.release()
  }
}

package enum ExportPhase: String, Sendable, Hashable, CaseIterable {
  /// Copying a live store to a private folder.
  case copying

  case examining

  case analysing

  case scrubbing

  case checking

  case packing

  /// The phase for a progress line.
  package var words: String { rawValue.prefix(1).uppercased() + rawValue.dropFirst() }
}

/// Receives the phase, the amount done and the total; returns false to cancel.
package typealias ExportProgress = @Sendable (_ phase: ExportPhase, _ done: Int64, _ total: Int64) -> Bool

package struct ExportOptions: Sendable {
  var level: BundleLevel

  var app: String?

  var appVersion: String?

  /// The app's model, by default the store's own.
  var model: AppModel?

  /// The attributes with kept values: `Entity.attribute`, or `table.column`.
  var keeping: Set<String>

  /// The attributes with erased values.
  var dropping: Set<String>

  /// Whether the home's scrubbing key makes bundles comparable; otherwise each has a temporary one.
  package var usesSameKey: Bool

  package init(
    level: BundleLevel = .scrubbed, app: String? = nil, appVersion: String? = nil, model: AppModel? = nil,
    keeping: Set<String> = [], dropping: Set<String> = [], usesSameKey: Bool = false
  ) {
    self.level = level
    self.app = app
    self.appVersion = appVersion
    self.model = model
    self.keeping = keeping
    self.dropping = dropping
    self.usesSameKey = usesSameKey
  }
}

/// Makes a support bundle: examines the store read-only, previews the data that would leave the machine, and writes it.
///
/// ```swift
/// let exporter = StoreExporter(.store("Stores/App.sqlite"), home: home)
/// let prepared = try exporter.make(ExportOptions(level: .scrubbed))
/// // Show prepared.preview, and ask.
/// let summary = try prepared.write(to: [recipient], into: folder)
/// ```
package struct StoreExporter: Sendable {
  private let source: ExportSource
  private let home: FilePath
  private let place: ExportFolder.Place
  private let surroundings: Surroundings

  /// The store size from which scrub and analysis run concurrently; smaller stores are fast.
  package var scrubsBesideFrom: Int64 = 64 << 20

  /// - Parameters:
  ///   - home: the folder with the scrubbing key.
  ///   - place: the place of temporary files.
  package init(
    _ source: ExportSource, home: FilePath, place: ExportFolder.Place = .home, surroundings: Surroundings = .machine
  ) {
    self.source = source
    self.home = home
    self.place = place
    self.surroundings = surroundings
  }

  /// Makes the content of a bundle in a private folder.
  ///
  /// - Throws: ``SupportBundleError``: `bundle-not-scrubbed` if a value would have left the machine, `bundle-store`
  ///   without data for the level, `bundle-request`, `cancelled`; or an environmental error.
  package func make(
    _ options: ExportOptions, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try ExportWork(
      source: source, options: options, home: home, place: place, surroundings: surroundings, progress: progress
    ).make(scrubbingBesideFrom: scrubsBesideFrom)
  }

  package func preview(
    _ options: ExportOptions, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportPreview {
    try make(options, progress: progress).preview
  }

  /// Makes and writes the bundle, for callers with consent.
  ///
  /// - Parameters:
  ///   - recipients: the keys to encrypt to; not encrypted if empty.
  ///   - path: an existing folder, or the bundle's path.
  package func export(
    _ options: ExportOptions, to recipients: [AgeRecipient] = [], armored isArmored: Bool = false,
    at path: FilePath, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    try make(options, progress: progress).write(
      to: recipients, armored: isArmored, at: path, progress: progress)
  }

  static func cancelled() -> SupportBundleError { .cancelled(SupportBundleErrors.operation) }
}

package enum ExportSource: Sendable {
  /// A live store, which is copied first.
  case store(FilePath)

  /// A quarantined store and its salvage report, if any.
  case quarantined(QuarantinedStore, report: FilePath?)

  /// The original file name without extension.
  var name: String { originalPath.stem ?? "Store" }

  var quarantineID: String? {
    if case .quarantined(let stored, _) = self { return stored.id }
    return nil
  }

  /// The app's path of the store.
  var originalPath: FilePath {
    switch self {
    case .store(let path): path
    case .quarantined(let stored, _): stored.receipt?.originalPath.path ?? stored.files.main
    }
  }

  /// Returns the scope of recovery kits.
  func evidence(_ surroundings: Surroundings) throws(SalvageError) -> EvidenceScope {
    switch self {
    case .quarantined(let stored, _): return stored.evidence
    case .store(let path):
      do throws(FileError) {
        let files = try StoreFileSet.locate(path, in: surroundings.fileSystem)
        let folder = QuarantineFolder(beside: files, surroundings: surroundings)
        return EvidenceScope(lineage: try folder.lineage(of: files.main), event: nil)
      } catch {
        throw SalvageError(error)
      }
    }
  }

  var receipt: Receipt? {
    if case .quarantined(let stored, _) = self { return stored.receipt }
    return nil
  }
}
