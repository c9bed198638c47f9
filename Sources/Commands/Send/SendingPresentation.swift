import Platform
import SupportBundle

struct SendingPresentation {
  let json: Bool

  /// Shows the preview on standard error before confirmation; standard output has only the result.
  func show(_ preview: BundlePreview, to receiver: ReceiverAddress) {
    guard !json else { return }
    var text = """
      \(preview.name)
        size      \(readableSize(preview.bytes)) (\(grouped(preview.bytes)) bytes)
        SHA-256   \(preview.sha256)
        receiver  \(receiver.withoutQuery)
        content   \(preview.level.map { "\($0.rawValue): \($0.words)" } ?? "not known here")
        \(preview.isEncrypted ? "encrypted: only the holders of its keys can open it" : "not encrypted")

      """
    if preview.showsRecords {
      text +=
        "  WARNING: it holds records as they are, for all who have the file to read.\n"
        + "  To encrypt it, export it again with --encrypt-to.\n"
    }
    Terminal.standardError.write(text)
  }

  func tell(_ entry: OutboxEntry, in home: ChosenHome) throws {
    Terminal.standardOutput.write(
      try json
        ? JSON.shown(["entry": entry])
        : entry.receipt.map { "It was sent already, on \($0.date): receipt \($0.id).\n" }
          ?? "\(entry.id) waits in the outbox. Send it with: lazaret outbox send\(home.option)\n")
  }

  func tell(_ entry: OutboxEntry, _ outcome: SendingOutcome) throws {
    if json {
      try Terminal.standardOutput.write(json: outcome.payload(of: entry))
      outcome.tellProblem()
    } else {
      outcome.tell()
    }
  }
}

extension SendingOutcome {
  func payload(of entry: OutboxEntry) -> JSON.Object {
    ["entry": entry, "receipt": receipt, "alreadyThere": wasThere, "quarantined": quarantined]
  }

  func tell() {
    var text =
      wasThere
      ? "\(receipt.receiver) has had it since \(receipt.date); nothing was sent.\n"
      : "Sent to \(receipt.receiver) on \(receipt.date).\n"
    text +=
      "  receipt   \(receipt.id)\(receipt.isReceivers ? "" : " (the receiver wrote none; this is its name there)")\n"
    text += "  SHA-256   \(receipt.sha256)\n"
    for id in quarantined { text += "  noted with the quarantined store \(id)\n" }
    Terminal.standardOutput.write(text)
    tellProblem()
  }

  fileprivate func tellProblem() {
    guard let problem else { return }
    Terminal.standardError.write("lazaret: it was sent, but: \(problem.told)\n")
  }
}

extension Sender {
  /// Sends an entry with a progress line, until Ctrl-C.
  func sendShowing(
    _ id: String, as token: AccessToken?, to address: ReceiverAddress?
  ) throws(SendingError) -> SendingOutcome {
    let progress = ProgressLine()
    defer { progress.clear() }
    Interruption.listen()
    return try send(
      id, as: token, to: address, progress: { progress.show($0) }, isStopped: { Interruption.isRequested })
  }
}
