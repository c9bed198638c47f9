public import Scrubbing
public import SupportBundle

/// What a bundle would hold, told before the user agrees to it.
public struct ExportPreview: Sendable, Hashable, Codable {
  /// A level, and what a bundle of it comes to.
  public struct Level: Sendable, Hashable, Codable {
    /// The level.
    public var level: BundleLevel

    /// What it means.
    public var words: String

    /// How many files there are.
    public var files: Int

    /// The size of the files together, before packing.
    public var bytes: Int64

    /// Whether that is exact; else some files are made only when the level is asked for.
    public var isExact: Bool

    /// About how large the bundle is: an estimate by packing samples.
    public var packedBytes: Int64

    private enum CodingKeys: String, CodingKey {
      case level, words, files, bytes
      case isExact = "exact"
      case packedBytes
    }
  }

  /// A file of the bundle.
  public struct File: Sendable, Hashable, Codable {
    /// Its path below `data/`.
    public var name: String

    /// Its size before packing.
    public var bytes: Int64

    /// What it is.
    public var words: String
  }

  /// The level that was asked for.
  public var level: BundleLevel

  /// What the store is called.
  public var store: String

  /// Every level, the one with the least first.
  public var levels: [Level]

  /// The files of the level that was asked for, by name.
  public var files: [File]

  /// What was replaced, where the level is `scrubbed`.
  public var scrub: ScrubReport?

  /// How long the check of the scrubbed files took, in seconds; nil for other levels.
  public var checkSeconds: Double?

  /// What is remarkable, in words.
  public var remarks: [String]

  /// What the level that was asked for comes to.
  public var asked: Level? { levels.first { $0.level == level } }
}
