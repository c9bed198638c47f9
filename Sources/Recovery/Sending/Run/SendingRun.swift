internal import Cryptography
internal import Foundation
internal import StoreFiles
internal import SystemPackage

/// One bundle being sent by this process, from the first request to the receipt.
struct SendingRun: ~Copyable {
  var held: HeldEntry
  let requester: Requester
  let receiver: ReceiverAddress
  let bundlePath: FilePath
  let fileSystem: FileSystem
  let clock: SendingClock
  let options: SendingOptions
  let isStopped: @Sendable () -> Bool
  let progress: @Sendable (SendingProgress) -> Void

  /// What the receiver said it can do; nil before it was asked.
  var abilities: ReceiverAbilities?
  var source: BundleSource?
  var size: PartSize
  /// The most bytes that the receiver is known to have had.
  var best: Int64 = -1
  /// How often an upload was announced anew.
  var announcements = 0
  /// How many parts the receiver took only a beginning of.
  var shortParts = 0
  /// Whether a byte went out in this run.
  var hasSent = false

  /// Tries until it is there, it makes no sense, or patience is over.
  mutating func run() throws -> DeliveryReceipt {
    var schedule = options.seed.map { RetrySchedule(seed: $0) } ?? RetrySchedule()
    var failures = 0
    while true {
      let before = best
      do {
        return try attempt()
      } catch let failure as TryFailure {
        var error = failure.error
        if error.path == nil { error.path = bundlePath }
        guard failure.isPassing else { throw error }
        failures = best > before && before >= 0 ? 1 : failures + 1
        size.failed()
        let pause = schedule.pause(after: failures, asked: failure.asked)
        let next = Timestamp(
          secondsSince1970: clock.now().secondsSince1970 + Int64((pause / .seconds(1)).rounded(.up)))
        try held.update { entry in
          entry.tries += 1
          entry.lastError = error.code
          entry.nextTry = next.rfc3339
        }
        if !options.waits, failures >= options.tries || pause > SendingOptions.longestPause { throw error }
        tell(.pausing(pause, code: error.code))
        clock.pause(pause, isStopped)
        if isStopped() { throw SendingError.cancelled(bundlePath) }
      }
    }
  }

  private mutating func attempt() throws -> DeliveryReceipt {
    if isStopped() { throw SendingError.cancelled(bundlePath) }
    switch held.entry.method {
    case .tus: return try upload()
    case .put: return try put()
    }
  }

  /// Tells how far it is.
  func tell(_ phase: SendingProgress.Phase, extra: Int64 = 0) {
    progress(
      SendingProgress(
        phase: phase, done: min(held.entry.offset + extra, held.entry.bytes), total: held.entry.bytes))
  }

  /// The receipt that a receiver wrote, checked; nil where it wrote none.
  ///
  /// - Throws: `send-receipt` where it is about something else.
  func receipt(in response: UploadResponse) throws -> DeliveryReceipt? {
    guard (200...299).contains(response.status), !response.isCutOff,
      response["Content-Type"]?.lowercased().hasPrefix("application/json") == true,
      let receipt = DeliveryReceipt(response.body, receiver: receiver.origin, now: clock.now())
    else { return nil }
    guard receipt.sha256 == held.entry.sha256, receipt.bytes == held.entry.bytes else {
      throw TryFailure.final(
        SendingError(
          .receipt, operation: "check the receipt",
          detail: "the receiver says that it received something else than what was sent",
          hint: "Send it again with: lazaret outbox retry \(held.entry.id)"))
    }
    return receipt
  }

  /// A receipt made here, for a receiver that writes none.
  func ownReceipt(id: String) -> DeliveryReceipt {
    DeliveryReceipt(
      id: id, sha256: held.entry.sha256, bytes: held.entry.bytes, date: clock.now(), receiver: receiver.origin,
      isReceivers: false)
  }

  /// What the file is, as receivers are told.
  var contentType: String { held.entry.isEncrypted ? "application/octet-stream" : "application/gzip" }
}

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
