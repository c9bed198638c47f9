package import Lazaret
package import Platform
internal import Salvage
package import SystemPackage

/// Makes a support bundle of a store: looks at it, tells what would leave the machine, and writes it.
///
/// The store is only read. What is made on the way lies in a private folder, which goes at the end.
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

  /// Stores from this size on, in bytes, are scrubbed while their damage is analysed; with smaller ones the wait is short.
  package var scrubsBesideFrom: Int64 = 64 << 20

  /// An exporter.
  ///
  /// - Parameters:
  ///   - source: the store.
  ///   - home: the folder with the scrubbing key, in which everything is made ready unless another place is given.
  ///   - place: where everything is made ready.
  package init(
    _ source: ExportSource, home: FilePath, place: ExportFolder.Place = .home, surroundings: Surroundings = .machine
  ) {
    self.source = source
    self.home = home
    self.place = place
    self.surroundings = surroundings
  }

  /// Makes everything ready that a bundle holds, and writes nothing but in a private folder.
  ///
  /// - Throws: ``SupportBundleError``: `bundle-not-scrubbed` where a value would have left the machine, `bundle-store` where
  ///   the store has nothing for the level, `bundle-request`, `cancelled`; else what the surroundings say.
  package func prepare(
    _ options: ExportOptions, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> PreparedExport {
    try ExportWork(source, options, home: home, place: place, surroundings: surroundings, progress: progress)
      .prepare(scrubbingBesideFrom: scrubsBesideFrom)
  }

  /// What a bundle would hold.
  package func preview(
    _ options: ExportOptions, progress: @escaping ExportProgress = { _, _, _ in true }
  ) throws -> ExportPreview {
    try prepare(options, progress: progress).preview
  }

  /// Makes everything ready and writes the bundle, for callers that have asked already.
  ///
  /// - Parameters:
  ///   - recipients: who alone can open it; not encrypted if empty.
  ///   - path: a folder that is there, in which it gets a name of its own; else the bundle's path.
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

/// The errors of an export, which are those of support bundles.
package enum SupportBundleErrors {
  static let operation = "export the store"

  /// A request that makes no sense.
  static func request(_ operation: String, _ path: FilePath?, _ detail: String, _ hint: String) -> SupportBundleError {
    SupportBundleError(.request, operation: operation, path: path, detail: detail, hint: hint)
  }

  /// A level that the store has nothing for.
  static func store(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.store, operation: operation, path: path, detail: detail)
  }

  /// Values, names or sums that were to stay are in what was to leave.
  ///
  /// - Parameter kept: the columns whose values were kept.
  static func notScrubbed(
    _ path: FilePath, count: Int, in name: String, at offset: Int64, keeping kept: Set<String>
  ) -> SupportBundleError {
    SupportBundleError(
      .notScrubbed, operation: operation, path: path,
      detail:
        "\(count) values of records, or names or sums of files, were found in what was to be written, the first in "
        + "\(printable(name)) at byte \(offset)" + keptDetail(kept), hint: keptHint(kept))
  }

  /// The likely cause where columns were kept, to follow what was found; empty where none was.
  package static func keptDetail(_ kept: Set<String>) -> String {
    kept.isEmpty
      ? "" : "; likely because of --keep \(words(kept)): values that are kept are values of other columns too"
  }

  /// What to do where columns were kept; nil where none was.
  package static func keptHint(_ kept: Set<String>) -> String? {
    guard !kept.isEmpty else { return nil }
    return
      "Nothing was written. Keep the other columns with these values too, whatever the case of their letters, or do "
      + "not keep \(words(kept)). If it fails without --keep, please report it with the store's schema."
  }

  private static func words(_ kept: Set<String>) -> String {
    kept.sorted().map { printable($0) }.joined(separator: ", ")
  }
}

/// The store that a bundle is made of.
package enum ExportSource: Sendable {
  /// A store in its place; it may be in use, so that a private copy of it is what is looked at.
  case store(FilePath)

  /// A store in quarantine, which no process writes to, and the report of its salvage where there is one.
  case quarantined(QuarantinedStore, report: FilePath?)

  /// What it is called for people: the name of its file where the app had it, without the extension.
  package var name: String { originalPath.stem ?? "Store" }

  /// The identifier of the store in quarantine; nil where it is in its place.
  package var quarantineID: String? {
    if case .quarantined(let stored, _) = self { return stored.id }
    return nil
  }

  /// Where the app had it.
  var originalPath: FilePath {
    switch self {
    case .store(let path): path
    case .quarantined(let stored, _): stored.receipt?.originalPath.path ?? stored.files.main
    }
  }

  /// Which recovery kits say something of it.
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

  /// The receipt; nil for a store in its place, and where there is none.
  var receipt: Receipt? {
    if case .quarantined(let stored, _) = self { return stored.receipt }
    return nil
  }
}
