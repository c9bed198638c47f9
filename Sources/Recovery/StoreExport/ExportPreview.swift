package import Scrubbing
package import SupportBundle

/// What a bundle would hold, told before the user agrees to it.
package struct ExportPreview: Sendable, Hashable, Codable {
  /// A level, and what a bundle of it comes to.
  package struct Level: Sendable, Hashable, Codable {
    /// The level.
    package var level: BundleLevel

    /// What it means.
    package var words: String

    /// How many files there are.
    package var files: Int

    /// The size of the files together, before packing.
    package var bytes: Int64

    /// Whether that is exact; else some files are made only when the level is asked for.
    package var isExact: Bool

    /// About how large the bundle is: an estimate by packing samples.
    package var packedBytes: Int64

    private enum CodingKeys: String, CodingKey {
      case level, words, files, bytes
      case isExact = "exact"
      case packedBytes
    }
  }

  /// A file of the bundle.
  package struct File: Sendable, Hashable, Codable {
    /// Its path below `data/`.
    package var name: String

    /// Its size before packing.
    package var bytes: Int64

    /// What it is.
    package var words: String
  }

  /// The level that was asked for.
  package var level: BundleLevel

  /// What the store is called.
  package var store: String

  /// Every level, the one with the least first.
  package var levels: [Level]

  /// The files of the level that was asked for, by name.
  package var files: [File]

  /// What was replaced, where the level is `scrubbed`.
  package var scrub: ScrubReport?

  /// How long the check of the scrubbed files took, in seconds; nil for other levels.
  package var checkSeconds: Double?

  /// What is remarkable, in words.
  package var remarks: [String]

  /// What the level that was asked for comes to.
  package var asked: Level? { levels.first { $0.level == level } }
}
