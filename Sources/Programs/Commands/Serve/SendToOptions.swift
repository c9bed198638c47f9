import ArgumentParser
import Inspector
import Sending
import StoreCoordination

/// Who receives the bundles that are sent from the inspector, as it is said on the command line.
struct SendToOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where bundles may be sent from the pages, such as https://support.example.com/inbox/uploads.", valueName: "url"))
  var sendTo: String?

  @Option(help: ArgumentHelp("A file with the token that the receiver gave you.", valueName: "file"))
  var tokenFile: PathArgument?

  /// The receiver; nil for none.
  ///
  /// - Throws: `send-request` where the address is none; `FileError` where the token's file is not there.
  var receiver: InspectorReceiver? {
    get throws {
      guard let sendTo else { return nil }
      let address = try CommandLineSlip.telling { try ReceiverAddress(sendTo) }
      let file = try tokenFile.map { try FileSystem().realPath($0.path) }
      return InspectorReceiver(address, tokenFile: file)
    }
  }

  func validate() throws {
    guard sendTo != nil || tokenFile == nil else { throw ValidationError("--token-file belongs to --send-to.") }
  }
}
