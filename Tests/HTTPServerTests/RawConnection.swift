import HTTPServer

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A connection that sends exactly the bytes it is told to, as no well-behaved client does.
final class RawConnection {
  struct NotConnected: Error {}

  private let socket: CInt

  init(port: UInt16) throws {
    socket = Self.make()
    var timeout = timeval(tv_sec: 10, tv_usec: 0)
    unsafe setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw NotConnected() }
  }

  deinit { close(socket) }

  private static func make() -> CInt {
    #if canImport(Glibc)
      Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    #else
      Darwin.socket(AF_INET, SOCK_STREAM, 0)
    #endif
  }

  func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Self.send(socket, $0) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  private static func send(_ socket: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Glibc)
      unsafe Glibc.send(socket, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
    #else
      unsafe Darwin.send(socket, bytes.baseAddress, bytes.count, 0)
    #endif
  }

  /// The next bytes; empty at the end, or after ten seconds without any.
  func receive() -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let room = buffer.count
    let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(socket, $0.baseAddress, room, 0) }
    return Array(buffer.prefix(max(0, count)))
  }

  /// Everything until the server closes the connection.
  func receiveAll() -> String {
    var bytes: [UInt8] = []
    while true {
      let piece = receive()
      guard !piece.isEmpty else { break }
      bytes += piece
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Everything until a text has come.
  func receive(until text: String) -> String {
    var got = ""
    while !got.contains(text) {
      let piece = receive()
      guard !piece.isEmpty else { break }
      got += String(decoding: piece, as: UTF8.self)
    }
    return got
  }

  /// Sends no more, so that the server sees the end.
  func finishSending() { shutdown(socket, CInt(SHUT_WR)) }

  /// Whether the other side has closed the connection, as far as it shows within some time.
  func isClosed(withinMilliseconds time: Int) -> Bool {
    var item = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&item, 1, CInt(time)) > 0 else { return false }
    return receive().isEmpty
  }
}

/// A response as it came over the connection.
struct RawResponse {
  let text: String

  /// The status; 0 where there is none.
  var status: Int { Int(text.dropFirst("HTTP/1.1 ".count).prefix(3)) ?? 0 }

  var head: String { text.firstRange(of: "\r\n\r\n").map { String(text[..<$0.lowerBound]) } ?? text }

  var body: String { text.firstRange(of: "\r\n\r\n").map { String(text[$0.upperBound...]) } ?? "" }

  func header(_ name: String) -> String? {
    for line in head.split(separator: "\r\n").dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      if parts.count == 2, parts[0].lowercased() == name.lowercased() { return String(parts[1].drop { $0 == " " }) }
    }
    return nil
  }
}

extension Server {
  /// Sends one request as it stands and reads until the connection closes.
  borrowing func exchange(_ text: String) throws -> RawResponse {
    let connection = try RawConnection(port: port)
    connection.send(text)
    connection.finishSending()
    return RawResponse(text: connection.receiveAll())
  }
}
