import ArgumentParser
import StoreCoordination

/// Where the inspector listens, and how safely, as it is said on the command line.
struct ListeningOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The port; 0 for any that is free.", valueName: "number"))
  var port: UInt16 = 8080

  @Option(help: ArgumentHelp("The numeric address to listen at.", valueName: "address"))
  var listen = "127.0.0.1"

  @Option(
    help: ArgumentHelp("A name that browsers reach it by, besides the loopback's; several times.", valueName: "name"))
  var host: [String] = []

  @Option(help: ArgumentHelp("The certificate for TLS, in PEM.", valueName: "file"))
  var tlsCert: PathArgument?

  @Option(help: ArgumentHelp("The private key of the certificate, in PEM.", valueName: "file"))
  var tlsKey: PathArgument?

  @Flag(help: "Listen beyond this machine without TLS: everybody on the way can read along.")
  var insecure = false

  /// The same as a value.
  var place: ListeningPlace {
    var place = ListeningPlace(address: listen, port: port, names: host)
    if let tlsCert, let tlsKey { place.tls = (tlsCert.path, tlsKey.path) }
    return place
  }

  func validate() throws {
    guard (tlsCert == nil) == (tlsKey == nil) else { throw ValidationError("Give --tls-cert and --tls-key together.") }
    guard place.isLoopback || tlsCert != nil || insecure else {
      throw ValidationError(
        "\(listen) can be reached from other machines: give --tls-cert and --tls-key, or say --insecure.")
    }
    guard port != 0 || place.isLoopback else { throw ValidationError("Give a --port with --listen.") }
  }
}
