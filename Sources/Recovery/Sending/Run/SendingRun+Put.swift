internal import Cryptography
internal import Foundation
internal import StoreFiles

extension SendingRun {
  /// One try by `PUT`: the whole bundle in one request, with its sum (RFC 9530).
  ///
  /// Up to ``UploadRequest/partLimit`` it goes from memory, and what is sent is what was summed up. A larger one is summed up right
  /// before, goes from its file, and must be the same file afterwards; so memory does not grow with it.
  mutating func put() throws -> DeliveryReceipt {
    let source = try fileSystem.open(bundlePath)
    let before = try source.currentStatus()
    guard source.count == held.entry.bytes else { throw TryFailure.final(Outbox.changed(bundlePath)) }
    let body: UploadRequest.Body
    let sum: String
    if source.count <= Int64(options.partLimit) {
      let bytes = try source.bytes(at: 0, length: Int(source.count))
      sum = FileDigest(of: bytes).hexadecimal
      body = .bytes(bytes)
    } else {
      let stopped = isStopped
      let path = bundlePath
      sum = try FileDigest(of: source) { _ in if stopped() { throw SendingError.cancelled(path) } }.hexadecimal
      body = .file(bundlePath, size: source.count)
    }
    guard sum == held.entry.sha256 else { throw TryFailure.final(Outbox.changed(bundlePath)) }
    let fields = [
      "Content-Type": contentType, "Repr-Digest": "sha-256=:\(Self.base64(ofHexadecimal: sum)):",
      "Accept": "application/json",
    ]
    hasSent = true
    let (progress, total) = (self.progress, held.entry.bytes)
    tell(.sending)
    let response = try requester.ask(.put, receiver, fields: fields, body: body) { sent in
      progress(SendingProgress(phase: .sending, done: min(sent, total), total: total))
    }
    guard (200...299).contains(response.status) else { throw requester.failure(response, to: "the bundle") }
    let after = try fileSystem.status(of: bundlePath)
    guard let after, after.identity == before.identity, after.size == before.size, after.modified == before.modified
    else { throw TryFailure.final(Outbox.changed(bundlePath)) }
    return try receipt(in: response) ?? ownReceipt(id: receiver.lastComponent)
  }

  private static func base64(ofHexadecimal text: String) -> String {
    Data([UInt8](hexadecimal: text) ?? []).base64EncodedString()
  }
}
