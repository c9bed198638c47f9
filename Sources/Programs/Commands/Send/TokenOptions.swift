import ArgumentParser
import Foundation
import Sending
import StoreCoordination

/// By what the receiver knows the sender.
struct TokenOptions: ParsableArguments {
  /// The variable of the environment that a token is taken from.
  static let variable = "LAZARET_TOKEN"

  @Option(
    help: ArgumentHelp(
      "The file with the token that the receiver gave you; LAZARET_TOKEN is read if not given.", valueName: "file"))
  var tokenFile: PathArgument?

  /// The token; nil for none.
  func token() throws(SendingError) -> AccessToken? {
    if let tokenFile { return try AccessToken(at: tokenFile.path, in: FileSystem()) }
    return try Self.surroundings()
  }

  /// The token of the environment; nil for none.
  static func surroundings() throws(SendingError) -> AccessToken? {
    guard let text = ProcessInfo.processInfo.environment[variable], !text.isEmpty else { return nil }
    return try AccessToken(text)
  }
}

/// How persistently bundles are sent.
struct PersistenceOptions: ParsableArguments {
  @Flag(help: "Try for as long as it takes, instead of leaving it in the outbox after a few tries.")
  var wait = false

  var options: SendingOptions { SendingOptions(waits: wait) }
}
