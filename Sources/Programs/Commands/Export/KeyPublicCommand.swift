import ArgumentParser
import StoreCoordination

/// `lazaret key public`: the public keys of a file of secret ones.
struct KeyPublicCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "public", abstract: "Prints the public keys of a file of secret keys.",
    usage: "lazaret key public <file> [--json]",
    discussion: """
      EXAMPLE
        lazaret key public support.key

      \(ExitStatus.help)
      """)

  @Argument(help: "A file that lazaret key new or age-keygen wrote.")
  var file: PathArgument

  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let keys = try KeyFiles.identities([file.path]).map(\.recipient.description)
      try output.print(["publicKeys": keys], content: keys.joined(separator: "\n") + "\n")
    }
  }
}
