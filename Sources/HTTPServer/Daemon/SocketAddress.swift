// The module loaded first supplies the address structures.
internal import CMicrohttpd

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

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

  var isIPv6: Bool {
    if case .six = form { return true }
    return false
  }

  var text: String {
    var bytes = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    switch form {
    case .four(var address):
      _ = unsafe inet_ntop(AF_INET, &address.sin_addr, &bytes, socklen_t(bytes.count))
    case .six(var address):
      _ = unsafe inet_ntop(AF_INET6, &address.sin6_addr, &bytes, socklen_t(bytes.count))
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
