package import Platform
package import SystemPackage

package struct QuarantinedStore: Sendable, Hashable, Encodable {
  /// The file name without extension, such as `2026-11-21-10-11-12`.
  package var id: String

  package var files: StoreFileSet

  package var receiptPath: FilePath

  /// Nil if missing or unreadable.
  package var receipt: Receipt?

  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": id, "store": PathText(files.main), "receiptPath": PathText(receiptPath), "receipt": receipt,
    ])
  }
}
