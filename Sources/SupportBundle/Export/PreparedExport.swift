import Lazaret
package import Platform
package import SystemPackage

/// A bundle ready for writing, with its temporary files.
package final class PreparedExport: Sendable {
  package let preview: ExportPreview

  package let quarantineID: String?

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
