import ArgumentParser
import Lazaret
import Platform
import SystemPackage

struct QuarantineListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists quarantined stores, newest first.",
    usage: "lazaret quarantine list [<place>] [--home <dir>] [<options>]",
    discussion: """
      Without a place, lists what the home's catalogue knows and what lies in Incompatible/ of the home; with a store or a \
      folder, what lies in Incompatible/ beside or in it. One whose files are missing is listed by its receipt. Of \
      the others it compares the sizes with those in the receipt, and no content. What is left of released stores is \
      named at the end.

      EXAMPLE
        lazaret quarantine list --home Stores

      \(ExitStatus.help)
      """)

  @Argument(help: "A store, or a folder with stores.")
  var place: PathArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let home = try place.map { try self.home.of(place: $0.path) } ?? self.home.current()
      let quarantines = Quarantines(home: try home.existing(to: "list the quarantined stores").path)
      let stores =
        try place.map { try quarantines.stores(at: $0.path, includingMissing: true) }
        ?? quarantines.stores(includingMissing: true)
      let released = try quarantines.released(at: place?.path)
      let checks = try stores.map { try quarantines.check(evidenceOf: $0, .size) }
      // The store may be gone, but not the folder of its quarantine.
      if let path = place?.path, stores.isEmpty, released.isEmpty, try FileSystem().status(of: path) == nil {
        throw FileError(.notFound, operation: "list the quarantined stores", path: path)
      }
      if output.json {
        let payloads = try zip(stores, checks).map { try $0.payload(in: quarantines, $1) }
        try Terminal.standardOutput.write(
          json: home.listed(["stores": payloads, "released": released.map { Self.payload($0.store, $0.rest) }]))
      } else if stores.isEmpty {
        defer { Self.tell(released, home) }
        Terminal.standardOutput.write(
          place.map { "No store is in quarantine beside or in \(printable($0.path.string)).\n" }
            ?? "No store is in quarantine in the home: \(home.words). \(ChosenHome.another)\n")
      } else {
        var table = TextTable(
          ["id", "came from", "size", "salvage", "why"], numericColumns: [2], shrinking: [1], wrapsLast: true)
        for store in stores {
          table.append([
            store.id, store.receipt.map { printable($0.originalPath.text) } ?? "?",
            store.receipt.map { readableSize($0.totalBytes) } ?? "?",
            store.receipt?.salvage?.word ?? "–",
            store.receipt?.reason.word ?? "its receipt cannot be read",
          ])
        }
        Terminal.standardOutput.write(table.text(indent: "") + (place == nil ? "\nHome: \(home.words)\n" : ""))
        for (store, check) in zip(stores, checks) {
          guard let check, let hint = check.hint(on: store) else { continue }
          Terminal.standardOutput.write("\n\(store.id): \(check.sentence)\n  \(hint)\n")
        }
        for store in stores {
          guard let place = try quarantines.interruptedInstallation(of: store) else { continue }
          Terminal.standardOutput.write(
            """

            \(store.id): its salvaged store was being put where nothing is now: \(printable(place.string))
              End that with: lazaret quarantine salvage \(shellQuoted(store.files.main))\(home.optionBesidesStore) --model MODEL --install --to \(shellQuoted(place))

            """)
        }
        Self.tell(released, home)
      }
    }
  }

  private static func payload(_ store: QuarantinedStore, _ rest: Discarding) -> JSON.Object {
    [
      "id": store.id, "path": PathText(store.files.folder), "date": store.receipt?.released?.date,
      "place": store.receipt?.released?.path, "files": rest.items, "bytes": rest.bytes,
    ]
  }

  private static func tell(_ released: [(store: QuarantinedStore, rest: Discarding)], _ home: ChosenHome) {
    guard !released.isEmpty else { return }
    let bytes = released.reduce(0) { $0 + $1.rest.bytes }
    var text =
      "\nOf \(counted(released.count, "released store")) something is left, \(readableSize(bytes)). Remove it with:\n"
    for (store, _) in released {
      text += "  lazaret quarantine discard \(shellQuoted(store.files.main))\(home.optionBesidesStore)\n"
    }
    Terminal.standardOutput.write(text)
  }
}
