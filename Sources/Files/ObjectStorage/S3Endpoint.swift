/// The server that requests go to.
package struct S3Endpoint: Sendable, Hashable {
  /// Whether the connection is encrypted.
  package let isEncrypted: Bool

  /// The name or address of the host, an address of IPv6 in its brackets.
  package let host: String

  /// The port; nil for the usual one.
  package let port: Int?

  /// What the paths of requests begin with, from its slash on; usually empty.
  package let path: String

  /// A server.
  package init(isEncrypted: Bool, host: String, port: Int? = nil, path: String = "") {
    self.isEncrypted = isEncrypted
    self.host = host
    self.port = port
    self.path = path
  }

  /// Amazon's own server of a region.
  package static func amazon(_ region: String) -> S3Endpoint {
    S3Endpoint(isEncrypted: true, host: "s3.\(region).amazonaws.com" + (region.hasPrefix("cn-") ? ".cn" : ""))
  }

  /// Reads the address of a server, such as `https://storage.example:9000`; nil for any other text.
  package init?(_ text: String) {
    let schemes = [("https://", true), ("http://", false)]
    guard let (scheme, isEncrypted) = schemes.first(where: { text.lowercased().hasPrefix($0.0) }) else { return nil }
    let rest = text.dropFirst(scheme.count)
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    var (host, port) = (rest[..<slash], nil as Int?)
    let isBracketed = host.hasPrefix("[")
    if let colon = host.lastIndex(of: ":"), !isBracketed || host[..<colon].hasSuffix("]") {
      guard let number = UInt16(host[host.index(after: colon)...]), number > 0 else { return nil }
      (host, port) = (host[..<colon], Int(number))
    }
    if isBracketed {
      let address = host.dropFirst().dropLast()
      guard host.hasSuffix("]"), !address.isEmpty, address.utf8.allSatisfy(Self.isOfAddress) else { return nil }
    } else {
      guard !host.isEmpty, host.utf8.count <= 253, host.utf8.allSatisfy(Self.isOfName) else { return nil }
    }
    var path = rest[slash...]
    while path.last == "/" { path.removeLast() }
    guard path.utf8.allSatisfy({ Self.isOfName($0) || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "~") }),
      !path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        .contains(where: { ["", ".", ".."].contains($0) })
    else { return nil }
    let usual = isEncrypted ? 443 : 80
    self.init(
      isEncrypted: isEncrypted, host: host.lowercased(), port: port == usual ? nil : port, path: String(path))
  }

  private static func isOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static func isOfAddress(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: ":"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// Whether it is this machine, as the address itself says.
  package var isLoopback: Bool {
    if host == "localhost" || host == "[::1]" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  /// The host, with the port where it is not the usual one, as requests name it.
  package func authority(bucket: String? = nil) -> String {
    (bucket.map { "\($0)." } ?? "") + host + (port.map { ":\($0)" } ?? "")
  }

  /// What addresses of requests begin with.
  package var scheme: String { isEncrypted ? "https" : "http" }
}
