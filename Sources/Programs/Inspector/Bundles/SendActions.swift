import HTTPServer
import Sending
import StoreCoordination

/// Sending bundles from the outbox of the home, and taking them back.
struct SendActions: Sendable {
  private let parts: InspectorParts
  private let bundles: BundleCatalogue

  init(_ parts: InspectorParts, _ bundles: BundleCatalogue) {
    self.parts = parts
    self.bundles = bundles
  }

  static let fields: [DocumentedRoute.Field] = [
    .init("sha256", "The SHA-256 of the bundle as it was shown; another one is not sent.", isRequired: true)
  ]

  func page(_ name: String) throws -> SendPage {
    let bundle = try bundles.bundle(name)
    return SendPage(bundle: bundle, preview: try bundles.preview(of: bundle), receiver: parts.receiver)
  }

  /// Puts a bundle into the outbox, and sends it.
  func send(_ name: String, _ form: FormData) throws -> ActionAnswer {
    let page = try page(name)
    if let obstacle = page.obstacle { throw obstacle.refusal }
    guard let receiver = page.receiver else { throw Refusal(.conflict, "there is no receiver to send it to") }
    guard form["sha256"] == page.preview.sha256 else {
      throw Refusal(.conflict, "the bundle is not the one any more that was shown; look at it again")
    }
    let entry = try parts.outbox.add(page.preview, to: receiver.address, tokenFile: receiver.tokenFile)
    return try start(entry, receiver, target: page.bundle.target)
  }

  /// Sends an entry of the outbox on.
  func retry(_ id: String) throws -> ActionAnswer {
    let entry = try self.entry(id)
    guard let receiver = parts.receiver, receiver.address.withoutQuery == entry.endpoint else {
      throw Refusal(.conflict, "this inspector was told of another receiver; use lazaret outbox retry")
    }
    return try start(entry, receiver, target: .to("bundles"))
  }

  /// Takes an entry of the outbox back.
  func cancel(_ id: String) throws -> ActionAnswer {
    let entry = try self.entry(id)
    let (parts, receiver) = (parts, parts.receiver)
    let job = try parts.work.start(.send, "Taking back \(printable(entry.name))", store: nil, target: .to("bundles")) {
      _ in
      let isOurs = receiver?.address.withoutQuery == entry.endpoint
      let outcome = try parts.sender.cancel(entry.id, to: isOurs ? receiver?.address : nil)
      return JobOutcome(
        outcome.isReceiverTold
          ? "It was taken back; the receiver drops what it had."
          : "It was taken back. The receiver could not be told; it drops an unfinished upload by itself.")
    }
    return .running(job)
  }

  private func entry(_ id: String) throws -> OutboxEntry {
    guard let entry = try parts.outbox.listing().entries.first(where: { $0.id == id }) else {
      throw Refusal(.notFound, "there is no such entry in the outbox")
    }
    guard !entry.isOver else { throw Refusal(.conflict, "nothing more happens to it") }
    return entry
  }

  private func start(
    _ entry: OutboxEntry, _ receiver: InspectorReceiver, target: RequestTarget
  ) throws -> ActionAnswer {
    let parts = parts
    let job = try parts.work.start(.send, "Sending \(printable(entry.name))", store: nil, target: target) { observer in
      let outcome = try parts.sender.send(entry.id, to: receiver.address) { progress in
        observer.report(
          Words.sending(progress.phase), progress.total > 0 ? Double(progress.done) / Double(progress.total) : nil)
      } isStopped: {
        observer.isCancelled
      }
      let receipt = "The receiver calls it \(outcome.receipt.id)."
      return JobOutcome(outcome.wasThere ? "The receiver had it already. \(receipt)" : "It is there. \(receipt)")
    }
    return .running(job)
  }
}
