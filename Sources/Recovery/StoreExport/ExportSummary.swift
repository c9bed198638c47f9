package import BundleWriting
package import Scrubbing
package import StoreFiles
internal import SupportBundle

/// A bundle that was made of a store.
package struct ExportSummary: Sendable, Hashable, Codable {
  /// The file: its path, size, SHA-256, level, recipients and what is in it.
  package var bundle: BundleSummary

  /// The identifier of the store in quarantine; nil where it is in its place.
  package var quarantineID: String?

  /// What was replaced, where the level is `scrubbed`.
  package var scrub: ScrubReport?

  /// How long the check of the scrubbed files took, in seconds; nil for other levels.
  package var checkSeconds: Double?

  /// What is remarkable, in words.
  package var remarks: [String]

  /// Where the bundle is.
  package var path: PathText { bundle.path }
}
