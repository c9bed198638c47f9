internal import Foundation
public import Platform
public import SystemPackage

/// Sends the bundles of an outbox.
public struct Sender: Sendable {
  private let outbox: Outbox
  private let transport: any UploadTransport
  private let clock: SendingClock
  private let options: SendingOptions

  /// Creates a sender; one transport serves all bundles of a process.
  public init(
    of outbox: Outbox, over transport: any UploadTransport, options: SendingOptions = SendingOptions(),
    clock: SendingClock = .machine
  ) {
    self.outbox = outbox
    self.transport = transport
    self.options = options
    self.clock = clock
  }

  /// Sends an entry now, until success, a permanent failure or too many tries.
  ///
  /// A sent entry returns its receipt. The entry records the result, and can be continued.
  ///
  /// - Parameters:
  ///   - token: the sender's token; by default from the entry's file.
  ///   - address: the receiver, if the entry has only part of it.
  ///   - isStopped: polled between parts and during pauses.
  /// - Throws: ``SupportBundleError``: environmental if the entry waits for another time, `cancelled` if stopped.
  public func send(
    _ id: String, as token: AccessToken? = nil, to address: ReceiverAddress? = nil,
    progress: @escaping @Sendable (SendingProgress) -> Void = { _ in },
    isStopped: @escaping @Sendable () -> Bool = { false }
  ) throws(SupportBundleError) -> SendingOutcome {
    do {
      var held = try HeldEntry(id, of: outbox)
      if let receipt = held.entry.receipt, held.entry.state == .sent {
        return settle(&held, SendingOutcome(receipt: receipt, wasThere: true, quarantined: []))
      }
      guard !held.entry.isOver else { throw over(held.entry) }
      let receiver = try receiver(of: held.entry, given: address)
      let token = try token ?? savedToken(of: held.entry)
      try held.update { entry in
        if entry.state == .failed { entry.renew() }
        entry.state = .sending
      }
      var run = SendingRun(
        held: held, requester: Requester(transport: transport, receiver: receiver, token: token, clock: clock),
        receiver: receiver, bundlePath: outbox.bundlePath(of: id), fileSystem: outbox.fileSystem,
        options: options, isStopped: isStopped, progress: progress, size: PartSize(limit: options.partLimit))
      return try carryOut(&run)
    } catch { throw SupportBundleError.sending(error, operation: "send the bundle", path: outbox.folder(of: id)) }
  }

  private func carryOut(_ run: inout SendingRun) throws -> SendingOutcome {
    do {
      let receipt = try run.run()
      try run.held.update { entry in
        entry.state = .sent
        entry.receipt = receipt
        entry.offset = entry.bytes
        entry.upload = nil
        entry.expires = nil
        entry.nextTry = nil
        entry.lastError = nil
      }
      return settle(&run.held, SendingOutcome(receipt: receipt, wasThere: !run.hasSent, quarantined: []))
    } catch {
      let told = SupportBundleError.sending(error, operation: "send the bundle", path: run.bundlePath)
      // Keep the first error; unlocked entries are waiting.
      try? run.held.update { entry in
        entry.state = told.isEnvironmental || told.kind == .cancelled || told.kind == .file ? .waiting : .failed
        if told.kind != .cancelled { entry.lastError = told.code }
        if entry.state == .failed { entry.nextTry = nil }
      }
      throw told
    }
  }

  /// Records the receipt and removes the bundle; a failure is retried later.
  private func settle(_ held: inout HeldEntry, _ outcome: SendingOutcome) -> SendingOutcome {
    var outcome = outcome
    do {
      outcome.quarantined = try outbox.settle(&held)
    } catch {
      outcome.problem = SupportBundleError.sending(
        error, operation: "note the receipt", path: outbox.folder(of: held.entry.id))
    }
    return outcome
  }

  /// Cancels an entry, deleting the bundle and the receiver's partial upload.
  ///
  /// - Returns: the entry, and whether the receiver was reached; otherwise its upload expires.
  public func cancel(
    _ id: String, as token: AccessToken? = nil, to address: ReceiverAddress? = nil
  ) throws(SupportBundleError) -> (entry: OutboxEntry, isReceiverTold: Bool) {
    do {
      var held = try HeldEntry(id, of: outbox)
      guard held.entry.state != .sent else { throw over(held.entry) }
      let upload = held.entry.upload
      try held.update { entry in
        entry.state = .cancelled
        entry.nextTry = nil
      }
      var isReceiverTold = upload == nil
      if let upload, let receiver = try? receiver(of: held.entry, given: address) {
        // Cancelling needs no token, network or receiver.
        let token = token ?? (try? savedToken(of: held.entry))
        let requester = Requester(transport: transport, receiver: receiver, token: token, clock: clock)
        if let target = receiver.resolving(upload),
          let response = try? requester.ask(.delete, target, fields: [TusField.resumable: TusVersion.current])
        {
          isReceiverTold = [200, 202, 204, 404, 410].contains(response.status)
        }
      }
      try held.update { $0.upload = nil }
      _ = try outbox.settle(&held)
      return (held.entry, isReceiverTold)
    } catch { throw SupportBundleError.sending(error, operation: "take the bundle back", path: outbox.folder(of: id)) }
  }

  // MARK: Receiver and token

  private func receiver(of entry: OutboxEntry, given: ReceiverAddress?) throws -> ReceiverAddress {
    func refused(_ detail: String, _ hint: String) -> SupportBundleError {
      SupportBundleError(.sendingRequest, path: outbox.folder(of: entry.id), detail: detail, hint: hint)
    }
    if let given {
      guard given.withoutQuery != entry.endpoint else { return given }
      throw refused("the entry is meant for another receiver", "Send the bundle to the other one by itself.")
    }
    guard entry.isAddressWithheld else { return try ReceiverAddress(entry.endpoint) }
    throw refused("its address has a part that can be a secret, which is not kept", SupportBundleErrorKind.wholeAddress)
  }

  private func savedToken(of entry: OutboxEntry) throws -> AccessToken? {
    try entry.tokenFile?.path.map { try AccessToken(at: $0, in: outbox.fileSystem) }
  }

  private func over(_ entry: OutboxEntry) -> SupportBundleError {
    SupportBundleError(
      .entryOver, path: outbox.folder(of: entry.id),
      detail: "it was \(entry.state == .sent ? "sent" : "cancelled") already")
  }
}

/// The result of sending a bundle.
public struct SendingOutcome: Sendable {
  /// The receiver's receipt.
  public var receipt: DeliveryReceipt

  /// Whether the receiver already had the bundle.
  public var wasThere: Bool

  /// The quarantined stores with the receipt.
  public var quarantined: [String]

  /// The reason that a quarantined store lacks the receipt, if any.
  public var problem: SupportBundleError?
}

/// The retry options.
public struct SendingOptions: Sendable, Hashable {
  /// The tries without progress before leaving the bundle in the outbox.
  public var tries: Int

  /// Whether to retry without limit.
  public var waits: Bool

  /// The largest part in bytes, held in memory several times.
  public var partLimit: Int

  /// The seed of the pauses; random if nil.
  public var seed: UInt64?

  /// The longest pause unless ``waits``: five minutes.
  public static let longestPause = Duration.seconds(300)

  /// Creates options.
  public init(tries: Int = 6, waits: Bool = false, partLimit: Int = 8 << 20, seed: UInt64? = nil) {
    self.tries = max(1, tries)
    self.waits = waits
    self.partLimit = min(max(1, partLimit), UploadRequest.partLimit)
    self.seed = seed
  }
}

/// The size of the next part: small on slow connections, to repeat little and stop fast.
struct PartSize {
  private static let first = 1 << 20
  private static let least = 128 << 10

  private(set) var bytes: Int
  private let limit: Int

  init(limit: Int) {
    self.limit = limit
    bytes = min(Self.first, limit)
  }

  mutating func arrived(in span: Duration) {
    if span < .seconds(2) { bytes = min(bytes * 2, limit) }
    if span > .seconds(15) { shrink() }
  }

  mutating func shrink() { bytes = min(limit, max(bytes / 2, Self.least)) }
}

/// The progress of sending a bundle.
public struct SendingProgress: Sendable, Hashable {
  /// The current phase.
  public enum Phase: Sendable, Hashable {
    /// Asking for the receiver's state.
    case asking

    case sending

    /// Pausing after a failure with this code.
    case pausing(Duration, code: String)

    /// Asking for the receipt.
    case finishing
  }

  /// The current phase.
  public var phase: Phase

  /// The sent bytes.
  public var done: Int64

  /// The total bytes.
  public var total: Int64

  /// Creates a progress value.
  public init(phase: Phase, done: Int64, total: Int64) {
    self.phase = phase
    self.done = done
    self.total = total
  }
}

/// The sender's clock, replaceable in tests.
public struct SendingClock: Sendable {
  /// The current time in UTC.
  public var now: @Sendable () -> Timestamp

  /// The monotonic time.
  public var elapsed: @Sendable () -> Duration

  /// Pauses for a duration or until stopped.
  public var pause: @Sendable (_ span: Duration, _ isStopped: @Sendable () -> Bool) -> Void

  /// Creates a clock.
  public init(
    now: @escaping @Sendable () -> Timestamp, elapsed: @escaping @Sendable () -> Duration,
    pause: @escaping @Sendable (_ span: Duration, _ isStopped: @Sendable () -> Bool) -> Void
  ) {
    self.now = now
    self.elapsed = elapsed
    self.pause = pause
  }

  private static let start = ContinuousClock.now

  /// The system clock.
  public static let machine = SendingClock(
    now: Surroundings.machine.now, elapsed: { start.duration(to: .now) },
    pause: { span, isStopped in
      let end = ContinuousClock.now + span
      while ContinuousClock.now < end, !isStopped() {
        let rest = min(ContinuousClock.now.duration(to: end), .milliseconds(100))
        Thread.sleep(forTimeInterval: max(0, rest / .seconds(1)))
      }
    })
}

/// An entry locked for the lifetime of the value.
struct HeldEntry: ~Copyable {
  private(set) var entry: OutboxEntry
  private let lock: FolderLock
  private let outbox: Outbox

  /// - Throws: `outbox-entry-busy` if another process has the lock.
  init(_ id: String, of outbox: Outbox) throws {
    let lock = try Self.lock(id, of: outbox)
    let entry = try OutboxEntry(at: outbox.entryPath(of: id), id: id, in: outbox.fileSystem)
    self.lock = lock
    self.entry = entry
    self.outbox = outbox
  }

  /// Changes the entry on disk.
  mutating func update(_ change: (inout OutboxEntry) -> Void) throws {
    var changed = entry
    change(&changed)
    guard changed != entry else { return }
    changed.updated = outbox.surroundings.now().rfc3339
    try outbox.fileSystem.writeAtomically(
      try changed.json(), to: outbox.entryPath(of: entry.id), replacing: true, permissions: .ownerReadWrite)
    entry = changed
  }

  /// Waits briefly, as readers hold the lock for a moment.
  private static func lock(_ id: String, of outbox: Outbox) throws -> FolderLock {
    do throws(FileError) {
      return try FolderLock(outbox.folder(of: id), patience: 200, in: outbox.fileSystem)
    } catch {
      guard error.kind == .locked else { throw error }
      throw SupportBundleError(
        .entryBusy, operation: "work on the entry of the outbox", path: outbox.folder(of: id),
        detail: "another process is sending it")
    }
  }
}

/// The sender's secret token, never written by this module.
public struct AccessToken: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
  private let text: String

  /// Creates a token from text, trimming white space.
  ///
  /// - Throws: `send-request` unless 1 to 4096 characters of RFC 6750, section 2.1.
  public init(_ text: some StringProtocol) throws(SupportBundleError) {
    let word = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard (1...4096).contains(word.utf8.count),
      word.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-._~+/=".contains($0)) })
    else {
      throw SupportBundleError(
        .sendingRequest, operation: "read the token",
        detail: "it is empty, too long, or has characters that no token has",
        hint: "Give the token as the receiver gave it to you, and nothing else.")
    }
    self.text = word
  }

  /// Reads a token from a file.
  ///
  /// - Throws: as above, or a file error.
  public init(at path: FilePath, in fileSystem: FileSystem) throws(SupportBundleError) {
    do {
      try self.init(String(decoding: try fileSystem.contents(of: path, limit: 8 << 10), as: UTF8.self))
    } catch {
      var told = SupportBundleError.sending(error, operation: "read the token", path: path)
      told.path = path
      throw told
    }
  }

  var field: String { "Bearer \(text)" }

  /// Whether a text contains the token.
  func isSaid(in other: String) -> Bool { other.contains(text) }

  /// A text without the token.
  public var description: String { "a token" }

  /// A text without the token.
  public var debugDescription: String { description }
}
