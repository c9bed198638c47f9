import ArgumentParser
import ObjectStorage
import Platform
import SupportBundle

struct OutboxCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "outbox", abstract: "Lists, sends and takes back the bundles that wait to be sent.",
    discussion: """
      What lazaret send could not send at once waits in Outbox/ of the home. Nothing is sent from there by itself.

      \(ExitStatus.help)
      """,
    subcommands: [
      OutboxListCommand.self, OutboxSendCommand.self, OutboxRetryCommand.self, OutboxCancelCommand.self,
      OutboxPruneCommand.self,
    ],
    defaultSubcommand: OutboxListCommand.self)
}

struct OutboxListCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the bundles of the outbox, newest first.",
    discussion: """
      Those that were sent are listed for 90 days, with their receipts. Exits with 2 where an entry cannot be read.

      EXAMPLE
        lazaret outbox list --home Stores

      \(ExitStatus.help)
      """)

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
      table.append([
        entry.id, entry.state.rawValue, readableSize(entry.bytes), entry.state == .cancelled ? "" : "\(share) %",
        printable(entry.endpoint), printable(note),
      ])
    }
    var text = listing.entries.isEmpty ? "" : table.text(indent: "")
    for id in listing.unreadable { text += "\(printable(id)): it cannot be read\n" }
    return text + "\nHome: \(home.words)\n"
  }
}

/// `lazaret outbox send`: sends every due entry.
struct OutboxSendCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "send", abstract: "Sends what waits in the outbox, one bundle after another.",
    discussion: """
      What a receiver asked to have later is left until then, unless told to wait. Each bundle goes with the token of the \
      file that was named when it was put there. The token of LAZARET_TOKEN goes with those that have none, and only \
      where they are all for one receiver.

      EXAMPLE
        lazaret outbox send --home Stores

      \(ExitStatus.help)
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var persistence: PersistenceOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let home = try home.current().existing(to: "send what waits in the outbox")
    let outbox = Outbox(home: home.path)
    try outbox.settle()
    let all = try outbox.listing().entries.filter { $0.state == .waiting }.reversed()
    let now = Surroundings.machine.now()
    let due = all.filter { entry in
      persistence.wait || (entry.nextTry.flatMap { Timestamp($0) } ?? now) <= now
    }
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
      for entry in waiting {
        Terminal.standardOutput.write("\(entry.id) waits until \(entry.nextTry ?? "later").\n")
      }
      if all.isEmpty { Terminal.standardOutput.write("Nothing waits in the outbox of the home: \(home.words)\n") }
    }
    if !failed.isEmpty { throw isPassing ? ExitStatus.unavailable : ExitStatus.failed }
  }

  private func wait(until next: Timestamp, _ entry: OutboxEntry, _ progress: ProgressLine) {
    let seconds = next.secondsSince1970 - Surroundings.machine.now().secondsSince1970
    guard seconds > 0 else { return }
    progress.show(
      SendingProgress(
        phase: .pausing(.seconds(seconds), code: entry.lastError ?? "waiting"), done: entry.offset,
        total: entry.bytes))
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
    commandName: "retry", abstract: "Sends one bundle of the outbox now, whatever ended its last try.",
    usage: "lazaret outbox retry <id> [--to <url>] [--token-file <file>] [--wait] [<options>]",
    discussion: ExitStatus.help)

  @Argument(help: "The entry's name, or how it or its SHA-256 begins.")
  var id: String

  @Option(
    help: ArgumentHelp(
      "The whole address, where it has a secret part behind its path, which is not kept.", valueName: "url"))
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
    commandName: "cancel", abstract: "Takes a bundle back that is not sent yet.",
    usage: "lazaret outbox cancel <id> [--token-file <file>] [--home <dir>] [<options>]",
    discussion: """
      The receiver is told to drop what it has of it; one that cannot be reached drops it in its own time. The bundle \
      in the outbox is deleted, the file that it was made from stays.

      \(ExitStatus.help)
      """)

  @Argument(help: "The entry's name, or how it or its SHA-256 begins.")
  var id: String

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
    commandName: "prune", abstract: "Removes what was sent or taken back more than 90 days ago.",
    discussion: """
      Also ends what killed runs left. Receipts that were noted with quarantined stores stay there. What waits, or was \
      refused, stays until it is sent or taken back.

      EXAMPLE
        lazaret outbox prune --home Stores

      \(ExitStatus.help)
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let removed = try Outbox(home: try home.current().existing(to: "prune the outbox").path).settle()
    try output.print(["removed": removed], "\(counted(Int64(removed), "entry", "entries")) removed.\n")
  }
}
