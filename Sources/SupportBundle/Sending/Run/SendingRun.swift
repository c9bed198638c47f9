internal import Foundation
internal import Platform
internal import SystemPackage

/// One transfer, from the first request to the receipt.
struct SendingRun: ~Copyable {
  var held: HeldEntry
  let requester: Requester
  let receiver: ReceiverAddress
  let bundlePath: FilePath
  let fileSystem: FileSystem
  let options: SendingOptions
  let isStopped: @Sendable () -> Bool
  let progress: @Sendable (SendingProgress) -> Void

  var abilities: ReceiverAbilities?
  var source: BundleSource?
  var size: PartSize
  /// The highest known offset at the receiver.
  var best: Int64 = -1
  var announcements = 0
  /// The number of partly accepted parts.
  var shortParts = 0
  var hasSent = false

  /// Tries until success, a permanent failure or too many tries.
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
        size.shrink()
        let pause = schedule.pause(after: failures, asked: failure.asked)
        let next = Timestamp(
          secondsSince1970: requester.clock.now().secondsSince1970 + Int64((pause / .seconds(1)).rounded(.up)))
        try held.update { entry in
          entry.tries += 1
          entry.lastError = error.code
          entry.nextTry = next.rfc3339
        }
        if !options.waits, failures >= options.tries || pause > SendingOptions.longestPause { throw error }
        tell(.pausing(pause, code: error.code))
        requester.clock.pause(pause, isStopped)
        if isStopped() { throw SupportBundleError.stopped(bundlePath) }
      }
    }
  }

  private mutating func attempt() throws -> DeliveryReceipt {
    if isStopped() { throw SupportBundleError.stopped(bundlePath) }
    switch held.entry.method {
    case .tus: return try upload()
    case .put: return try put()
    }
  }

  func tell(_ phase: SendingProgress.Phase) {
    progress(SendingProgress(phase: phase, done: min(held.entry.offset, held.entry.bytes), total: held.entry.bytes))
  }

  /// Returns the receiver's verified receipt, if any.
  ///
  /// - Throws: `send-receipt` if it is for other content.
  func receipt(in response: UploadResponse) throws -> DeliveryReceipt? {
    guard (200...299).contains(response.status), !response.isCutOff,
      response["Content-Type"]?.lowercased().hasPrefix("application/json") == true,
      let receipt = DeliveryReceipt(response.body, receiver: receiver.origin, now: requester.clock.now())
    else { return nil }
    guard receipt.sha256 == held.entry.sha256, receipt.bytes == held.entry.bytes else {
      throw TryFailure.final(
        SupportBundleError(
          .receipt, operation: "check the receipt",
          detail: "the receiver says that it received something else than what was sent",
          hint: "Send it again with: lazaret outbox retry \(held.entry.id)"))
    }
    return receipt
  }

  /// Makes a receipt for a receiver that writes none.
  func ownReceipt(id: String) -> DeliveryReceipt {
    DeliveryReceipt(
      id: id, sha256: held.entry.sha256, bytes: held.entry.bytes, date: requester.clock.now(),
      receiver: receiver.origin, isReceivers: false)
  }

  /// Sends bytes of the bundle, and reports progress.
  mutating func send(
    _ method: UploadRequest.Method, to address: ReceiverAddress, _ fields: [String: String], _ body: UploadRequest.Body,
    after offset: Int64 = 0
  ) throws -> UploadResponse {
    hasSent = true
    tell(.sending)
    return try requester.ask(method, address, fields: fields, body: body) { [progress, total = held.entry.bytes] sent in
      progress(SendingProgress(phase: .sending, done: min(offset + sent, total), total: total))
    }
  }

  var contentType: String { held.entry.isEncrypted ? "application/octet-stream" : "application/gzip" }
}

extension SendingRun {
  /// Tries `PUT`: the whole bundle with its digest (RFC 9530).
  ///
  /// Up to ``UploadRequest/partLimit``, the hashed bytes are sent from memory. A larger file is hashed first and must
  /// stay unchanged, so memory stays constant.
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
      let (stopped, path) = (isStopped, bundlePath)
      sum = try FileDigest(of: source) { _ in if stopped() { throw SupportBundleError.stopped(path) } }.hexadecimal
      body = .file(bundlePath, size: source.count)
    }
    guard sum == held.entry.sha256 else { throw TryFailure.final(Outbox.changed(bundlePath)) }
    let digest = Data([UInt8](hexadecimal: sum) ?? []).base64EncodedString()
    let fields = ["Content-Type": contentType, "Repr-Digest": "sha-256=:\(digest):", "Accept": "application/json"]
    let response = try send(.put, to: receiver, fields, body)
    guard (200...299).contains(response.status) else { throw requester.failure(response, to: "the bundle") }
    let after = try fileSystem.status(of: bundlePath)
    guard let after, after.identity == before.identity, after.size == before.size, after.modified == before.modified
    else { throw TryFailure.final(Outbox.changed(bundlePath)) }
    return try receipt(in: response) ?? ownReceipt(id: receiver.lastComponent)
  }
}

extension SendingRun {
  private static let announcementLimit = 4
  private static let conflictLimit = 8
  private static let shortPartLimit = 1000

  mutating func upload() throws -> DeliveryReceipt {
    tell(.asking)
    try discover()
    var address = try resume() ?? announce()
    var conflicts = 0
    while held.entry.offset < held.entry.bytes {
      if isStopped() { throw SupportBundleError.stopped(bundlePath) }
      switch try sendPart(to: address) {
      case .arrived: conflicts = 0
      case .conflict:
        conflicts += 1
        guard conflicts <= Self.conflictLimit else {
          throw requester.odd("the receiver keeps contradicting itself about what it has", isPassing: true)
        }
        address = try resume() ?? announce()
      case .gone: address = try announce()
      }
    }
    return try collectReceipt(address)
  }

  private var tusFields: [String: String] { [TusField.resumable: TusVersion.current] }

  private mutating func discover() throws {
    guard abilities == nil else { return }
    let response = try requester.ask(.options, receiver)
    if [401, 408, 425, 429, 502, 503, 504].contains(response.status) {
      throw requester.failure(response, to: "the question what it can do")
    }
    let said = ReceiverAbilities(response)
    if let limit = said.maxSize, held.entry.bytes > limit {
      throw requester.failure(UploadResponse(413, fields: [TusField.maxSize: "\(limit)"]), to: "the bundle")
    }
    abilities = said
  }

  /// Asks for the offset of an earlier upload.
  ///
  /// - Returns: its address; nil if the receiver does not know it.
  private mutating func resume() throws -> ReceiverAddress? {
    guard let text = held.entry.upload, let address = receiver.resolving(text) else { return nil }
    let response = try requester.ask(.head, address, fields: tusFields)
    switch response.status {
    case 404, 410:
      try forget()
      return nil
    case 200, 204: break
    default: throw requester.failure(response, to: "the question how much is there")
    }
    guard let offset = response.number(TusField.offset), offset <= held.entry.bytes,
      response[TusField.length] == nil || response.number(TusField.length) == held.entry.bytes
    else { throw requester.odd("it says nothing of use about how much of the bundle it has") }
    try reached(offset, response)
    return address
  }

  private mutating func forget() throws {
    try held.update { entry in
      entry.upload = nil
      entry.expires = nil
      entry.offset = 0
    }
  }

  /// Announces the bundle, which reserves space.
  private mutating func announce() throws -> ReceiverAddress {
    announcements += 1
    guard announcements <= Self.announcementLimit else { throw requester.odd("it forgets what was announced to it") }
    try forget()
    var metadata = UploadMetadata()
    metadata[UploadMetadata.fileName] = held.entry.name
    metadata[UploadMetadata.fileType] = contentType
    metadata[UploadMetadata.sha256] = held.entry.sha256
    if let level = held.entry.level { metadata["level"] = level.rawValue }
    var fields = tusFields
    fields[TusField.length] = "\(held.entry.bytes)"
    fields[TusField.metadata] = metadata.field
    let response = try requester.ask(.post, receiver, fields: fields, body: .bytes([]))
    guard response.status == 201 else { throw requester.failure(response, to: "the announcement of the bundle") }
    guard let location = response["Location"] else { throw requester.odd("it does not say where the bundle is to go") }
    guard let address = receiver.resolving(location) else {
      throw TryFailure.final(
        SupportBundleError(
          .redirected, detail: "the receiver redirects the bundle to another address than the one that was given"))
    }
    let offset = response[TusField.offset] == nil ? 0 : response.number(TusField.offset)
    guard let offset, offset == 0 || offset == held.entry.bytes else {
      throw requester.odd("it says that it has a part of what was never sent")
    }
    try held.update { $0.upload = address.text }
    if offset > 0 {
      // Only a receipt proves that the receiver has the bundle.
      let answer = try requester.ask(.get, address, fields: ["Accept": "application/json"])
      guard try receipt(in: answer) != nil else {
        try forget()
        throw requester.odd("it says that it has the bundle, and has no receipt for it")
      }
    }
    try reached(offset, response)
    return address
  }

  private mutating func reached(_ offset: Int64, _ response: UploadResponse) throws {
    best = max(best, offset)
    let expires = response[TusField.expires].flatMap { HTTPDate.parse($0) }
    try held.update { entry in
      entry.offset = offset
      if let expires { entry.expires = expires.rfc3339 }
    }
  }

  // MARK: Parts

  private enum PartOutcome { case arrived, conflict, gone }

  private mutating func sendPart(to address: ReceiverAddress) throws -> PartOutcome {
    let offset = held.entry.offset
    let bytes = try read(at: offset)
    var fields = tusFields
    fields[TusField.offset] = "\(offset)"
    fields["Content-Type"] = TusField.partType
    if abilities?.checksSums == true {
      fields[TusField.checksum] = UploadChecksum(algorithm: "sha256", sum: Array(SHA256.hash(data: bytes))).field
    }
    let start = requester.clock.elapsed()
    let response = try send(.patch, to: address, fields, .bytes(bytes), after: offset)
    switch response.status {
    case 200, 204: break
    case 404, 410: return .gone
    case 409: return .conflict
    default: throw requester.failure(response, to: "a part of the bundle")
    }
    // It may accept less, but must advance.
    guard let now = response.number(TusField.offset), now > offset, now <= offset + Int64(bytes.count) else {
      return .conflict
    }
    if now < offset + Int64(bytes.count) {
      shortParts += 1
      guard shortParts <= Self.shortPartLimit else {
        throw requester.odd("it keeps taking only a little of what it is given")
      }
    }
    try reached(now, response)
    size.arrived(in: requester.clock.elapsed() - start)
    tell(.sending)
    return .arrived
  }

  /// Reads the next part, verifying the last one.
  private mutating func read(at offset: Int64) throws -> [UInt8] {
    if source == nil { source = try BundleSource(bundlePath, in: fileSystem) }
    let left = held.entry.bytes - offset
    let count = Int(min(Int64(size.bytes), left))
    guard source?.file.count == held.entry.bytes,
      let bytes = try source?.part(at: offset, count: count, isStopped: isStopped), bytes.count == count
    else { throw altered() }
    if left == Int64(count), source?.sum != held.entry.sha256 { throw altered() }
    return bytes
  }

  private mutating func altered() -> TryFailure {
    terminate()
    return .final(Outbox.changed(bundlePath))
  }

  mutating func terminate() {
    guard let text = held.entry.upload, let address = receiver.resolving(text) else { return }
    // An unreached receiver drops it on expiry.
    _ = try? requester.ask(.delete, address, fields: tusFields)
    try? forget()
  }

  // MARK: The receipt

  private mutating func collectReceipt(_ address: ReceiverAddress) throws -> DeliveryReceipt {
    tell(.finishing)
    let response = try requester.ask(.get, address, fields: ["Accept": "application/json"])
    if [401, 408, 423, 425, 429, 502, 503, 504].contains(response.status) {
      throw requester.failure(response, to: "the question for a receipt")
    }
    return try receipt(in: response) ?? ownReceipt(id: address.lastComponent)
  }
}

/// The capabilities of a tus receiver.
struct ReceiverAbilities: Sendable, Hashable {
  /// The largest upload in bytes.
  var maxSize: Int64?

  var checksSums = false

  /// Reads an `OPTIONS` answer, if of tus.
  init(_ response: UploadResponse) {
    guard (200...299).contains(response.status) else { return }
    let versions = Self.list(response[TusField.version])
    guard versions.isEmpty || versions.contains(TusVersion.current) else { return }
    maxSize = response.number(TusField.maxSize)
    checksSums =
      Self.list(response[TusField.extension]).contains("checksum")
      && Self.list(response[TusField.checksumAlgorithm]).contains("sha256")
  }

  private static func list(_ field: String?) -> [String] {
    (field ?? "").split(separator: ",").map { ($0.split(separator: " ").first ?? "").lowercased() }
  }
}

/// A bundle read and hashed in parts: if changed since the preview, the last part is not sent.
struct BundleSource {
  private static let piece = 1 << 20

  let file: ReadableFile
  private var digest = RunningDigest()
  private var position: Int64 = 0
  /// The digest before the last part, which may be sent again.
  private var before = (digest: RunningDigest(), position: Int64(0))

  init(_ path: FilePath, in fileSystem: FileSystem) throws { file = try fileSystem.open(path) }

  /// - Parameter isStopped: polled while hashing the bytes before the offset.
  mutating func part(at offset: Int64, count: Int, isStopped: () -> Bool) throws -> [UInt8] {
    try advance(to: offset, isStopped)
    before = (digest, position)
    let bytes = try file.bytes(at: offset, length: count)
    digest.add(bytes)
    position += Int64(bytes.count)
    return bytes
  }

  /// The checksum, once exactly the whole file was read.
  var sum: String? { position == file.count ? digest.hexadecimal : nil }

  mutating func advance(to offset: Int64, _ isStopped: () -> Bool) throws {
    if offset < position {
      if offset >= before.position { (digest, position) = before } else { (digest, position) = (RunningDigest(), 0) }
    }
    var buffer = [UInt8](repeating: 0, count: Self.piece)
    while position < offset {
      let got = try file.read(at: position, length: Int(min(Int64(Self.piece), offset - position)), into: &buffer)
      guard got > 0 else { throw FileError(.changed, operation: "read the bundle", path: file.path) }
      digest.add(buffer[..<got])
      position += Int64(got)
      if isStopped() { throw SupportBundleError.stopped(file.path) }
    }
  }
}
