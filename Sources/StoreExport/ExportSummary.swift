public import Scrubbing
public import StoreFiles
public import SupportBundle

/// A bundle that was made of a store.
public struct ExportSummary: Sendable, Hashable, Codable {
  /// The file: its path, size, SHA-256, level, recipients and what is in it.
  public var bundle: BundleSummary

  /// The identifier of the store in quarantine; nil where it is in its place.
  public var quarantineID: String?

  /// What was replaced, where the level is `scrubbed`.
  public var scrub: ScrubReport?

  /// How long the check of the scrubbed files took, in seconds; nil for other levels.
  public var checkSeconds: Double?

  /// What is remarkable, in words.
  public var remarks: [String]

  /// Where the bundle is.
  public var path: PathText { bundle.path }
}
