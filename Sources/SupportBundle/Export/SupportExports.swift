package import Lazaret
package import PersistentStore
package import Platform
package import SystemPackage

/// Support bundles of a home's stores, within their owner's consent.
///
/// ```swift
/// let exports = SupportExports(home: home)
/// let prepared = try exports.prepare(opening, ExportOptions(app: "com.example.Garage", appVersion: "2.3"))
/// // Show OpeningNotice.consent(to: prepared.preview), and go on if the user agrees.
/// let summary = try exports.write(prepared, to: [vendorKey], at: folder)
/// ```
package struct SupportExports: Sendable {
  /// The folder with the catalogue and the scrubbing key.
  package let home: FilePath

  private let place: ExportFolder.Place
  private let surroundings: Surroundings

  package init(home: FilePath, place: ExportFolder.Place = .home, surroundings: Surroundings = .machine) {
    self.home = home
    self.place = place
    self.surroundings = surroundings
  }

  private var quarantines: Quarantines { Quarantines(home: home, surroundings: surroundings) }

  /// Prepares a bundle of a live or quarantined store.
  ///
  /// - Parameter name: a path, or the name of a quarantined store.
  /// - Throws: `not-in-quarantine` if not found, `is-a-directory`; errors of ``StoreExporter/prepare(_:progress:)``.
  package func prepare(
    _ name: FilePath, _ options: ExportOptions = ExportOptions(),
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try StoreExporter(try source(name), home: home, place: place, surroundings: surroundings)
      .prepare(options, progress: progress)
  }

  /// Prepares a bundle of the quarantined store of an opening, or of the live store.
  package func prepare(
    _ opening: Opening, _ options: ExportOptions = ExportOptions(),
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try prepare(opening.quarantinedPath ?? opening.store.path, options, progress: progress)
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

  /// Prepares and writes a bundle, for callers with consent.
  package func export(
    _ name: FilePath, _ options: ExportOptions = ExportOptions(), to recipients: [AgeRecipient] = [],
    armored isArmored: Bool = false, at path: FilePath, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    try write(
      try prepare(name, options, progress: progress), to: recipients, armored: isArmored, at: path, progress: progress)
  }

  private func source(_ name: FilePath) throws -> ExportSource {
    let fileSystem = surroundings.fileSystem
    let isFile = try fileSystem.status(of: name)?.kind == .regular
    let isInQuarantine = isFile ? try QuarantineFolder.isOne(fileSystem.realPath(name).folder) : true
    guard isInQuarantine else { return .store(name) }
    do {
      let (folder, stored) = try quarantines.find(name)
      return .quarantined(stored, report: folder.result(of: stored)?.report)
    } catch let error as QuarantineError {
      if error.kind == .notFound, try fileSystem.status(of: name)?.kind == .directory {
        throw FileError(.isDirectory, operation: "find the store", path: name)
      }
      guard isFile, error.kind == .notFound else { throw error }
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

package struct ExportSummary: Sendable, Hashable, Codable {
  package var bundle: BundleSummary

  package var quarantineID: String?

  /// The scrub report of a scrubbed bundle.
  package var scrub: ScrubReport?

  /// The duration of the scrub check.
  package var checkSeconds: Double?

  package var remarks: [String]

  package var path: PathText { bundle.path }
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
  package var words: String {
    switch self {
    case .copying: "Copying"
    case .examining: "Examining"
    case .analysing: "Analysing"
    case .scrubbing: "Scrubbing"
    case .checking: "Checking"
    case .packing: "Packing"
    }
  }
}

/// Receives the phase, the amount done and the total; returns false to cancel.
package typealias ExportProgress = @Sendable (_ phase: ExportPhase, _ done: Int64, _ total: Int64) -> Bool

package struct ExportOptions: Sendable {
  package var level: BundleLevel

  package var app: String?

  package var appVersion: String?

  /// The app's model, by default the store's own.
  package var model: AppModel?

  /// The attributes with kept values: `Entity.attribute`, or `table.column`.
  package var keeping: Set<String>

  /// The attributes with erased values.
  package var dropping: Set<String>

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
