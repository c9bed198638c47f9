package import StoreFiles
package import SystemPackage

/// A store in quarantine: where it lies, and its receipt.
package struct QuarantinedStore: Sendable, Hashable, Encodable {
  /// What it is called: its file name without extension, such as `2026-11-21-10-11-12`.
  package var id: String

  /// The files, under their names in quarantine.
  package var files: StoreFileSet

  /// The path of the receipt.
  package var receiptPath: FilePath

  /// The receipt; nil where it is missing or cannot be read.
  package var receipt: Receipt?

  /// Writes where it and its receipt are, with the receipt.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": id, "store": PathText(files.main), "receiptPath": PathText(receiptPath), "receipt": receipt,
    ])
  }
}
