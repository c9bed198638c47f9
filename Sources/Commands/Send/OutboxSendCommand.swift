import ArgumentParser
import Foundation
import ObjectStorage
import Platform
import SupportBundle

/// `lazaret outbox send`: sends every due entry.
struct OutboxSendCommand: ParsableCommand {
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

  func run() throws {
    try report(json: output.json) {
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
        do throws(SendingError) {
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
      throw SendingError(
        .request, operation: "send what waits in the outbox",
        detail: "\(TokenOptions.variable) would go to \(receivers.count) receivers, and it belongs to only one",
        hint: "Send them one by one: lazaret outbox retry ID --token-file FILE")
    }
    return token
  }
}

struct TokenOptions: ParsableArguments {
  static let variable = "LAZARET_TOKEN"

  @Option(
    help: ArgumentHelp(
      "The file with the token that the receiver gave you; LAZARET_TOKEN is read if not given.", valueName: "file"))
  var tokenFile: PathArgument?

  func token() throws(SendingError) -> AccessToken? {
    if let tokenFile { return try AccessToken(at: tokenFile.path, in: FileSystem()) }
    return try Self.surroundings()
  }

  static func surroundings() throws(SendingError) -> AccessToken? {
    guard let text = ProcessInfo.processInfo.environment[variable], !text.isEmpty else { return nil }
    return try AccessToken(text)
  }
}

struct PersistenceOptions: ParsableArguments {
  @Flag(help: "Try for as long as it takes, instead of leaving it in the outbox after a few tries.")
  var wait = false

  var options: SendingOptions { SendingOptions(waits: wait) }
}
