package import Lazaret
package import Platform
internal import Salvage
package import SystemPackage

/// Makes a support bundle: examines the store read-only, previews the data that would leave the machine, and writes it.
///
/// ```swift
/// let exporter = StoreExporter(.store("Stores/App.sqlite"), home: home)
/// let prepared = try exporter.prepare(ExportOptions(level: .scrubbed))
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

  /// Prepares a bundle in a private folder.
  ///
  /// - Throws: ``SupportBundleError``: `bundle-not-scrubbed` if a value would have left the machine, `bundle-store`
  ///   without data for the level, `bundle-request`, `cancelled`; or an environmental error.
  package func prepare(
    _ options: ExportOptions, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try ExportWork(source, options, home: home, place: place, surroundings: surroundings, progress: progress)
      .prepare(scrubbingBesideFrom: scrubsBesideFrom)
  }

  package func preview(
    _ options: ExportOptions, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportPreview {
    try prepare(options, progress: progress).preview
  }

  /// Prepares and writes the bundle, for callers with consent.
  ///
  /// - Parameters:
  ///   - recipients: the keys to encrypt to; not encrypted if empty.
  ///   - path: an existing folder, or the bundle's path.
  package func export(
    _ options: ExportOptions, to recipients: [AgeRecipient] = [], armored isArmored: Bool = false,
    at path: FilePath, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportSummary {
    try prepare(options, progress: progress).write(
      to: recipients, armored: isArmored, at: path, progress: progress)
  }

  static func cancelled() -> SupportBundleError {
    SupportBundleError(.cancelled, operation: SupportBundleErrors.operation, detail: "it was cancelled")
  }
}

package enum SupportBundleErrors {
  static let operation = "export the store"

  static func request(_ operation: String, _ path: FilePath?, _ detail: String, _ hint: String) -> SupportBundleError {
    SupportBundleError(.request, operation: operation, path: path, detail: detail, hint: hint)
  }

  /// The store has no data for the level.
  static func store(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.store, operation: operation, path: path, detail: detail)
  }

  /// The output has values, names or checksums.
  ///
  /// - Parameter kept: the columns with kept values.
  static func notScrubbed(
    _ path: FilePath, count: Int, in name: String, at offset: Int64, keeping kept: Set<String>
  ) -> SupportBundleError {
    SupportBundleError(
      .notScrubbed, operation: operation, path: path,
      detail:
        "\(count) values of records, or names or sums of files, were found in what was to be written, the first in "
        + "\(printable(name)) at byte \(offset)" + keptDetail(kept), hint: keptHint(kept))
  }

  /// Returns the likely cause if columns were kept.
  package static func keptDetail(_ kept: Set<String>) -> String {
    kept.isEmpty
      ? "" : "; likely because values of \(words(kept)) are kept: they are values of other columns too"
  }

  package static func keptHint(_ kept: Set<String>) -> String? {
    guard !kept.isEmpty else { return nil }
    return
      "Nothing was written. Keep the other columns with these values too, whatever the case of their letters, or do "
      + "not keep \(words(kept)). \(reportIt)"
  }

  package static let reportIt = "Please report it with the store's schema if it fails with nothing kept."

  private static func words(_ kept: Set<String>) -> String {
    kept.sorted().map { printable($0) }.joined(separator: ", ")
  }
}

package enum ExportSource: Sendable {
  /// A live store, which is copied first.
  case store(FilePath)

  /// A quarantined store and its salvage report, if any.
  case quarantined(QuarantinedStore, report: FilePath?)

  /// The original file name without extension.
  package var name: String { originalPath.stem ?? "Store" }

  package var quarantineID: String? {
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
