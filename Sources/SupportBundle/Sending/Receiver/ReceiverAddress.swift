public import Foundation
public import Platform

/// A receiver's address: `https`, or `http` to this machine only.
public struct ReceiverAddress: Sendable, Hashable {
  /// The absolute URL.
  public let url: URL

  /// Scheme, host and port, in lower case, without a default port.
  public let origin: String

  /// The longest address in bytes.
  public static let lengthLimit = 4096

  /// Parses a user's address.
  ///
  /// - Throws: `send-request` if malformed, with user name, password or fragment, or plain `http` to another machine.
  public init(_ text: String) throws(SupportBundleError) {
    guard let address = Self.parse(text, relativeTo: nil) else {
      throw Self.refused("it is not an address that begins with https://")
    }
    guard let origin = Self.origin(of: address) else {
      throw Self.refused("its host or port is missing, or it holds a name, a password or a fragment")
    }
    guard Self.isSecure(address) else {
      throw Self.refused("it is not encrypted: plain http is only for this very machine")
    }
    url = address
    self.origin = origin
  }

  /// Resolves a `Location` of this receiver; nil if malformed or at another host.
  public func resolving(_ location: String) -> ReceiverAddress? {
    guard let address = Self.parse(location, relativeTo: url), Self.origin(of: address) == origin else { return nil }
    return ReceiverAddress(address, origin: origin)
  }

  private init(_ url: URL, origin: String) {
    self.url = url
    self.origin = origin
  }

  /// The address as text.
  public var text: String { url.absoluteString }

  /// Whether it has a query, which may be secret.
  public var hasQuery: Bool { url.query != nil }

  /// The address without query.
  public var withoutQuery: String { text.split(separator: "?", maxSplits: 1).first.map(String.init) ?? text }

  /// The decoded last path component.
  public var lastComponent: String {
    let path = withoutQuery.dropFirst(origin.count).split(separator: "/")
    return path.last.map { $0.removingPercentEncoding ?? String($0) } ?? ""
  }

  // MARK: Reading

  private static func parse(_ text: String, relativeTo base: URL?) -> URL? {
    guard !text.isEmpty, text.utf8.count <= lengthLimit, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }),
      !text.contains("\\"), let url = URL(string: text, relativeTo: base)?.absoluteURL,
      url.absoluteString.utf8.count <= lengthLimit
    else { return nil }
    return url
  }

  private static func origin(of url: URL) -> String? {
    guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true), parts.user == nil, parts.password == nil,
      parts.fragment == nil, let scheme = parts.scheme?.lowercased(), scheme == "https" || scheme == "http",
      let host = parts.host?.lowercased(), !host.isEmpty,
      host.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || ".-_:[]".contains($0)) })
    else { return nil }
    // A colon without a port is ambiguous, and a port too long to read counts as none.
    let authority = url.absoluteString.dropFirst(scheme.utf8.count + 3).prefix { !"/?#".contains($0) }
    guard authority.lowercased() == parts.port.map({ "\(host):\($0)" }) ?? host else { return nil }
    guard let port = parts.port, port != (scheme == "https" ? 443 : 80) else { return "\(scheme)://\(host)" }
    guard (1...65535).contains(port) else { return nil }
    return "\(scheme)://\(host):\(port)"
  }

  private static func isLoopback(_ url: URL) -> Bool {
    guard let host = url.host()?.lowercased() else { return false }
    if host == "localhost" || host == "::1" || host == "[::1]" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.first == "127"
      && parts.allSatisfy { part in
        (1...3).contains(part.utf8.count) && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
          && Int(part) ?? 256 < 256
      }
  }

  private static func isSecure(_ url: URL) -> Bool { url.scheme?.lowercased() == "https" || isLoopback(url) }

  private static func refused(_ detail: String) -> SupportBundleError {
    SupportBundleError(
      .sendingRequest, operation: "read the receiver's address", detail: detail,
      hint: "Give an address such as https://support.example.com/inbox/uploads.")
  }
}
