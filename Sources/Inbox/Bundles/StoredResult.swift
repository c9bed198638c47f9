/// A bundle's result: the worker's answer and the archive.
package struct StoredResult: Sendable, Hashable, Codable {
  package static let formatName = "lazaret-bundle-result"

  package var format = formatName

  package var version = 1

  package var making: BundleMaking

  /// Nil if the files stay in the home.
  package var archive: InboxBundle.Archive?

  /// The result of an `open` job.
  package var opened: WorkResult.Opened?

  /// The result of a `salvage` job.
  package var salvaged: WorkResult.Salvaged?

  /// The size that the files count with.
  package var placedBytes: Int64

  package init(
    making: BundleMaking, archive: InboxBundle.Archive?, opened: WorkResult.Opened?,
    salvaged: WorkResult.Salvaged? = nil, placedBytes: Int64
  ) {
    self.making = making
    self.archive = archive
    self.opened = opened
    self.salvaged = salvaged
    self.placedBytes = placedBytes
  }

  /// Whether it plausibly belongs to this input.
  func isPlausible(for making: BundleMaking) -> Bool {
    format == Self.formatName && version == 1 && self.making == making && placedBytes >= 0
      && archive?.isPlausible != false && (making.kind == .open) == (opened != nil) && opened?.isPlausible != false
      && salvaged?.isPlausible != false
  }
}

/// A local worker's result.
package struct MadeResult: Sendable {
  package var folders: InboxFolders

  /// The result of an `open` job.
  package var opened: WorkResult.Opened?

  /// The result of a `salvage` job.
  package var salvaged: WorkResult.Salvaged?

  /// The size that the files count with.
  package var placedBytes: Int64

  /// The SHA-256 of files present before, by path below the bundle's folder.
  package var before: [String: String]

  package init(
    folders: InboxFolders, opened: WorkResult.Opened?, salvaged: WorkResult.Salvaged? = nil, placedBytes: Int64,
    before: [String: String] = [:]
  ) {
    self.folders = folders
    self.opened = opened
    self.salvaged = salvaged
    self.placedBytes = placedBytes
    self.before = before
  }
}

extension InboxBundle {
  package struct Archive: Sendable, Hashable, Codable {
    /// The input's digest.
    package var making: String

    /// Distinguishes archives of one input: letters, digits and hyphens.
    package var mark: String

    /// In hexadecimal.
    package var sha256: String

    package var bytes: Int64

    package init(making: String, mark: String, sha256: String, bytes: Int64) {
      self.making = making
      self.mark = mark
      self.sha256 = sha256
      self.bytes = bytes
    }

    /// Whether its names are safe path components.
    var isPlausible: Bool {
      InboxFolders.isID(mark) && bytes >= 0
        && [making, sha256].allSatisfy { sum in
          sum.utf8.count == 64 && sum.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
        }
    }
  }
}
