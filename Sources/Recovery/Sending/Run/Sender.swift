public import StoreFiles
internal import SystemPackage
internal import TusProtocol

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
