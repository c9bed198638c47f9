package import Platform

package struct ServerOptions: Sendable {
  package struct TLS: Sendable {
    /// The certificate chain in PEM.
    package var certificate: String

    package var key: String

    package init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// The numeric address to listen at; by default the IPv4 loopback.
  package var address = "127.0.0.1"

  /// The port; 0 for any free one.
  package var port: UInt16 = 0

  /// Further accepted `Host` values, with the port as browsers send it.
  package var hosts: Set<String> = []

  /// Proxies with trusted `X-Forwarded-For` and `X-Forwarded-Host`.
  ///
  /// They are exempt from the address limit, since they serve all clients.
  package var proxies: Set<ClientAddress> = []

  package var meter: RequestMeter?

  /// See ``RequestRules/acceptsUnnamedOrigin``.
  package var acceptsUnnamedOrigin = false

  package var tls: TLS?

  /// The most connections; each has a thread, so a slow one delays no other.
  ///
  /// One more ends the connection that waited longest, of the address with the most.
  package var connectionLimit = 512

  /// The most connections per address, or per IPv6 /64 network.
  package var addressLimit = 64

  /// The seconds without a byte until a connection ends.
  package var idleSeconds = 10

  /// The seconds for the complete header.
  package var headerSeconds = 10

  /// The same with over half of the connections in use.
  package var pressedHeaderSeconds = 2

  /// The seconds for a body, or for each 64 KiB of a stream.
  package var bodySeconds = 60

  /// The seconds for a stream's consumer, per piece or answer.
  var streamSeconds = 900

  /// In bytes.
  package var bodyLimit = 1 << 20

  /// The most bytes of the request line and fields.
  var headerLimit = 32 << 10

  package init() {}
}

package typealias ServerError = Failure<ServerErrorKind>

package enum ServerErrorKind: String, FailureKind {
  /// Malformed, or not an address of this machine.
  case address = "address-invalid"

  /// The port is taken, or libmicrohttpd failed otherwise.
  case notStarted = "server-not-started"

  package static let usualOperation = "start the server"

  package var usualHint: String {
    switch self {
    case .address: "Use an address such as 127.0.0.1 or ::1."
    case .notStarted: "Use another port, or 0 for any that is free."
    }
  }
}
