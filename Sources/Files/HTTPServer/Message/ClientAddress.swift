/// The numeric address that a request comes from.
package struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
  /// The address as the system writes it; of IPv4 also where it came as one of IPv6.
  package let description: String

  /// Reads an address; nil where it is not a numeric one of IPv4 or IPv6.
  package init?(_ text: String) {
    let mapped = "::ffff:"
    let bare = text.lowercased().hasPrefix(mapped) && text.contains(".") ? String(text.dropFirst(mapped.count)) : text
    guard bare.utf8.count <= 45, let address = SocketAddress(bare, port: 0) else { return nil }
    description = address.text
  }

  /// Whether it is this machine's own.
  package var isLoopback: Bool { description == "::1" || description.hasPrefix("127.") }
}

/// The proxies in front of a server, whose word counts on where a request comes from and which host it asked for.
struct TrustedProxies: Sendable {
  /// The most addresses of one request that are looked at.
  private static let longestWay = 32

  let addresses: Set<ClientAddress>

  /// Whether an address is that of a proxy.
  func contains(_ address: ClientAddress?) -> Bool { address.map(addresses.contains) ?? false }

  /// The client of a request that came from an address.
  ///
  /// Each proxy on the way appends where it got the request from, and what stands before that is what a client wrote. So the last
  /// address that is no proxy's is the client. Nil where it is not known, which is also where an address that is no proxy's says that it
  /// passes a request on: nothing may be allowed to it for its own address.
  func client(at peer: ClientAddress?, _ headers: HeaderFields) -> ClientAddress? {
    let isPassedOn = ["X-Forwarded-For", "X-Forwarded-Host", "Forwarded"].contains { headers[$0] != nil }
    guard isPassedOn else { return contains(peer) ? nil : peer }
    guard contains(peer) else { return nil }
    let way = headers.all("X-Forwarded-For").flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
    for text in way.suffix(Self.longestWay).reversed() {
      guard let address = ClientAddress(text.filter { $0 != " " && $0 != "\t" }) else { return nil }
      if !addresses.contains(address) { return address }
    }
    return nil
  }

  /// The fields of a request as the client sent them: the host that it asked a proxy for stands in place of the one that the proxy
  /// asked for.
  func fields(_ headers: HeaderFields, from peer: ClientAddress?) -> HeaderFields {
    guard contains(peer), headers.count(of: "X-Forwarded-Host") == 1, let host = headers["X-Forwarded-Host"] else {
      return headers
    }
    var fields = headers
    fields.set("Host", host)
    return fields
  }
}
