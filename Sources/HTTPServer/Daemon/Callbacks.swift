internal import CMicrohttpd

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

// libmicrohttpd's callbacks, on its own threads: global functions, since a closure could inherit an actor and trap.

private func context(_ pointer: UnsafeMutableRawPointer?) -> DaemonContext? {
  unsafe pointer.map { unsafe Unmanaged<DaemonContext>.fromOpaque($0).takeUnretainedValue() }
}

private func key(_ connection: OpaquePointer?) -> UInt { UInt(bitPattern: connection) }

/// Called at a connection's start and end.
func httpNotified(
  _ own: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
  _ code: MHD_ConnectionNotificationCode
) {
  guard let context = unsafe context(own) else { return }
  guard code == .CONNECTION_NOTIFY_STARTED else { return unsafe context.close(key(connection)) }
  let isProxy = unsafe context.proxies.contains(address(connection))
  unsafe context.open(
    key(connection), socket: lazaret_mhd_socket(connection), client: lazaret_mhd_client(connection), isProxy: isProxy)
}

private func address(_ connection: OpaquePointer?) -> ClientAddress? {
  var bytes = [CChar](repeating: 0, count: 64)
  unsafe lazaret_mhd_address(connection, &bytes, UInt32(bytes.count))
  return ClientAddress(String(decoding: bytes.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
}

/// Called after the request line; libmicrohttpd passes the result to the request's later callbacks.
func httpBegan(
  _ own: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  unsafe context(own)?.begin(key(connection), on: currentThread)
  let text = unsafe target.map { unsafe String(cString: $0) } ?? ""
  return unsafe Unmanaged.passRetained(Exchange(target: text)).toOpaque()
}

/// An identifier unique among living threads.
private var currentThread: UInt {
  #if canImport(Glibc)
    UInt(pthread_self())
  #else
    UInt(bitPattern: pthread_self())
  #endif
}

/// Called before libmicrohttpd refuses a request itself.
func httpRefused(_ own: UnsafeMutableRawPointer?, _ status: UInt32) {
  unsafe context(own)?.refuse(Status(rawValue: Int(status)), on: currentThread)
}

/// Called after a request, answered or not.
func httpCompleted(
  _ own: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _: MHD_RequestTerminationCode
) {
  if let pointer = unsafe state?.pointee {
    unsafe Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue().end()
    unsafe state?.pointee = nil
  }
  guard let context = unsafe context(own) else { return }
  unsafe lazaret_mhd_set_timeout(connection, UInt32(context.options.idleSeconds))
  unsafe context.expect(key(connection), within: context.options.headerSeconds, isRequest: true)
}

private func collect(
  _ fields: UnsafeMutableRawPointer?, _: MHD_ValueKind, _ name: UnsafePointer<CChar>?, _ nameLength: Int,
  _ value: UnsafePointer<CChar>?, _ valueLength: Int
) -> MHD_Result {
  guard let fields = unsafe fields?.assumingMemoryBound(to: HeaderFields.self) else { return .NO }
  unsafe fields.pointee.add(text(name, nameLength), text(value, valueLength))
  return .YES
}

private func text(_ bytes: UnsafePointer<CChar>?, _ count: Int) -> String {
  guard let bytes = unsafe bytes else { return "" }
  return unsafe String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
}

/// Called for the header, each body piece and the end.
func httpAnswer(
  _ own: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ piece: UnsafePointer<CChar>?,
  _ pieceLength: UnsafeMutablePointer<Int>?, _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context = unsafe context(own), let rules = context.rules, let pointer = unsafe state?.pointee,
    let method = unsafe method, let version = unsafe version
  else { return .NO }
  let exchange = unsafe Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
  guard exchange.hasBegun else {
    var headers = HeaderFields()
    _ = unsafe withUnsafeMutablePointer(to: &headers) {
      unsafe MHD_get_connection_values_n(connection, .HEADER_KIND, collect, $0)
    }
    let peer = unsafe address(connection)
    let refusal = unsafe exchange.begin(
      method: String(cString: method), version: String(cString: version), headers: headers, from: peer,
      size: lazaret_mhd_header_size(connection), rules: rules, proxies: context.proxies, intake: context.intake)
    // A consumer may take longer for the last piece than a client may be silent.
    if exchange.isStreamed { unsafe lazaret_mhd_set_timeout(connection, UInt32(context.options.streamSeconds)) }
    // A collected body counts as waiting, like a header: under pressure its connection may end.
    unsafe context.expect(
      key(connection), within: refusal == nil ? context.options.bodySeconds : nil,
      isRequest: refusal == nil && !exchange.isStreamed && exchange.hasBody)
    // An answer now skips the body and ends the connection.
    return refusal.map { unsafe queue($0, to: exchange, on: connection, context) } ?? .YES
  }
  if let count = unsafe pieceLength?.pointee, count > 0 {
    let bytes = unsafe Array(UnsafeRawBufferPointer(start: piece, count: count))
    unsafe pieceLength?.pointee = 0
    switch exchange.append(bytes, rules: rules) {
    case .yes: return .YES
    case .progressed:
      unsafe context.expect(key(connection), within: context.options.bodySeconds)
      return .YES
    case .tooMuch: return .NO
    }
  }
  unsafe context.expect(key(connection), within: nil)
  return unsafe queue(exchange.answer(by: context.handler), to: exchange, on: connection, context)
}

private func queue(
  _ plain: Response, to exchange: Exchange, on connection: OpaquePointer?, _ context: DaemonContext
) -> MHD_Result {
  context.options.meter?.note(exchange.answered(plain.status))
  let response = SecurityHeaders.added(to: plain)
  guard let made = unsafe make(response.body, context) else { return .NO }
  defer { unsafe MHD_destroy_response(made) }
  for field in response.headers.fields where field.isLegal {
    guard unsafe MHD_add_response_header(made, field.name, field.safeValue) == .YES else { return .NO }
  }
  return unsafe MHD_queue_response(connection, UInt32(response.status.rawValue), made)
}

private func make(_ body: Response.Body, _ context: DaemonContext) -> OpaquePointer? {
  switch body {
  case .bytes(var bytes):
    let count = bytes.count
    return unsafe bytes.withUnsafeMutableBytes { buffer in
      unsafe MHD_create_response_from_buffer(count, buffer.baseAddress, .RESPMEM_MUST_COPY)
    }
  case .ranges(let bytes): return unsafe make(OutgoingBody(.ranges(bytes), context), count: UInt64(max(0, bytes.count)))
  case .chunks(let chunks):
    // On shutdown the client gets a broken stream.
    if !context.begin(chunks) { chunks.cancel() }
    return unsafe make(OutgoingBody(.chunks(chunks), context), count: UInt64.max)
  }
}

private func make(_ outgoing: OutgoingBody, count: UInt64) -> OpaquePointer? {
  let body = unsafe Unmanaged.passRetained(outgoing).toOpaque()
  guard let response = unsafe MHD_create_response_from_callback(count, 64 << 10, readBody, body, freeBody) else {
    unsafe freeBody(body)
    return nil
  }
  return unsafe response
}

private func readBody(
  _ own: UnsafeMutableRawPointer?, _ offset: UInt64, _ buffer: UnsafeMutablePointer<CChar>?, _ room: Int
) -> Int {
  guard let own = unsafe own, let buffer = unsafe buffer else { return MHD_CONTENT_READER_END_WITH_ERROR }
  let body = unsafe Unmanaged<OutgoingBody>.fromOpaque(own).takeUnretainedValue()
  do {
    guard let piece = try body.read(at: offset, room: room) else { return MHD_CONTENT_READER_END_OF_STREAM }
    unsafe UnsafeMutableRawBufferPointer(start: buffer, count: room).copyBytes(from: piece)
    return piece.count
  } catch { return MHD_CONTENT_READER_END_WITH_ERROR }
}

private func freeBody(_ own: UnsafeMutableRawPointer?) {
  guard let own = unsafe own else { return }
  let body = unsafe Unmanaged<OutgoingBody>.fromOpaque(own).takeRetainedValue()
  guard case .chunks(let chunks) = body.source else { return }
  body.context.end(chunks)
  chunks.cancel()
}

/// Reads an outgoing body in pieces that fit the connection's buffer.
private final class OutgoingBody {
  enum Source {
    case ranges(any RangeReadable)
    case chunks(ChunkSource)
  }

  let source: Source
  let context: DaemonContext
  private var waiting: ArraySlice<UInt8> = []

  init(_ source: Source, _ context: DaemonContext) {
    self.source = source
    self.context = context
  }

  /// Reads up to `room` bytes; nil at the end.
  func read(at offset: UInt64, room: Int) throws -> ArraySlice<UInt8>? {
    switch source {
    case .ranges(let bytes):
      guard let offset = Int64(exactly: offset), offset < bytes.count else { return nil }
      let piece = try bytes.read(at: offset, length: Int(min(Int64(room), bytes.count - offset)))
      // A truncated file must not pass for complete.
      guard !piece.isEmpty else { throw CutShort() }
      return piece[...]
    case .chunks(let chunks):
      if waiting.isEmpty {
        guard let chunk = try chunks.next() else { return nil }
        waiting = chunk[...]
      }
      let piece = waiting.prefix(room)
      waiting = waiting.dropFirst(room)
      return piece
    }
  }

  private struct CutShort: Error {}
}
