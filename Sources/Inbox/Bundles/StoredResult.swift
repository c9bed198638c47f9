/// What was made of a bundle, and is kept: the answer of the worker, and the archive with the files.
package struct StoredResult: Sendable, Hashable, Codable {
  /// The name of the format.
  package static let formatName = "lazaret-bundle-result"

  /// What kind of file it is.
  package var format = formatName

  /// The version of the format.
  package var version = 1

  /// What it was made of.
  package var making: BundleMaking

  /// The archive with the files; nil where they stay where they were made.
  package var archive: InboxBundle.Archive?

  /// What was found in the bundle, of a job that opens one.
  package var opened: WorkResult.Opened?

  /// What salvaging it came to, of a job that salvages one.
  package var salvaged: WorkResult.Salvaged?

  /// How many bytes the files count.
  package var placedBytes: Int64

  /// A result.
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

  /// Whether it is what was made of these things, as far as can be told by looking at it.
  package func isPlausible(for making: BundleMaking) -> Bool {
    format == Self.formatName && version == 1 && self.making == making && placedBytes >= 0
      && archive?.isPlausible != false && (making.kind == .open) == (opened != nil) && opened?.isPlausible != false
      && salvaged?.isPlausible != false
  }
}

/// What a worker of this machine has made of a bundle, and where it is.
package struct MadeResult: Sendable {
  /// The folders that it was worked in.
  package var folders: InboxFolders

  /// What was found in the bundle, of a job that opens one.
  package var opened: WorkResult.Opened?

  /// What salvaging it came to, of a job that salvages one.
  package var salvaged: WorkResult.Salvaged?

  /// How many bytes the files count.
  package var placedBytes: Int64

  /// The files that were there before, by their paths below the bundle's folder, with their SHA-256.
  package var before: [String: String]

  /// What was made.
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
  /// An archive of files that were made of a bundle.
  package struct Archive: Sendable, Hashable, Codable {
    /// The sum of what it was made of.
    package var making: String

    /// What tells it from other archives of the same: letters, digits and hyphens.
    package var mark: String

    /// Its SHA-256, in hexadecimal digits.
    package var sha256: String

    /// Its size in bytes.
    package var bytes: Int64

    /// An archive.
    package init(making: String, mark: String, sha256: String, bytes: Int64) {
      self.making = making
      self.mark = mark
      self.sha256 = sha256
      self.bytes = bytes
    }

    /// Whether its names lead nowhere else.
    package var isPlausible: Bool {
      InboxFolders.isID(mark) && bytes >= 0
        && [making, sha256].allSatisfy { sum in
          sum.utf8.count == 64 && sum.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
        }
    }
  }
}
