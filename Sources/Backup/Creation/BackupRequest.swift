package import Platform

/// The options of a backup.
package struct BackupRequest: Sendable {
  package var compression = BackupCompression.gzip

  /// The level: 1, 6 or 9 for gzip, 1 to 19 for Zstandard; nil for the default.
  package var level: Int?

  var chosenLevel: Int { level ?? compression.usualLevel }

  package var encryption: BackupEncryption?

  /// Whether a plain backup may follow an encrypted one.
  package var allowsPlain = false

  /// Whether to pack all pages even if few changed.
  package var isFull = false

  package var reason = BackupManifest.Reason.manual

  /// Words for retention; letters, digits, `-`, `_` and `.`.
  package var tags: [String] = []

  /// The maximum chain length.
  package var chainLimit = 8

  /// Whether to keep raw files, as always for a damaged store.
  package var isEvidence = false

  /// Whether to read back and compare the written files.
  package var proves = true

  package var appVersion: String?

  /// The app's name of the model version.
  package var modelVersion: String?

  /// The store's generation, if known.
  package var lineage: StoreLineage?

  package var progress: BackupProgress

  /// Creates a manual request with gzip at level 6.
  package init(progress: @escaping BackupProgress = { _, _, _ in true }) { self.progress = progress }

  func check() throws {
    try compression.requireAvailable(to: "back up the store")
    guard compression.has(level: chosenLevel) else {
      throw BackupError.request(
        "\(compression.rawValue) has no level \(chosenLevel)", hint: "Use level \(compression.levelWords).")
    }
    guard (1...1000).contains(chainLimit) else {
      throw BackupError.request("a chain cannot have \(chainLimit) backups", hint: "Use a length from 1 to 1000.")
    }
    for tag in tags {
      let isWord = tag.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
      guard isWord, (1...64).contains(tag.utf8.count) else {
        throw BackupError.request(
          "\(printable(tag)) cannot be a tag", hint: "Use up to 64 letters, digits, points, hyphens and underscores.")
      }
    }
  }
}

extension BackupError {
  fileprivate static func request(_ detail: String, hint: String) -> BackupError {
    BackupError(.request, operation: "back up the store", detail: detail, hint: hint)
  }
}
