import ArgumentParser
import HTTPServer
import Lazaret

/// Where the inspector listens, and how safely.
struct ListeningOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The port; 0 for any that is free.", valueName: "number"))
  var port: UInt16 = 8080

  @Option(help: ArgumentHelp("The numeric address to listen at.", valueName: "address"))
  var listen = "127.0.0.1"

  @Option(
    help: ArgumentHelp("A name that browsers reach it by besides the loopback's; several times.", valueName: "name"))
  var host: [String] = []

  @Option(help: ArgumentHelp("The certificate for TLS, in PEM.", valueName: "file"))
  var tlsCert: PathArgument?

  @Option(help: ArgumentHelp("The private key of the certificate, in PEM.", valueName: "file"))
  var tlsKey: PathArgument?

  @Flag(help: "Listen beyond this machine without TLS: everybody on the way can read along.")
  var insecure = false

  /// Whether nobody but this machine can reach it.
  var isLoopback: Bool { listen == "::1" || listen.hasPrefix("127.") }

  func check() throws {
    guard (tlsCert == nil) == (tlsKey == nil) else { throw ValidationError("Give --tls-cert and --tls-key together.") }
    guard isLoopback || tlsCert != nil || insecure else {
      throw ValidationError(
        "\(listen) can be reached from other machines: give --tls-cert and --tls-key, or say --insecure.")
    }
    guard port != 0 || isLoopback else { throw ValidationError("Give a --port with --listen.") }
  }

  /// The options of the server.
  ///
  /// - Throws: `FileError` where the certificate or its key cannot be read.
  func options() throws -> ServerOptions {
    var options = ServerOptions()
    options.address = listen
    options.port = port
    if let tlsCert, let tlsKey {
      let files = FileSystem()
      func text(_ path: FilePath) throws -> String {
        String(decoding: try files.contents(of: path, limit: 1 << 20), as: UTF8.self)
      }
      options.tls = ServerOptions.TLS(certificate: try text(tlsCert.path), key: try text(tlsKey.path))
    }
    return options
  }

  /// The values of `Host` that are answered at a port, besides the loopback's.
  func hosts(at port: UInt16) -> Set<String> {
    let own = isLoopback || listen == "0.0.0.0" || listen == "::" ? [] : [listen.contains(":") ? "[\(listen)]" : listen]
    let usual: UInt16 = tlsCert == nil ? 80 : 443
    return Set((host + own).flatMap { port == usual ? [$0, "\($0):\(port)"] : ["\($0):\(port)"] })
  }
}
