package import AgeEncryption
package import StoreFiles
internal import SupportBundle
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
