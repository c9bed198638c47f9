import ArgumentParser
import Platform
import SupportBundle

struct OutboxListCommand: ParsableCommand {
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

  func run() throws {
    try report(json: output.json) {
      let home = try home.current().existing(to: "list the outbox")
      let listing = try Outbox(home: home.path).listing()
      if output.json {
        let payload: JSON.Object = ["entries": listing.entries, "unreadable": listing.unreadable]
        try Terminal.standardOutput.write(json: home.listed(payload))
      } else {
        write(listing, in: home)
      }
      if !listing.unreadable.isEmpty { throw ExitStatus.doubtful }
    }
  }

  private func write(_ listing: Outbox.Listing, in home: ChosenHome) {
    guard !listing.entries.isEmpty || !listing.unreadable.isEmpty else {
      Terminal.standardOutput.write("The outbox of the home is empty: \(home.words). \(ChosenHome.another)\n")
      return
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
    text += "\nHome: \(home.words)\n"
    Terminal.standardOutput.write(text)
  }
}
