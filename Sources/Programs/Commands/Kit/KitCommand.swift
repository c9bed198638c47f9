import ArgumentParser

/// `lazaret kit`: recovery kits.
struct KitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kit",
    abstract: "Makes and shows recovery kits: what a salvage would want to know of a healthy store.",
    discussion: """
      A kit has the store's tables with their pages and rowids, and a sum of each page of stores up to 64 MB. With it a \
      salvage tells exactly which records are lost, finds pages without any other trace and sees flipped bits inside of \
      values. It holds none of the records' values. A coordinator that has a home notes one a day by itself.

      \(ExitStatus.help)
      """,
    subcommands: [KitCreateCommand.self, KitShowCommand.self])
}
