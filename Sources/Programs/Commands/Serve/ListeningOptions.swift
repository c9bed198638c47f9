import ArgumentParser
import HTTPServer
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

  @Option(
    help: ArgumentHelp(
      "The numeric address of a proxy in front of it that speaks TLS to the browsers: its X-Forwarded-For and X-Forwarded-Host are believed; several times. Give the name that browsers ask for with --host.",
      valueName: "address"))
  var proxy: [String] = []

  @Option(
    help: ArgumentHelp(
      "A numeric address that may read /metrics, besides those of this machine; several times.", valueName: "address"))
  var metricsReader: [String] = []

  @Option(
    help: ArgumentHelp(
      "Write the single-use link into this file, which only its owner may read, instead of printing it.",
      valueName: "file"))
  var linkFile: PathArgument?

  @Flag(help: "Listen beyond this machine without TLS: others on the network can read what is sent.")
  var insecure = false

  /// The same as a value.
  var place: ListeningPlace {
    var place = ListeningPlace(address: listen, port: port, names: host)
    place.proxies = Set(proxy.compactMap(ClientAddress.init))
    if let tlsCert, let tlsKey { place.tls = (tlsCert.path, tlsKey.path) }
    return place
  }

  /// The addresses that may read what is counted.
  var metricsReaders: Set<ClientAddress> { Set(metricsReader.compactMap(ClientAddress.init)) }

  func validate() throws {
    for (name, texts) in [("proxy", proxy), ("metrics-reader", metricsReader)] {
      for text in texts where ClientAddress(text) == nil {
        throw ValidationError("\(text) is not a numeric address: give --\(name) one such as 127.0.0.1 or ::1.")
      }
    }
    guard proxy.isEmpty || !host.isEmpty else {
      throw ValidationError("Give --host with --proxy: the name that browsers ask the proxy for.")
    }
    guard (tlsCert == nil) == (tlsKey == nil) else { throw ValidationError("Give --tls-cert and --tls-key together.") }
    guard place.isLoopback || tlsCert != nil || insecure else {
      throw ValidationError(
        "\(listen) can be reached from other machines: give --tls-cert and --tls-key, or say --insecure.")
    }
    guard port != 0 || place.isLoopback else { throw ValidationError("Give a --port with --listen.") }
  }
}
