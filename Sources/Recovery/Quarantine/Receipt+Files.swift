import Foundation
package import StoreFiles
package import SystemPackage

extension Receipt {
  /// The receipt of a store that has just got its names in quarantine.
  init(
    _ relocation: Relocation, of store: QuarantineCase, id: String, date: Timestamp, folder: FilePath,
    _ succession: QuarantineFolder.Succession
  ) {
    self.init(
      format: "lazaret-quarantine-receipt", version: 1, id: id, date: date.rfc3339, reason: store.reason,
      error: store.error, originalPath: relocation.source,
      files: relocation.steps.reversed().map { step in
        File(
          part: step.part, name: step.destination.path.map { PathText($0.relative(to: folder)) } ?? step.destination,
          originalPath: step.source, bytes: step.bytes, sha256: step.sha256 ?? "")
      },
      model: store.model, entities: store.entities, versions: store.versions, salvage: store.salvage,
      timeline: [Moment(.quarantined, at: date, words: store.reason.words, path: relocation.source)])
    lineage = succession.lineage
    successor = succession.successor
    order = succession.order
  }

  /// Reads a receipt.
  ///
  /// - Throws: `receipt-unreadable` where it is not one, or is of a later version than this software knows.
  package init(at path: FilePath, in fileSystem: FileSystem) throws {
    let bytes = try fileSystem.contents(of: path, limit: 1 << 26)
    let receipt: Receipt
    do {
      receipt = try JSONDecoder().decode(Receipt.self, from: Data(bytes))
    } catch {
      throw QuarantineError(
        .receiptUnreadable, operation: "read the receipt", path: path,
        detail: "it is not a receipt of a quarantined store")
    }
    guard receipt.format == "lazaret-quarantine-receipt", receipt.version == 1 else {
      throw QuarantineError(
        .receiptUnreadable, operation: "read the receipt", path: path,
        detail: "it is of version \(receipt.version), and this software knows version 1",
        hint: "Use a newer version of this software.")
    }
    self = receipt
  }

  /// The receipt as the JSON text that is written, with a final newline.
  package func json() throws(FileError) -> [UInt8] { try JSON.bytes(of: self, to: "write the receipt") }
}

extension FilePath {
  /// The path from a folder on; the whole path where it does not lie in there.
  fileprivate func relative(to folder: FilePath) -> FilePath {
    var path = self
    return path.removePrefix(folder) ? path : self
  }
}
