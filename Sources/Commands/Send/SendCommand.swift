import ArgumentParser
import Foundation
import ObjectStorage
import Platform
import SupportBundle

struct SendCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "send", abstract: "Sends a bundle to support, by way of the outbox.",
    usage: "lazaret send <bundle> --to <url> [--put] [--token-file <file>] [--home <dir>] [<options>]",
    discussion: """
      Shows what would be sent, with its SHA-256, and asks; what is sent is that file and no other. It goes in parts by the \
      tus protocol, so that a lost connection costs little, or in one piece by PUT. Until it is there it waits in \
      Outbox/ of \
      the home, and nothing that has arrived is sent again. The receiver's receipt is noted with the quarantined store.

      Only https is used, http to this machine alone; redirects to another host are not followed. The token is \
      not kept. Ctrl-C stops after the part that is on its way; go on with: lazaret outbox send

      EXAMPLE
        lazaret send App.lazaret.tar.gz.age --to https://support.example.com/inbox \\
          --token-file token --home Stores

      \(ExitStatus.help)
      """)

  @Argument(help: "The bundle that lazaret export wrote.")
  var bundle: PathArgument

  @Option(help: ArgumentHelp("The receiver's address.", valueName: "url"))
  var to: String

  @Flag(help: "Send it by PUT to that very address, in one piece.")
  var put = false

  @OptionGroup var token: TokenOptions
  @OptionGroup var home: HomeOptions

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var persistence: PersistenceOptions

  @Flag(help: "Only put it into the outbox.")
  var noSend = false

  @Option(
    help: ArgumentHelp(
      "How much the outbox may hold, such as 500MB or 4GiB; 2GiB if not given.", valueName: "size"))
  var outboxLimit: ByteCount?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard !noSend || !persistence.wait else { throw ValidationError("--no-send and --wait contradict each other.") }
  }

  func perform() throws {
    let receiver = try CommandLineSlip.telling { try ReceiverAddress(to) }
    let token = try token.token()
    let home = home.current()
    let outbox = Outbox(home: home.path, limit: outboxLimit?.bytes ?? Outbox.usualLimit)
    let line = ProgressLine()
    let preview = try BundlePreview(of: bundle.path, home: home.path) { line.show("Summing up", $0, of: $1, .bytes) }
    line.clear()
    output.show(preview, to: receiver)
    let method: OutboxEntry.Method = put ? .put : .tus
    if try outbox.sent(preview, to: receiver, by: method) == nil, !yes {
      try Confirmation.require(
        noSend ? "Put it into the outbox?" : "Send it?", undone: noSend ? "put into it" : "sent", json: output.json,
        or: CommandError(
          .notConfirmed, operation: "send the bundle", path: bundle.path,
          detail: "it was not confirmed, and nothing was sent", hint: "Add --yes to send it without being asked."))
    }
    let entry = try outbox.add(preview, to: receiver, by: method, tokenFile: self.token.tokenFile?.path)
    guard !noSend else { return try output.tell(entry, in: home) }
    try outbox.settle()
    let sender = Sender(of: outbox, over: CurlTransport(), options: persistence.options)
    let outcome = try home.sending { try sender.sendShowing(entry.id, as: token, to: receiver) }
    try output.tell(outbox.entry(entry.id), outcome)
  }
}

struct TokenOptions: ParsableArguments {
  static let variable = "LAZARET_TOKEN"

  @Option(
    help: ArgumentHelp(
      "The file with the token that the receiver gave you; LAZARET_TOKEN is read if not given.", valueName: "file"))
  var tokenFile: PathArgument?

  func token() throws(SupportBundleError) -> AccessToken? {
    if let tokenFile { return try AccessToken(at: tokenFile.path, in: FileSystem()) }
    return try Self.surroundings()
  }

  static func surroundings() throws(SupportBundleError) -> AccessToken? {
    guard let text = ProcessInfo.processInfo.environment[variable], !text.isEmpty else { return nil }
    return try AccessToken(text)
  }
}

struct PersistenceOptions: ParsableArguments {
  @Flag(help: "Try for as long as it takes, instead of leaving it in the outbox after a few tries.")
  var wait = false

  var options: SendingOptions { SendingOptions(waits: wait) }
}

extension OutputOptions {
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
    try print(
      ["entry": entry],
      entry.receipt.map { "It was sent already, on \($0.date): receipt \($0.id).\n" }
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
  ) throws(SupportBundleError) -> SendingOutcome {
    let progress = ProgressLine()
    defer { progress.clear() }
    Interruption.listen()
    return try send(
      id, as: token, to: address, progress: { progress.show($0) }, isStopped: { Interruption.isRequested })
  }
}
