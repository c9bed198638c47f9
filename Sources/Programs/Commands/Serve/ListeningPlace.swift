import HTTPServer
import StoreCoordination

/// Where an inspector listens, and how safely.
struct ListeningPlace {
  var address = "127.0.0.1"

  /// The port; 0 for any that is free.
  var port: UInt16 = 0

  /// The names that browsers reach it by besides the loopback's.
  var names: [String] = []

  /// The proxies in front of it, which speak TLS to the browsers.
  var proxies: Set<ClientAddress> = []

  /// Whether browsers speak TLS, with this process or with a proxy.
  var isSecure: Bool { tls != nil || !proxies.isEmpty }

  /// The files with the certificate and its key; nil without TLS.
  var tls: (certificate: FilePath, key: FilePath)?

  /// Whether only this machine can reach it.
  var isLoopback: Bool { address == "::1" || address.hasPrefix("127.") }

  private var isAny: Bool { address == "0.0.0.0" || address == "::" }

  private static func host(_ address: String) -> String { address.contains(":") ? "[\(address)]" : address }

  /// The options of the server.
  ///
  /// - Throws: `FileError` where the certificate or its key cannot be read.
  func options() throws -> ServerOptions {
    var options = ServerOptions()
    options.address = address
    options.port = port
    let own = isLoopback || isAny ? [] : [Self.host(address)]
    let usual: UInt16 = tls == nil ? 80 : 443
    options.hosts = Set((names + own).flatMap { port == usual ? [$0, "\($0):\(port)"] : ["\($0):\(port)"] })
    // A proxy's names come without its port, or with the usual one of TLS.
    if !proxies.isEmpty { options.hosts.formUnion(names.flatMap { [$0, "\($0):443"] }) }
    options.proxies = proxies
    options.acceptsUnnamedOrigin = !isSecure && !isLoopback
    if let tls {
      let files = FileSystem()
      func text(_ path: FilePath) throws -> String {
        String(decoding: try files.contents(of: path, limit: 1 << 20), as: UTF8.self)
      }
      options.tls = ServerOptions.TLS(certificate: try text(tls.certificate), key: try text(tls.key))
    }
    return options
  }

  /// The beginning of an address for a browser.
  func origin(at port: UInt16) -> String {
    if !proxies.isEmpty, let name = names.first { return "https://\(name)" }
    return "\(tls == nil ? "http" : "https")://\(names.first ?? Self.host(isAny ? "127.0.0.1" : address)):\(port)"
  }
}
