package import Lazaret
package import PersistentStore
package import Platform
package import SystemPackage

/// Support bundles of the stores of a home: what support needs to find out what happened, and no more than the owner of
/// the store agrees to.
///
/// ```swift
/// let exports = SupportExports(home: home)
/// let prepared = try exports.prepare(opening, ExportOptions(app: "com.example.Garage", appVersion: "2.3"))
/// // Show OpeningNotice.consent(to: prepared.preview), and go on if the user agrees.
/// let summary = try exports.write(prepared, to: [vendorKey], at: folder)
/// ```
package struct SupportExports: Sendable {
  /// The folder with the catalogue of quarantined stores and the scrubbing key.
  package let home: FilePath

  private let place: ExportFolder.Place
  private let surroundings: Surroundings

  /// Exports of a home; everything is made ready in it unless another place is given.
  package init(home: FilePath, place: ExportFolder.Place = .home, surroundings: Surroundings = .machine) {
    self.home = home
    self.place = place
    self.surroundings = surroundings
  }

  private var quarantines: Quarantines { Quarantines(home: home, surroundings: surroundings) }

  /// Makes a bundle ready, of a store in its place or of a quarantined one; nothing leaves the machine yet.
  ///
  /// - Parameter name: the path of a store, or the name or path of a quarantined one.
  /// - Throws: `not-in-quarantine` where there is neither, `is-a-directory` for a folder; what ``StoreExporter/prepare(_:progress:)`` throws.
  package func prepare(
    _ name: FilePath, _ options: ExportOptions = ExportOptions(),
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try StoreExporter(try source(name), home: home, place: place, surroundings: surroundings)
      .prepare(options, progress: progress)
  }

  /// Makes a bundle ready of what an opening has quarantined, or of the store itself where it has quarantined nothing.
  package func prepare(
    _ opening: Opening, _ options: ExportOptions = ExportOptions(),
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try prepare(opening.quarantinedPath ?? opening.store.path, options, progress: progress)
  }

  /// Writes a bundle that is ready; of a quarantined store the receipt tells of it from then on.
  ///
  /// - Parameters:
  ///   - recipients: who alone can open it; not encrypted if empty.
  ///   - isArmored: whether an encrypted bundle is written as text.
  ///   - path: a folder that is there, in which the bundle gets a name of its own; else the bundle's path.
  /// - Throws: ``SupportBundleError``, or what the file system says; nothing is left then.
  package func write(
    _ prepared: PreparedExport, to recipients: [AgeRecipient] = [], armored isArmored: Bool = false, at path: FilePath,
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    let summary = try prepared.write(to: recipients, armored: isArmored, at: path, progress: progress)
    if let folder = prepared.quarantineFolder { try note(summary, in: folder) }
    return summary
  }

  /// Makes a bundle and writes it, for callers that have asked already.
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
    // The folder may be left by then, so that a whole path is what helps.
    let place = try bundle.path.path.map { PathText(try surroundings.fileSystem.realPath($0)) } ?? bundle.path
    try folder.update(id) { receipt in
      receipt.add(
        Receipt.Export(
          at: date, level: bundle.level.rawValue, path: place, bytes: bundle.bytes, sha256: bundle.sha256,
          isEncrypted: !bundle.recipients.isEmpty), at: date)
    }
    _ = consume lock
  }
}

/// A bundle that was made of a store.
package struct ExportSummary: Sendable, Hashable, Codable {
  /// The file: its path, size, SHA-256, level, recipients and what is in it.
  package var bundle: BundleSummary

  /// The identifier of the store in quarantine; nil where it is in its place.
  package var quarantineID: String?

  /// What was replaced, where the level is `scrubbed`.
  package var scrub: ScrubReport?

  /// How long the check of the scrubbed files took, in seconds; nil for other levels.
  package var checkSeconds: Double?

  /// What is remarkable, in words.
  package var remarks: [String]

  /// Where the bundle is.
  package var path: PathText { bundle.path }
}

/// What an export is doing.
package enum ExportPhase: String, Sendable, Hashable, CaseIterable {
  /// Copying a store that may be in use into a private folder.
  case copying

  case examining

  /// Finding out what can be recovered of the store.
  case analysing

  case scrubbing

  /// Looking for values in what is to leave the machine.
  case checking

  case packing

  /// The phase in a word or two, for a progress line.
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

/// Called with what is being done, how much of it and how much in all; false ends the export with `cancelled`.
package typealias ExportProgress = @Sendable (_ phase: ExportPhase, _ done: Int64, _ total: Int64) -> Bool

/// What goes into a bundle.
package struct ExportOptions: Sendable {
  /// How much of the store.
  package var level: BundleLevel

  /// The identifier of the app, such as `com.example.Garage`; nil where it is not known.
  package var app: String?

  /// The app's own version, as its makers write it.
  package var appVersion: String?

  /// The app's model; what the store says of itself if nil.
  package var model: AppModel?

  /// The attributes whose values stay as they are in a scrubbed store: `Entity.attribute`, or `table.column`.
  package var keeping: Set<String>

  /// The attributes whose values are overwritten with filling in a scrubbed store.
  package var dropping: Set<String>

  /// Whether the scrubbing key of the home is used, so that bundles can be compared with each other; else each has one of its
  /// own, which is thrown away.
  package var usesSameKey: Bool

  /// A scrubbed store, unless told otherwise.
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
