package import Lazaret
package import Platform
package import SystemPackage

/// A bundle ready for writing, with its temporary files.
package final class PreparedExport: Sendable {
  package let preview: ExportPreview

  let quarantineID: String?

  let quarantineFolder: FilePath?

  private let items: [BundleItem]
  private let subject: BundleWriter.Subject
  private let folder: ExportFolder
  private let surroundings: Surroundings

  init(
    _ preview: ExportPreview, items: [BundleItem], subject: BundleWriter.Subject, source: ExportSource,
    in folder: ExportFolder, _ surroundings: Surroundings
  ) {
    self.preview = preview
    self.items = items
    self.subject = subject
    quarantineID = source.quarantineID
    if case .quarantined(let stored, _) = source {
      quarantineFolder = stored.files.folder
    } else {
      quarantineFolder = nil
    }
    self.folder = folder
    self.surroundings = surroundings
  }

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
      bundle: bundle, quarantineID: quarantineID, scrub: preview.scrub, checkSeconds: preview.checkSeconds,
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
