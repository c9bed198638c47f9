import ArgumentParser
import RecoveryKit
import StoreCoordination

/// `lazaret kit create`: notes a recovery kit of a healthy store.
struct KitCreateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Notes a recovery kit of a healthy store.",
    usage: "lazaret kit create <store> -o <out> [--json]",
    discussion: """
      Touches nothing of the store. Of a damaged store no kit is made.

      EXAMPLE
        lazaret kit create Stores/App.sqlite -o App.kit

      \(ExitStatus.help)
      """)

  @Argument(help: "The store's main file.")
  var store: PathArgument

  @Option(name: [.customShort("o"), .customLong("output")], help: "The kit's file; nothing may have its name.")
  var out: PathArgument

  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func validate() throws { try out.requirePlace() }

  func run() throws {
    try report(json: output.json) {
      let line = ProgressLine()
      line.show("Reading the store …")
      var kit = try RecoveryKit(of: store.path)
      kit.generation = try EvidenceScope(of: store.path).lineage?.generation
      let bytes = try kit.bytes()
      try FileSystem().writeAtomically(bytes, to: out.path, replacing: false, permissions: .ownerReadWrite)
      line.clear()
      let summary = KitSummary(kit, path: out.path, size: bytes.count)
      try output.print(summary, summary.text)
    }
  }
}
