import ArgumentParser
import Inbox
import StoreCoordination

/// Whether and how `lazaret serve` receives bundles, as it is said on the command line.
struct ReceivingOptions: ParsableArguments {
  @Flag(help: "Receive bundles too, from senders with a token: lazaret inbox token new NAME.")
  var inbox = false

  @Option(
    help: ArgumentHelp("The file with the secret key by which encrypted bundles are opened.", valueName: "file"))
  var identity: PathArgument?

  @Option(help: ArgumentHelp("The most bytes of one bundle.", valueName: "size"))
  var maxBundle = ByteCount(4 << 30)

  @Option(
    help: ArgumentHelp(
      "The most bytes of all bundles, with what they unpack to and what is salvaged of them.", valueName: "size"))
  var quota = ByteCount(100 << 30)

  @Option(
    help: ArgumentHelp(
      "How many bundles are opened or salvaged at a time, 1 to 16; with --bundles also 0, where lazaret work does it.",
      valueName: "number"))
  var workers = 1

  @Option(
    help: ArgumentHelp("With --bundles, the most bytes of copies that stay in the home.", valueName: "size"))
  var copies = ByteCount(10 << 30)

  @OptionGroup(title: "Which bundles are kept")
  var retention: InboxRetentionOptions

  func validate() throws {
    guard (0...16).contains(workers) else { throw ValidationError("Give 1 to 16 --workers.") }
    guard inbox || identity == nil else { throw ValidationError("--identity is for --inbox.") }
    guard inbox || retention.rules == nil else { throw ValidationError("--keep-… is for --inbox.") }
  }
}
