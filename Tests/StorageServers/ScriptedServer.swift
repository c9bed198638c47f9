import Platform

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A server on this machine that answers each request with the next step of a script, right or wrong.
package final class ScriptedServer: Sendable {
  /// What is done with a request.
  package enum Step: Sendable {
    /// Sends an answer with its right length.
    case answer(Int, fields: [String: String] = [:], body: [UInt8] = [])

    /// Sends bytes as they are, and closes the connection.
    case raw(String)

    /// Closes the connection.
    case cut

    /// Sends a piece again and again, with pauses in milliseconds between, at most so many times.
    case drip(String, pause: Int, count: Int)

    /// Gives the request to an answering function.
    case compute(@Sendable (Received) -> Step)

    /// An answer with a text.
    package static func text(_ status: Int, _ body: String, fields: [String: String] = [:]) -> Step {
      .answer(status, fields: fields, body: Array(body.utf8))
    }
  }

  /// A request as it came.
  package struct Received: Sendable {
    package var method: String
    package var target: String
    package var fields: [String: String]
    package var body: [UInt8]
  }

  /// The port that it listens on.
  package let port: UInt16
  private let socket: CInt
  private let isStopped = Mutex(false)
  private let state: Mutex<(steps: [Step], last: Step?, received: [Received])>

  struct NotStarted: Error {}

  /// - Parameter last: what is done when the script is at its end; the connection is closed if nil.
  package init(_ steps: [Step], then last: Step? = nil) throws {
    state = Mutex((steps, last, []))
    #if canImport(Glibc)
      socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    #else
      socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let socket = socket
    let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe bind(socket, pointer, length) == 0 && listen(socket, 16) == 0
          && getsockname(socket, pointer, &length) == 0
      }
    }
    guard isBound else { throw NotStarted() }
    port = UInt16(bigEndian: address.sin_port)
    WorkThread.start(named: "scripted server") { [self] in serve() }
  }

  /// Ends the server's thread.
  package func stop() {
    guard
      !isStopped.withLock({ stopped in
        defer { stopped = true }
        return stopped
      })
    else { return }
    shutdown(socket, CInt(SHUT_RDWR))
  }

  /// The requests so far.
  package var received: [Received] { state.withLock { $0.received } }

  private func serve() {
    while true {
      let connection = accept(socket, nil, nil)
      guard connection >= 0 else {
        if [EINTR, ECONNABORTED, EMFILE, ENFILE].contains(errno), !isStopped.withLock({ $0 }) { continue }
        break
      }
      var timeout = timeval(tv_sec: 20, tv_usec: 0)
      unsafe setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
      WorkThread.start { [self] in
        var rest: [UInt8] = []
        while let request = receive(connection, &rest), answer(request, connection) {}
        close(connection)
      }
    }
    close(socket)
  }

  private func receive(_ connection: CInt, _ rest: inout [UInt8]) -> Received? {
    func more() -> Bool {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let room = buffer.count
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(connection, $0.baseAddress, room, 0) }
      rest += buffer.prefix(max(0, count))
      return count > 0
    }
    let mark = Array("\r\n\r\n".utf8)
    var end: Int?
    while end == nil {
      end = rest.indices.first { rest[$0...].starts(with: mark) }
      if end == nil, !more() { return nil }
    }
    guard let end else { return nil }
    let lines = String(decoding: rest[..<end], as: UTF8.self).split(separator: "\r\n")
    let words = lines.first.map { $0.split(separator: " ") } ?? []
    guard words.count == 3 else { return nil }
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      if parts.count == 2 { fields[parts[0].lowercased()] = String(parts[1].drop(while: { $0 == " " })) }
    }
    rest.removeFirst(end + 4)
    let length = fields["content-length"].flatMap { Int($0) } ?? 0
    while rest.count < length { guard more() else { return nil } }
    let body = Array(rest.prefix(length))
    rest.removeFirst(length)
    return Received(method: String(words[0]), target: String(words[1]), fields: fields, body: body)
  }

  /// Whether the connection goes on.
  private func answer(_ request: Received, _ connection: CInt) -> Bool {
    let step: Step? = state.withLock { state in
      state.received.append(request)
      return state.steps.isEmpty ? state.last : state.steps.removeFirst()
    }
    return step.map { perform($0, request, connection) } ?? false
  }

  private func perform(_ step: Step, _ request: Received, _ connection: CInt) -> Bool {
    switch step {
    case .answer(let status, let fields, let body):
      var head = "HTTP/1.1 \(status) Word\r\n"
      if fields["content-length"] == nil { head += "content-length: \(body.count)\r\n" }
      for (name, value) in fields { head += "\(name): \(value)\r\n" }
      send(Array((head + "\r\n").utf8) + (request.method == "HEAD" ? [] : body), connection)
      return true
    case .raw(let text): send(Array(text.utf8), connection)
    case .cut: break
    case .drip(let text, let pause, let count):
      for _ in 0..<count {
        guard send(Array(text.utf8), connection) else { break }
        usleep(UInt32(pause) * 1000)
      }
    case .compute(let body): return perform(body(request), request, connection)
    }
    return false
  }

  @discardableResult private func send(_ bytes: [UInt8], _ connection: CInt) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { buffer in
        #if canImport(Glibc)
          unsafe Glibc.send(connection, buffer.baseAddress, buffer.count, CInt(MSG_NOSIGNAL))
        #else
          unsafe Darwin.send(connection, buffer.baseAddress, buffer.count, 0)
        #endif
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
