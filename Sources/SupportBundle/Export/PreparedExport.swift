import Lazaret
package import Platform
package import SystemPackage

/// A bundle that is ready to be written, with all that is in it; what was made for it goes when this value ends.
package final class PreparedExport: Sendable {
  /// What it holds.
  package let preview: ExportPreview

  /// The identifier of the store in quarantine; nil where it is in its place.
  package let quarantineID: String?

  /// The folder that the store lies in, in quarantine; nil where it is in its place.
  package let quarantineFolder: FilePath?

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

  /// Writes the bundle: a file of its owner's alone, which gets its name when all of it is on the disk.
  ///
  /// - Parameters:
  ///   - recipients: who alone can open it; not encrypted if empty.
  ///   - isArmored: whether an encrypted bundle is written as text.
  ///   - path: a folder that is there, in which the bundle gets a name of its own; else the bundle's path.
  /// - Throws: ``SupportBundleError``; nothing is left then.
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
