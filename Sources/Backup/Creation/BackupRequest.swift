package import Platform

/// How a backup is to be taken.
package struct BackupRequest: Sendable {
  /// How the blocks are packed.
  package var compression = BackupCompression.gzip

  /// How hard to pack: 1, 6 or 9 for gzip, 1 to 19 for Zstandard; as is usual for the compression where it is nil.
  package var level: Int?

  /// The level that is used.
  var chosenLevel: Int { level ?? compression.usualLevel }

  /// To whom the backup is encrypted; nil where it is not.
  package var encryption: BackupEncryption?

  /// Whether a backup that is not encrypted may follow one that is.
  package var allowsPlain = false

  /// Whether the whole store is packed, even where few pages changed.
  package var isFull = false

  /// Why it is taken.
  package var reason = BackupManifest.Reason.manual

  /// Words for retention; letters, digits, `-`, `_` and `.`.
  package var tags: [String] = []

  /// How many backups restoring one may read; a longer chain is not begun.
  package var chainLimit = 8

  /// Whether the store is evidence, whose files are kept byte for byte; a damaged one always is.
  package var isEvidence = false

  /// Whether what was written is read back, unpacked and compared.
  package var proves = true

  /// The app's version, for the manifest.
  package var appVersion: String?

  /// The name of the store's model version in the app, for the manifest.
  package var modelVersion: String?

  /// The generation of the store, for the manifest; nil where none is known.
  package var lineage: StoreLineage?

  /// Called now and then with what is done.
  package var progress: BackupProgress

  /// A backup that was asked for, packed with gzip at level 6.
  package init(progress: @escaping BackupProgress = { _, _, _ in true }) { self.progress = progress }

  /// Refuses what makes no sense.
  func check() throws(BackupError) {
    try compression.requireAvailable(to: "back up the store")
    guard compression.has(level: chosenLevel) else {
      throw .request(
        "\(compression.rawValue) has no level \(chosenLevel)", hint: "Use level \(compression.levelWords).")
    }
    guard (1...1000).contains(chainLimit) else {
      throw .request("a chain cannot have \(chainLimit) backups", hint: "Use a length from 1 to 1000.")
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
        throw .request(
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
