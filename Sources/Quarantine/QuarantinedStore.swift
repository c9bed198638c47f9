public import StoreFiles
public import SystemPackage

/// A store in quarantine: where it lies, and its receipt.
public struct QuarantinedStore: Sendable, Hashable, Encodable {
  /// What it is called: its file name without extension, such as `2026-11-21-10-11-12`.
  public var id: String

  /// The files, under their names in quarantine.
  public var files: StoreFileSet

  /// The path of the receipt.
  public var receiptPath: FilePath

  /// The receipt; nil where it is missing or cannot be read.
  public var receipt: Receipt?

  /// Writes where it and its receipt are, with the receipt.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": id, "store": PathText(files.main), "receiptPath": PathText(receiptPath), "receipt": receipt,
    ])
  }
}
