package import Platform

/// Where a server listens, and what it bears.
package struct ServerOptions: Sendable {
  /// A certificate with its key.
  package struct TLS: Sendable {
    /// The certificate and those above it, in PEM.
    package var certificate: String

    /// The private key, in PEM.
    package var key: String

    /// A certificate with its key.
    package init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// The numeric address to listen at; the loopback of IPv4 unless told otherwise.
  package var address = "127.0.0.1"

  /// The port; 0 for any that is free.
  package var port: UInt16 = 0

  /// Names besides those of the loopback that `Host` may have, with the port where the browser says it.
  package var hosts: Set<String> = []

  /// The addresses of the proxies in front of it, whose `X-Forwarded-For` and `X-Forwarded-Host` count.
  ///
  /// The connections of a proxy are those of all clients: they are only limited in all.
  package var proxies: Set<ClientAddress> = []

  /// What counts the requests; nil where none are counted.
  package var meter: RequestMeter?

  /// Whether forms are taken whose browser names no site at all; see ``RequestRules/acceptsUnnamedOrigin``.
  package var acceptsUnnamedOrigin = false

  /// TLS, where it is spoken.
  package var tls: TLS?

  /// The most connections at a time; each has a thread, so that a slow one holds up no other.
  ///
  /// One more ends the connection that has been waiting longest for its client, of the address that has most.
  package var connectionLimit = 512

  /// The most connections of one address at a time; of IPv6 addresses, of one network (/64).
  package var addressLimit = 64

  /// After how many seconds without a byte a connection is closed.
  package var idleSeconds = 10

  /// Within how many seconds the header of a request must be there, however it trickles in.
  package var headerSeconds = 10

  /// Within how many seconds the header must be there while more than half of the connections are taken.
  package var pressedHeaderSeconds = 2

  /// Within how many seconds the body must be there; of one that is streamed, the next 64 KiB.
  package var bodySeconds = 60

  /// How many seconds the consumer of a streamed body may take for one piece, and for its answer.
  package var streamSeconds = 900

  /// The most bytes of a body.
  package var bodyLimit = 1 << 20

  /// The most bytes of a request's line and header fields.
  package var headerLimit = 32 << 10

  /// The loopback at any free port.
  package init() {}
}

/// A server that could not be started.
package typealias ServerError = Failure<ServerErrorKind>

/// Why a server could not be started.
package enum ServerErrorKind: String, FailureKind {
  /// The address is none, or is not this machine's.
  case address = "address-invalid"

  /// The port is taken, or the library refused for another reason.
  case notStarted = "server-not-started"

  /// What was being done, where a failure does not say.
  package static let usualOperation = "start the server"

  /// What the reader can do next, where a failure does not say.
  package var usualHint: String {
    switch self {
    case .address: "Use an address such as 127.0.0.1 or ::1."
    case .notStarted: "Use another port, or 0 for any that is free."
    }
  }
}
