import ArgumentParser
import Lazaret
import Platform
import SystemPackage

struct QuarantineReleaseCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Puts a quarantined store back where it came from.",
    usage: "lazaret quarantine release <id> [--to <path>] [--replace] [--home <dir>] [<options>]",
    discussion: """
      Refuses where another store is in its place, unless told to replace it; what is there is then quarantined first. \
      What was salvaged of it stays, with its receipt, and is listed; "quarantine discard" removes it.

      EXAMPLE
        lazaret quarantine release 2026-11-21-10-11-12 --home Stores --replace

      \(ExitStatus.help)
      """)

  @Argument(help: "The name of a quarantined store, or the path of its file.")
  var id: PathArgument

  @Option(help: ArgumentHelp("Where it goes, if not where it came from.", valueName: "path"))
  var to: PathArgument?

  @Flag(help: "Quarantine what is in its place first.")
  var replace = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func validate() throws { try to?.requirePlace() }

  func perform() throws {
    let home = try home.of(quarantined: id.path)
    let quarantines = Quarantines(home: home.path)
    let stored = try home.finding(quarantined: id.path, forBackup: "backup restore ID") {
      try quarantines.store(id.path)
    }
    let result = try quarantines.release(id.path, to: to?.path, replacing: replace)
    let rest = try quarantines.discarding(stored.files.main)
    let discard = "lazaret quarantine discard \(shellQuoted(stored.files.main))\(home.optionBesidesStore)"
    if output.json {
      let payload: JSON.Object = [
        "store": PathText(result.place.main),
        "quarantined": try result.quarantined.map { try $0.payload(in: quarantines) },
        "left": rest.items, "leftBytes": rest.bytes, "discard": rest.items.isEmpty ? nil : discard,
      ]
      try Terminal.standardOutput.write(json: payload)
    } else {
      var text = "The store is back at \(printable(result.place.main.string)).\n"
      if let replaced = result.quarantined {
        text += "What was there is in quarantine as \(replaced.id).\n"
        if let undo = try quarantines.undo(of: replaced) { text += "Put that back with: \(undo)\n" }
      }
      if !rest.items.isEmpty {
        text +=
          "What was made of it stays in \(printable(stored.files.folder.string)), "
          + "\(counted(rest.items.count, "file")), \(readableSize(rest.bytes)):\n"
        for item in rest.items { text += "  \(printable(item.name.text))\n" }
        text += "Remove it with: \(discard)\n"
      }
      Terminal.standardOutput.write(text)
    }
  }
}

extension QuarantinedStore {
  /// Returns the command that puts the store back; nil if the receipt does not name its path.
  ///
  /// - Parameter isReplacing: first quarantines another store at the path.
  func undo(home: FilePath?, replacing isReplacing: Bool) -> String? {
    receipt?.originalPath.path.map { _ in Self.release(files.main, home: home, replacing: isReplacing) }
  }

  /// Absolute paths make it work in any folder.
  fileprivate static func release(_ path: FilePath, home: FilePath?, replacing isReplacing: Bool) -> String {
    let option = home.map { " --home \(shellQuoted($0))" } ?? ""
    return "lazaret quarantine release \(shellQuoted(path))\(option)\(isReplacing ? " --replace" : "")"
  }
}

extension OpeningEvent {
  /// The command that puts the quarantined store back; nil for an event without one.
  func undo(in home: ChosenHome) -> String? {
    guard reason != nil, let stored = path.path else { return nil }
    return QuarantinedStore.release(stored, home: home.wholePath, replacing: true)
  }
}

extension Quarantines {
  /// Returns the command that puts a store back in the present state; nil without its path or files.
  func undo(of stored: QuarantinedStore) throws -> String? {
    let fileSystem = FileSystem()
    guard let place = stored.receipt?.originalPath.path, try !stored.files.members(in: fileSystem).isEmpty else {
      return nil
    }
    // An unreadable place may be taken; replacing works on an empty one too.
    let isTaken = (try? !StoreFileSet(main: place).members(in: fileSystem).isEmpty) ?? true
    return stored.undo(home: ChosenHome.whole(home), replacing: isTaken)
  }
}
