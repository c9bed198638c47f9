import ArgumentParser
import RecoveryKit
import StoreCoordination

/// `lazaret kit show`: what is in a recovery kit.
struct KitShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Shows what is in a recovery kit.",
    usage: "lazaret kit show <kit> [--json]",
    discussion: """
      EXAMPLE
        lazaret kit show App.kit

      \(ExitStatus.help)
      """)

  @Argument(help: "The kit's file.")
  var kit: PathArgument

  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let file = try FileSystem().open(kit.path)
      let summary = KitSummary(try RecoveryKit(contentsOf: kit.path), path: kit.path, size: Int(clamping: file.count))
      try output.print(summary, summary.text)
    }
  }
}
