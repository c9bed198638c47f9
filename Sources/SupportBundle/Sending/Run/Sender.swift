internal import Foundation
public import Platform
public import SystemPackage

/// Sends what lies in an outbox.
public struct Sender: Sendable {
  private let outbox: Outbox
  private let transport: any UploadTransport
  private let clock: SendingClock
  private let options: SendingOptions

  /// A sender; one transport, with its connections, is enough for all bundles of a process.
  public init(
    of outbox: Outbox, over transport: any UploadTransport, options: SendingOptions = SendingOptions(),
    clock: SendingClock = .machine
  ) {
    self.outbox = outbox
    self.transport = transport
    self.options = options
    self.clock = clock
  }

  /// Sends an entry, whether its time has come or not, until it is there, makes no sense, or patience is over.
  ///
  /// What has been sent before is not sent again: the receipt is that of the first time. Whatever ends it, the entry says what has become
  /// of it, and it can be gone on with where it stopped.
  ///
  /// - Parameters:
  ///   - token: what the receiver knows the sender by; the file that the entry remembers is read if nil.
  ///   - address: where it goes, where the entry holds only a part of that.
  ///   - progress: called as bytes go out.
  ///   - isStopped: asked between parts, and while it pauses.
  /// - Throws: ``SendingError``; environmental where the entry waits for another time, `cancelled` where it was stopped.
  public func send(
    _ id: String, as token: AccessToken? = nil, to address: ReceiverAddress? = nil,
    progress: @escaping @Sendable (SendingProgress) -> Void = { _ in },
    isStopped: @escaping @Sendable () -> Bool = { false }
  ) throws(SendingError) -> SendingOutcome {
    do {
      var held = try HeldEntry(id, of: outbox)
      if let receipt = held.entry.receipt, held.entry.state == .sent {
        return finish(&held, SendingOutcome(receipt: receipt, wasThere: true, quarantined: []))
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
        receiver: receiver, bundlePath: outbox.bundlePath(of: id), fileSystem: outbox.fileSystem, clock: clock,
        options: options, isStopped: isStopped, progress: progress, size: PartSize(limit: options.partLimit))
      return try carryOut(&run)
    } catch {
      throw SendingError.told(error, operation: "send the bundle", path: outbox.folder(of: id))
    }
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
      let outcome = SendingOutcome(receipt: receipt, wasThere: !run.hasSent, quarantined: [])
      return finish(&run.held, outcome)
    } catch {
      let told = SendingError.told(error, operation: "send the bundle", path: run.bundlePath)
      // The first error is the one that counts; an entry that still says "sending" waits as soon as no process holds it.
      try? run.held.update { entry in
        entry.state = told.isEnvironmental || told.kind == .cancelled || told.kind == .file ? .waiting : .failed
        if told.kind != .cancelled { entry.lastError = told.code }
        if entry.state == .failed { entry.nextTry = nil }
      }
      throw told
    }
  }

  /// Notes the receipt and lets the bundle go; what keeps it from that is told, and tried again another time.
  private func finish(_ held: inout HeldEntry, _ outcome: SendingOutcome) -> SendingOutcome {
    var outcome = outcome
    do {
      outcome.quarantined = try outbox.finish(&held)
    } catch {
      outcome.problem = SendingError.told(
        error, operation: "note the receipt", path: outbox.folder(of: held.entry.id))
    }
    return outcome
  }

  /// Takes an entry back: the receiver is told to drop what it has, and the bundle goes.
  ///
  /// - Returns: the entry, and whether the receiver was told; where it could not be reached it drops the upload when that expires.
  public func cancel(
    _ id: String, as token: AccessToken? = nil, to address: ReceiverAddress? = nil
  ) throws(SendingError) -> (entry: OutboxEntry, isReceiverTold: Bool) {
    do {
      var held = try HeldEntry(id, of: outbox)
      guard held.entry.state != .sent else { throw over(held.entry) }
      let upload = held.entry.upload
      try held.update { entry in
        entry.state = .cancelled
        entry.nextTry = nil
      }
      var isReceiverTold = upload == nil
      if upload != nil, let receiver = try? receiver(of: held.entry, given: address) {
        // Cancelled is cancelled, whether there is a token, a network and a receiver that listens, or not.
        let token = token ?? (try? savedToken(of: held.entry))
        let requester = Requester(transport: transport, receiver: receiver, token: token, clock: clock)
        if let text = upload, let target = receiver.resolving(text),
          let response = try? requester.ask(.delete, target, fields: [TusField.resumable: TusVersion.current])
        {
          isReceiverTold = [200, 202, 204, 404, 410].contains(response.status)
        }
      }
      try held.update { $0.upload = nil }
      _ = try outbox.finish(&held)
      return (held.entry, isReceiverTold)
    } catch {
      throw SendingError.told(error, operation: "take the bundle back", path: outbox.folder(of: id))
    }
  }

  // MARK: Receiver and token

  private func receiver(of entry: OutboxEntry, given: ReceiverAddress?) throws -> ReceiverAddress {
    if let given {
      guard given.withoutQuery == entry.endpoint else {
        throw SendingError(
          .request, operation: "send the bundle", path: outbox.folder(of: entry.id),
          detail: "the entry is meant for another receiver", hint: "Send the bundle to the other one by itself.")
      }
      return given
    }
    guard !entry.isAddressWithheld else {
      throw SendingError(
        .request, operation: "send the bundle", path: outbox.folder(of: entry.id),
        detail: "its address has a part that can be a secret, which is not kept",
        hint: "Give the whole address with --to.")
    }
    return try ReceiverAddress(entry.endpoint)
  }

  private func savedToken(of entry: OutboxEntry) throws -> AccessToken? {
    try entry.tokenFile?.path.map { try AccessToken(at: $0, in: outbox.fileSystem) }
  }

  private func over(_ entry: OutboxEntry) -> SendingError {
    SendingError(
      .over, operation: "send the bundle", path: outbox.folder(of: entry.id),
      detail: "it was \(entry.state == .sent ? "sent" : "cancelled") already")
  }
}

/// What carries requests to a receiver: the network, or a test.
///
/// One request at a time; nothing is retried, and no redirection is followed here.
public protocol UploadTransport: Sendable {
  /// Sends a request and waits for its answer.
  ///
  /// - Parameter progress: called with the bytes of the body that have gone out, as far as that is known.
  /// - Throws: ``TransportError`` where no answer came.
  func send(
    _ request: UploadRequest, progress: @escaping @Sendable (Int64) -> Void
  ) throws(TransportError) -> UploadResponse
}

/// What came of sending a bundle.
public struct SendingOutcome: Sendable {
  /// The receiver's receipt.
  public var receipt: DeliveryReceipt

  /// Whether the receiver had the bundle before, so that nothing was sent.
  public var wasThere: Bool

  /// The names of the quarantined stores whose receipts say so now.
  public var quarantined: [String]

  /// What kept the receipt from being noted with a quarantined store; nil where nothing did.
  public var problem: SendingError?
}

/// How persistently a bundle is sent.
public struct SendingOptions: Sendable, Hashable {
  /// How often it is tried without a byte of progress before it is left in the outbox.
  public var tries: Int

  /// Whether it is tried for as long as it takes.
  public var waits: Bool

  /// The most bytes of a part.
  ///
  /// A part is held in memory several times over on its way to the connection.
  public var partLimit: Int

  /// What the pauses between tries are drawn from; at random if nil.
  public var seed: UInt64?

  /// The longest pause that is waited for unless it `waits`: five minutes.
  public static let longestPause = Duration.seconds(300)

  /// Options.
  public init(tries: Int = 6, waits: Bool = false, partLimit: Int = 8 << 20, seed: UInt64? = nil) {
    self.tries = max(1, tries)
    self.waits = waits
    self.partLimit = min(max(1, partLimit), UploadRequest.partLimit)
    self.seed = seed
  }
}

/// How many bytes go into the next part: few on a slow or broken line, so that little is sent twice and stopping takes no time.
struct PartSize {
  private static let first = 1 << 20
  private static let least = 128 << 10

  private(set) var bytes: Int
  private let limit: Int

  init(limit: Int) {
    self.limit = limit
    bytes = min(Self.first, limit)
  }

  /// A part of the size arrived in that time.
  mutating func arrived(in span: Duration) {
    if span < .seconds(2) { bytes = min(bytes * 2, limit) }
    if span > .seconds(15) { shrink() }
  }

  /// A part did not arrive.
  mutating func failed() { shrink() }

  private mutating func shrink() { bytes = min(limit, max(bytes / 2, Self.least)) }
}

/// How far the sending of a bundle is.
public struct SendingProgress: Sendable, Hashable {
  /// What is being done.
  public enum Phase: Sendable, Hashable {
    /// The receiver is asked what it has already.
    case asking

    case sending

    /// A try failed, for the reason of that code, and the next is made after that span.
    case pausing(Duration, code: String)

    /// Everything is there; the receipt is asked for.
    case finishing
  }

  /// What is being done.
  public var phase: Phase

  /// How many bytes have gone out.
  public var done: Int64

  /// How many there are in all.
  public var total: Int64

  /// A state of things.
  public init(phase: Phase, done: Int64, total: Int64) {
    self.phase = phase
    self.done = done
    self.total = total
  }
}

/// The time as the sender sees it, so that tests take none.
public struct SendingClock: Sendable {
  /// The moment in UTC.
  public var now: @Sendable () -> Timestamp

  /// A span that only grows, to measure by.
  public var elapsed: @Sendable () -> Duration

  /// Lets time pass; ends early where it is asked to stop.
  public var pause: @Sendable (_ span: Duration, _ isStopped: @Sendable () -> Bool) -> Void

  /// A clock.
  public init(
    now: @escaping @Sendable () -> Timestamp, elapsed: @escaping @Sendable () -> Duration,
    pause: @escaping @Sendable (_ span: Duration, _ isStopped: @Sendable () -> Bool) -> Void
  ) {
    self.now = now
    self.elapsed = elapsed
    self.pause = pause
  }

  private static let start = ContinuousClock.now

  /// The machine's own.
  public static let machine = SendingClock(
    now: Surroundings.machine.now,
    elapsed: { start.duration(to: .now) },
    pause: { span, isStopped in
      let end = ContinuousClock.now + span
      while ContinuousClock.now < end, !isStopped() {
        let rest = min(ContinuousClock.now.duration(to: end), .milliseconds(100))
        Thread.sleep(forTimeInterval: max(0, rest / .seconds(1)))
      }
    })
}

/// An entry that this process alone works on, for as long as this value lives.
struct HeldEntry: ~Copyable {
  private(set) var entry: OutboxEntry
  private let lock: FolderLock
  private let outbox: Outbox

  /// Takes the lock of an entry, and reads it as it is then.
  ///
  /// - Throws: `outbox-entry-busy` where another process works on it.
  init(_ id: String, of outbox: Outbox) throws {
    let lock = try Self.lock(id, of: outbox)
    let entry = try OutboxEntry(at: outbox.entryPath(of: id), id: id, in: outbox.fileSystem)
    self.lock = lock
    self.entry = entry
    self.outbox = outbox
  }

  /// Changes the entry; it is on the disk when this returns.
  mutating func update(_ change: (inout OutboxEntry) -> Void) throws {
    var changed = entry
    change(&changed)
    guard changed != entry else { return }
    changed.updated = outbox.surroundings.now().rfc3339
    try outbox.fileSystem.writeAtomically(
      try changed.json(), to: outbox.entryPath(of: entry.id), replacing: true, permissions: .ownerReadWrite)
    entry = changed
  }

  /// Waits a moment: a process that only looks, or settles, has the lock for no longer.
  private static func lock(_ id: String, of outbox: Outbox) throws -> FolderLock {
    do throws(FileError) {
      return try FolderLock(outbox.folder(of: id), patience: 200, in: outbox.fileSystem)
    } catch {
      guard error.kind == .locked else { throw error }
      throw SendingError(
        .busy, operation: "work on the entry of the outbox", path: outbox.folder(of: id),
        detail: "another process is sending it")
    }
  }
}

/// The secret word by which a receiver knows the sender; never written anywhere by this module.
public struct AccessToken: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
  private let text: String

  /// A token as it was given, without white space around it.
  ///
  /// - Throws: `send-request` unless it is a word of 1 to 4096 characters as RFC 6750, section 2.1, allows them.
  public init(_ text: some StringProtocol) throws(SendingError) {
    let word = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard (1...4096).contains(word.utf8.count), word.utf8.allSatisfy(Self.isAllowed) else {
      throw SendingError(
        .request, operation: "read the token", detail: "it is empty, too long, or has characters that no token has",
        hint: "Give the token as the receiver gave it to you, and nothing else.")
    }
    self.text = word
  }

  /// The token in a file.
  ///
  /// - Throws: the same, or what the file system says.
  public init(at path: FilePath, in fileSystem: FileSystem) throws(SendingError) {
    do {
      try self.init(String(decoding: try fileSystem.contents(of: path, limit: 8 << 10), as: UTF8.self))
    } catch {
      var told = SendingError.told(error, operation: "read the token", path: path)
      told.path = path
      throw told
    }
  }

  /// The value of `Authorization`.
  var field: String { "Bearer \(text)" }

  /// Whether a text gives the token away.
  func isSaid(in other: String) -> Bool { other.contains(text) }

  /// Never the token itself.
  public var description: String { "a token" }

  /// Never the token itself.
  public var debugDescription: String { description }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-._~+/=".utf8.contains(byte)
    }
  }
}
