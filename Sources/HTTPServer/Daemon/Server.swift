// The module loaded first supplies the address structures.
internal import CMicrohttpd
package import Platform

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// A running server, until it goes out of scope.
///
/// libmicrohttpd runs a thread per connection, where the handler may wait. Every request has passed ``RequestRules``;
/// every response has the `SecurityHeaders`.
@safe package struct Server: ~Copyable {
  package let port: UInt16

  private let daemon: OpaquePointer
  private let context: Unmanaged<DaemonContext>
  private let texts: [CText]
  private let log: LogTarget

  package init(_ options: ServerOptions = ServerOptions(), router: Router) throws(FileError) {
    try self.init(options) {
      router.intake(of: $0, length: $1)
    } handler: {
      router.respond(to: $0)
    }
  }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - intake: chooses the consumer by header and body length; nil collects the body.
  ///   - handler: answers on many threads at once.
  /// - Throws: a `FileError` if it cannot listen there.
  package init(
    _ options: ServerOptions = ServerOptions(),
    intake: @escaping @Sendable (Request, Int64?) -> BodyIntake? = { _, _ in nil },
    handler: @escaping @Sendable (Request) -> Response
  ) throws(FileError) {
    let shared = DaemonContext(options, intake: intake, handler: handler)
    let context = unsafe Unmanaged.passRetained(shared)
    let log = unsafe LogTarget(context.toOpaque())
    let texts = options.tls.map { [CText($0.key), CText($0.certificate)] } ?? []
    guard let address = SocketAddress(options.address, port: options.port) else {
      unsafe context.release()
      throw FileError(.serverAddress, detail: "the address is not a numeric one")
    }
    guard let daemon = unsafe Self.start(options, address, context.toOpaque(), texts, log) else {
      unsafe context.release()
      throw FileError(.serverNotStarted, detail: "nothing can listen at port \(options.port) of this address")
    }
    let port = unsafe lazaret_mhd_port(daemon)
    self.port = port
    unsafe self.daemon = daemon
    unsafe self.context = context
    self.texts = texts
    self.log = log
    shared.rules = RequestRules(
      hosts: RequestRules.loopbackHosts(port: port).union(options.hosts.map { $0.lowercased() }),
      bodyLimit: options.bodyLimit, acceptsUnnamedOrigin: options.acceptsUnnamedOrigin)
    shared.watch()
  }

  deinit {
    unsafe context.takeUnretainedValue().stop()
    // Joins all threads, which use the context.
    unsafe MHD_stop_daemon(daemon)
    unsafe context.release()
  }

  /// Finishes running answers and ends streams.
  package consuming func stop() {}

  /// Swift can call the variadic `MHD_start_daemon` only with a list.
  private static func start(
    _ options: ServerOptions, _ address: SocketAddress, _ context: UnsafeMutableRawPointer,
    _ texts: [CText], _ log: LogTarget
  ) -> OpaquePointer? {
    var flags =
      MHD_USE_THREAD_PER_CONNECTION.rawValue | MHD_USE_INTERNAL_POLLING_THREAD.rawValue | MHD_USE_POLL.rawValue
      | MHD_USE_ERROR_LOG.rawValue
    if address.isIPv6 { flags |= MHD_USE_IPv6.rawValue }
    let completed: MHD_RequestCompletedCallback = unsafe httpCompleted
    let notified: MHD_NotifyConnectionCallback = unsafe httpNotified
    let began:
      @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) ->
        UnsafeMutableRawPointer? = unsafe httpBegan
    let own = Int(bitPattern: context)
    return unsafe address.withPointer { place in
      var arguments: [any CVarArg] = unsafe [
        MHD_OPTION.EXTERNAL_LOGGER.rawValue, lazaret_mhd_logger(), Int(bitPattern: log.pointer),
        MHD_OPTION.SOCK_ADDR.rawValue, Int(bitPattern: place),
        // Slightly above the limit: ``ConnectionTable`` decides which connection ends.
        MHD_OPTION.CONNECTION_LIMIT.rawValue, UInt32(options.connectionLimit + 64),
        MHD_OPTION.CONNECTION_TIMEOUT.rawValue, UInt32(options.idleSeconds),
        MHD_OPTION.CONNECTION_MEMORY_LIMIT.rawValue, options.headerLimit,
        MHD_OPTION.THREAD_STACK_SIZE.rawValue, 2 << 20,
        MHD_OPTION.STRICT_FOR_CLIENT.rawValue, CInt(1),
        MHD_OPTION.URI_LOG_CALLBACK.rawValue, unsafeBitCast(began, to: Int.self), own,
        MHD_OPTION.NOTIFY_COMPLETED.rawValue, unsafeBitCast(completed, to: Int.self), own,
        MHD_OPTION.NOTIFY_CONNECTION.rawValue, unsafeBitCast(notified, to: Int.self), own,
      ]
      if texts.count == 2 {
        flags |= MHD_USE_TLS.rawValue
        unsafe arguments += [
          MHD_OPTION.HTTPS_MEM_KEY.rawValue, Int(bitPattern: texts[0].pointer),
          MHD_OPTION.HTTPS_MEM_CERT.rawValue, Int(bitPattern: texts[1].pointer),
        ]
      }
      arguments.append(MHD_OPTION.END.rawValue)
      return unsafe withVaList(arguments) { list in
        unsafe MHD_start_daemon_va(UInt32(flags), options.port, nil, nil, httpAnswer, context, list)
      }
    }
  }
}

@safe private final class LogTarget {
  let pointer: UnsafeMutablePointer<lazaret_mhd_log_target>

  init(_ own: UnsafeMutableRawPointer) {
    unsafe pointer = .allocate(capacity: 1)
    unsafe pointer.initialize(to: lazaret_mhd_log_target(own: own, refused: httpRefused))
  }

  deinit { unsafe pointer.deallocate() }
}

@safe private final class CText {
  let pointer: UnsafeMutablePointer<CChar>?

  init(_ text: String) { unsafe pointer = strdup(text) }

  deinit { unsafe free(pointer) }
}

package struct ServerOptions: Sendable {
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

  /// The certificate chain and its key, in PEM.
  package var tls: (certificate: String, key: String)?

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

struct SocketAddress {
  private enum Form {
    case four(sockaddr_in)
    case six(sockaddr_in6)
  }

  private let form: Form

  init?(_ text: String, port: UInt16) {
    var four = sockaddr_in()
    var six = sockaddr_in6()
    if unsafe inet_pton(AF_INET, text, &four.sin_addr) == 1 {
      four.sin_family = sa_family_t(AF_INET)
      four.sin_port = port.bigEndian
      form = .four(four)
    } else if unsafe inet_pton(AF_INET6, text, &six.sin6_addr) == 1 {
      six.sin6_family = sa_family_t(AF_INET6)
      six.sin6_port = port.bigEndian
      form = .six(six)
    } else {
      return nil
    }
  }

  var isIPv6: Bool { if case .six = form { true } else { false } }

  var text: String {
    var bytes = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    switch form {
    case .four(var address): _ = unsafe inet_ntop(AF_INET, &address.sin_addr, &bytes, socklen_t(bytes.count))
    case .six(var address): _ = unsafe inet_ntop(AF_INET6, &address.sin6_addr, &bytes, socklen_t(bytes.count))
    }
    return String(decoding: bytes.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  func withPointer<Result>(_ body: (UnsafeRawPointer) -> Result) -> Result {
    switch form {
    case .four(var address): unsafe withUnsafePointer(to: &address) { unsafe body(UnsafeRawPointer($0)) }
    case .six(var address): unsafe withUnsafePointer(to: &address) { unsafe body(UnsafeRawPointer($0)) }
    }
  }
}
