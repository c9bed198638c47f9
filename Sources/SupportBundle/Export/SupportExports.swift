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
  private let home: FilePath

  private let place: ExportFolder.Place
  private let surroundings: Surroundings

  /// The store size from which scrub and analysis run concurrently; smaller stores are fast.
  package var scrubsBesideFrom: Int64 = 64 << 20

  /// - Parameters:
  ///   - home: the folder with the catalogue and the scrubbing key.
  ///   - place: the place of temporary files.
  package init(home: FilePath, place: ExportFolder.Place = .home, surroundings: Surroundings = .machine) {
    self.home = home
    self.place = place
    self.surroundings = surroundings
  }

  /// Makes the content of a bundle of a live or quarantined store in a private folder.
  ///
  /// - Parameter name: a path, or the name of a quarantined store.
  /// - Throws: `not-in-quarantine` if not found, `is-a-directory`; ``SupportBundleError``: `bundle-not-scrubbed` if a
  ///   value would have left the machine, `bundle-store` without data for the level, `bundle-request`, `cancelled`; or
  ///   an environmental error.
  package func make(
    _ name: FilePath, _ options: ExportOptions = ExportOptions(),
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try ExportWork(
      source: try source(name), options: options, home: home, place: place, surroundings: surroundings,
      progress: progress
    ).make(scrubbingBesideFrom: scrubsBesideFrom)
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
    if let folder = prepared.source.quarantineFolder { try note(summary, in: folder) }
    return summary
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
    let export = Receipt.Export(
      at: date, level: bundle.level.rawValue, path: place, bytes: bundle.bytes, sha256: bundle.sha256,
      isEncrypted: !bundle.recipients.isEmpty)
    try folder.update(id) { $0.add(export, at: date) }
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

enum ExportSource: Sendable {
  /// A live store, which is copied first.
  case store(FilePath)

  /// A quarantined store and its salvage report, if any.
  case quarantined(QuarantinedStore, report: FilePath?)

  /// The original file name without extension.
  var name: String { originalPath.stem ?? "Store" }

  private var stored: QuarantinedStore? { if case .quarantined(let stored, _) = self { stored } else { nil } }

  var quarantineID: String? { stored?.id }

  var quarantineFolder: FilePath? { stored?.files.folder }

  var receipt: Receipt? { stored?.receipt }

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
      } catch { throw SalvageError(error) }
    }
  }
}

/// A bundle ready for writing, with its temporary files.
package struct PreparedExport: Sendable {
  package let preview: ExportPreview

  let items: [BundleItem]
  let subject: BundleWriter.Subject
  let source: ExportSource

  /// Holds the temporary files.
  let folder: ExportFolder
  let surroundings: Surroundings

  /// Writes the bundle, readable only by its owner and named once entirely on disk.
  ///
  /// - Parameters:
  ///   - recipients: the keys to encrypt to; not encrypted if empty.
  ///   - isArmored: whether an encrypted bundle is text.
  ///   - path: an existing folder, or the bundle's path.
  /// - Throws: ``SupportBundleError``, leaving no file.
  package func write(
    to recipients: [AgeRecipient] = [], armored isArmored: Bool = false, at path: FilePath,
    progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    // The items are files in it.
    defer { withExtendedLifetime(folder) {} }
    let fileSystem = surroundings.fileSystem
    let isFolder = try fileSystem.status(of: path)?.kind == .directory
    let place = isFolder ? path : path.folder
    guard isFolder || path.lastComponent != nil, try fileSystem.status(of: place)?.kind == .directory else {
      throw FileError(.notFound, operation: "write the bundle", path: place)
    }
    let packed = preview.asked?.packedBytes ?? 0
    try ExportFolder.requireRoom(isArmored ? packed / 3 * 4 : packed, at: place, fileSystem)
    try folder.noteBundle(
      in: place, prefix: isFolder ? BundleWriter.prefix(of: subject) : path.lastComponent?.string ?? "")
    let writer = BundleWriter(to: recipients, armored: isArmored, surroundings: surroundings)
    let tell: BundleWriter.Progress = { progress(.packing, $0, $1) }
    let bundle =
      isFolder
      ? try writer.write(items, level: preview.level, subject: subject, into: path, progress: tell)
      : try writer.write(items, level: preview.level, subject: subject, to: path, progress: tell)
    return ExportSummary(
      bundle: bundle, quarantineID: source.quarantineID, scrub: preview.scrub, checkSeconds: preview.checkSeconds,
      remarks: preview.remarks)
  }
}

/// The future content of a bundle, for the user's consent.
package struct ExportPreview: Sendable, Hashable, Codable {
  package struct Level: Sendable, Hashable, Codable {
    package var level: BundleLevel

    var words: String

    package var files: Int

    package var bytes: Int64

    /// Whether ``bytes`` is exact, not estimated.
    package var isExact: Bool

    /// The estimated size of the bundle.
    package var packedBytes: Int64

    private enum CodingKeys: String, CodingKey {
      case level, words, files, bytes
      case isExact = "exact"
      case packedBytes
    }
  }

  package struct File: Sendable, Hashable, Codable {
    /// The path below `data/`.
    package var name: String

    package var bytes: Int64

    package var words: String
  }

  package var level: BundleLevel

  package var store: String

  /// Every level, smallest first.
  package var levels: [Level]

  package var files: [File]

  /// The scrub report of a scrubbed bundle.
  package var scrub: ScrubReport?

  /// The duration of the scrub check.
  package var checkSeconds: Double?

  package var remarks: [String]

  package var asked: Level? { levels.first { $0.level == level } }
}

package struct ExportSummary: Sendable, Hashable, Codable {
  package var bundle: BundleSummary

  package var quarantineID: String?

  /// The scrub report of a scrubbed bundle.
  var scrub: ScrubReport?

  /// The duration of the scrub check.
  package var checkSeconds: Double?

  package var remarks: [String]

  package var path: PathText { bundle.path }
}

extension OpeningNotice {
  /// Asks for consent to send a report, listing the data.
  ///
  /// The translation keys are `lazaret.notice.send-report.facts`, `.damaged-pages`, `.scrubbed` and `.full`.
  package static func consent(to preview: ExportPreview) -> OpeningNotice {
    let content =
      switch preview.level {
      case .facts: "It says what is damaged and on what system, and holds none of your data."
      case .damagedPages:
        "It holds the damaged parts of the file with your data as they are, which can be some of your data."
      case .scrubbed:
        "It holds the file with your data with every text, number, date and picture replaced by a meaningless one."
      case .full: "It holds all of your data."
      }
    let size = preview.asked.map { " About \(words(ofSize: $0.packedBytes)) will be sent." } ?? ""
    return OpeningNotice(
      key: "lazaret.notice.send-report.\(preview.level.rawValue)", title: "Send a report to support?",
      message: "The report helps to find out what happened. \(content)\(size)",
      actions: [
        Action(key: "lazaret.action.send", title: "Send"),
        Action(key: "lazaret.action.show-content", title: "Show What Is Sent"),
        Action(key: "lazaret.action.not-now", title: "Not Now"),
      ])
  }

  private static func words(ofSize bytes: Int64) -> String {
    if bytes < 1_000_000 { return "\(max(1, bytes / 1000)) kB" }
    if bytes < 1_000_000_000 { return "\(bytes / 1_000_000) MB" }
    return "\(bytes / 100_000_000 / 10).\(bytes / 100_000_000 % 10) GB"
  }
}
