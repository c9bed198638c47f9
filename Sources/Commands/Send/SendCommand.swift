import ArgumentParser
import Foundation
import ObjectStorage
import Platform
import SupportBundle

struct SendCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "send", abstract: "Sends a bundle to support, by way of the outbox.",
    usage: "lazaret send <bundle> --to <url> [--put] [--token-file <file>] [--home <dir>] [<options>]",
    discussion: """
      Shows what would be sent, with its SHA-256, and asks; what is sent is that file and no other. It goes in parts by the \
      tus protocol, so that a lost connection costs little, or in one piece by PUT. Until it is there it waits in \
      Outbox/ of \
      the home, and nothing that has arrived is sent again. The receiver's receipt is noted with the quarantined store.

      Only https is used, http to this machine alone; redirects to another host are not followed. The token is \
      not kept. Ctrl-C stops after the part that is on its way; go on with: lazaret outbox send
      """, examples: "lazaret send App.lazaret.tar.gz.age --to https://support.example.com/inbox \\",
    "  --token-file token --home Stores")

  @Argument(help: "The bundle that lazaret export wrote.") var bundle: PathArgument

  @Option(help: .text("The receiver's address.", "url")) var to: String

  @Flag(help: "Send it by PUT to that very address, in one piece.") var put = false

  @OptionGroup var token: TokenOptions
  @OptionGroup var home: HomeOptions

  @Flag(help: "Do not ask.") var yes = false

  @OptionGroup var persistence: PersistenceOptions

  @Flag(help: "Only put it into the outbox.") var noSend = false

  @Option(help: .text("How much the outbox may hold, such as 500MB or 4GiB; 2GiB if not given.", "size"))
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
    help: .text("The file with the token that the receiver gave you; LAZARET_TOKEN is read if not given.", "file"))
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

struct OutboxCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "outbox", abstract: "Lists, sends and takes back the bundles that wait to be sent.",
    discussion: """
      What lazaret send could not send at once waits in Outbox/ of the home. Nothing is sent from there by itself.
      """,
    subcommands: [
      OutboxListCommand.self, OutboxSendCommand.self, OutboxRetryCommand.self, OutboxCancelCommand.self,
      OutboxPruneCommand.self,
    ],
    defaultSubcommand: OutboxListCommand.self)
}

struct OutboxListCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "list", abstract: "Lists the bundles of the outbox, newest first.",
    discussion: """
      Those that were sent are listed for 90 days, with their receipts. Exits with 2 where an entry cannot be read.
      """, examples: "lazaret outbox list --home Stores")

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let home = try home.current().existing(to: "list the outbox")
    let listing = try Outbox(home: home.path).listing()
    try output.print(
      home.listed(["entries": listing.entries, "unreadable": listing.unreadable] as JSON.Object),
      text(listing, in: home))
    if !listing.unreadable.isEmpty { throw ExitStatus.doubtful }
  }

  private func text(_ listing: Outbox.Listing, in home: ChosenHome) -> String {
    guard !listing.entries.isEmpty || !listing.unreadable.isEmpty else {
      return "The outbox of the home is empty: \(home.words). \(ChosenHome.another)\n"
    }
    var table = TextTable(
      ["id", "state", "size", "there", "receiver", "receipt or reason"], numericColumns: [2, 3], shrinking: [4, 5])
    for entry in listing.entries {
      let share = entry.bytes > 0 ? Int(Double(entry.offset) / Double(entry.bytes) * 100) : 100
      var note = entry.receipt?.id ?? entry.lastError ?? ""
      if entry.state == .waiting, let next = entry.nextTry { note += " (not before \(next))" }
      table.append(
        entry.id, entry.state.rawValue, readableSize(entry.bytes), entry.state == .cancelled ? "" : "\(share) %",
        printable(entry.endpoint), printable(note))
    }
    var text = listing.entries.isEmpty ? "" : table.text(indent: "")
    for id in listing.unreadable { text += "\(printable(id)): it cannot be read\n" }
    return text + "\nHome: \(home.words)\n"
  }
}

/// `lazaret outbox send`: sends every due entry.
struct OutboxSendCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "send", abstract: "Sends what waits in the outbox, one bundle after another.",
    discussion: """
      What a receiver asked to have later is left until then, unless told to wait. Each bundle goes with the token of the \
      file that was named when it was put there. The token of LAZARET_TOKEN goes with those that have none, and only \
      where they are all for one receiver.
      """, examples: "lazaret outbox send --home Stores")

  @OptionGroup var home: HomeOptions
  @OptionGroup var persistence: PersistenceOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let home = try home.current().existing(to: "send what waits in the outbox")
    let outbox = Outbox(home: home.path)
    try outbox.settle()
    let all = try outbox.listing().entries.filter { $0.state == .waiting }.reversed()
    let now = Surroundings.machine.now()
    let due = all.filter { entry in persistence.wait || (entry.nextTry.flatMap { Timestamp($0) } ?? now) <= now }
    let token = try sharedToken(for: due)
    let progress = ProgressLine()
    Interruption.listen()
    let sender = Sender(of: outbox, over: CurlTransport(), options: persistence.options)
    let waiting = all.filter { !due.contains($0) }
    var (sent, failed): ([JSON.Object], [JSON.Object]) = ([], [])
    var isPassing = true
    for entry in due {
      do throws(SupportBundleError) {
        if let next = entry.nextTry.flatMap({ Timestamp($0) }) { wait(until: next, entry, progress) }
        let outcome = try sender.send(
          entry.id, as: entry.tokenFile == nil ? token : nil, progress: { progress.show($0) },
          isStopped: { Interruption.isRequested })
        progress.clear()
        let entry = try outbox.entry(entry.id)
        if !output.json { outcome.tell() }
        sent.append(outcome.payload(of: entry))
      } catch {
        progress.clear()
        if error.kind == .cancelled { throw error }
        isPassing = isPassing && error.isEnvironmental
        if !output.json { Terminal.standardError.write("lazaret: \(entry.id): \(error.told)\n") }
        failed.append(["id": entry.id, "error": error.json])
      }
    }
    if output.json {
      try Terminal.standardOutput.write(json: ["sent": sent, "failed": failed, "waiting": waiting] as JSON.Object)
    } else {
      for entry in waiting { Terminal.standardOutput.write("\(entry.id) waits until \(entry.nextTry ?? "later").\n") }
      if all.isEmpty { Terminal.standardOutput.write("Nothing waits in the outbox of the home: \(home.words)\n") }
    }
    if !failed.isEmpty { throw isPassing ? ExitStatus.unavailable : ExitStatus.failed }
  }

  private func wait(until next: Timestamp, _ entry: OutboxEntry, _ progress: ProgressLine) {
    let seconds = next.secondsSince1970 - Surroundings.machine.now().secondsSince1970
    guard seconds > 0 else { return }
    progress.show(
      SendingProgress(
        phase: .pausing(.seconds(seconds), code: entry.lastError ?? "waiting"), done: entry.offset, total: entry.bytes))
    SendingClock.machine.pause(.seconds(seconds)) { Interruption.isRequested }
  }

  private func sharedToken(for entries: [OutboxEntry]) throws -> AccessToken? {
    guard let token = try TokenOptions.surroundings() else { return nil }
    let receivers = Set(try entries.filter { $0.tokenFile == nil }.map { try ReceiverAddress($0.endpoint).origin })
    guard receivers.count <= 1 else {
      throw SupportBundleError(
        .sendingRequest, operation: "send what waits in the outbox",
        detail: "\(TokenOptions.variable) would go to \(receivers.count) receivers, and it belongs to only one",
        hint: "Send them one by one: lazaret outbox retry ID --token-file FILE")
    }
    return token
  }
}

extension TokenOptions {
  /// A named file comes first, then the one that the entry remembers, then the environment.
  fileprivate func token(besides entry: OutboxEntry) throws(SupportBundleError) -> AccessToken? {
    tokenFile == nil && entry.tokenFile != nil ? nil : try token()
  }
}

struct OutboxRetryCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "retry", abstract: "Sends one bundle of the outbox now, whatever ended its last try.",
    usage: "lazaret outbox retry <id> [--to <url>] [--token-file <file>] [--wait] [<options>]")

  @Argument(help: "The entry's name, or how it or its SHA-256 begins.") var id: String

  @Option(help: .text("The whole address, where it has a secret part behind its path, which is not kept.", "url"))
  var to: String?

  @OptionGroup var token: TokenOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var persistence: PersistenceOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let address = try to.map { text in try CommandLineSlip.telling { try ReceiverAddress(text) } }
    let home = try home.current().existing(to: "send what waits in the outbox")
    let outbox = Outbox(home: home.path)
    try outbox.settle()
    let entry = try home.sending { try outbox.entry(id) }
    let given = try token.token(besides: entry)
    let sender = Sender(of: outbox, over: CurlTransport(), options: persistence.options)
    let outcome = try home.sending { try sender.sendShowing(entry.id, as: given, to: address) }
    try output.tell(outbox.entry(entry.id), outcome)
  }
}

struct OutboxCancelCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "cancel", abstract: "Takes a bundle back that is not sent yet.",
    usage: "lazaret outbox cancel <id> [--token-file <file>] [--home <dir>] [<options>]",
    discussion: """
      The receiver is told to drop what it has of it; one that cannot be reached drops it in its own time. The bundle \
      in the outbox is deleted, the file that it was made from stays.
      """)

  @Argument(help: "The entry's name, or how it or its SHA-256 begins.") var id: String

  @OptionGroup var token: TokenOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let home = try home.current().existing(to: "cancel the entry of the outbox")
    let outbox = Outbox(home: home.path)
    let entry = try home.sending { try outbox.entry(id) }
    let given = try token.token(besides: entry)
    let sender = Sender(of: outbox, over: CurlTransport(idleSeconds: 20))
    let (cancelled, isReceiverTold) = try sender.cancel(entry.id, as: given)
    let rest = isReceiverTold ? "" : " The receiver could not be told; it drops what it has in its own time."
    try output.print(
      ["entry": cancelled, "receiverTold": isReceiverTold] as JSON.Object, "\(cancelled.id) was taken back.\(rest)\n")
  }
}

struct OutboxPruneCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "prune", abstract: "Removes what was sent or taken back more than 90 days ago.",
    discussion: """
      Also ends what killed runs left. Receipts that were noted with quarantined stores stay there. What waits, or was \
      refused, stays until it is sent or taken back.
      """, examples: "lazaret outbox prune --home Stores")

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let removed = try Outbox(home: try home.current().existing(to: "prune the outbox").path).settle()
    try output.print(["removed": removed], "\(counted(Int64(removed), "entry", "entries")) removed.\n")
  }
}
