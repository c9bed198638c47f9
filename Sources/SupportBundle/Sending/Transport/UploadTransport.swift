public import Foundation
public import Platform
public import SystemPackage

/// The transport of requests, replaceable in tests.
///
/// One request at a time, without retries or redirections.
public protocol UploadTransport: Sendable {
  /// Sends a request and waits for its answer.
  ///
  /// - Parameter progress: called with the sent bytes of the body, if known.
  /// - Throws: ``TransportError`` without an answer.
  func send(
    _ request: UploadRequest, progress: @escaping @Sendable (Int64) -> Void
  ) throws(TransportError) -> UploadResponse
}

/// A request to a receiver.
public struct UploadRequest: Sendable {
  /// The HTTP method.
  public enum Method: String, Sendable {
    case options = "OPTIONS"
    case head = "HEAD"
    case get = "GET"
    case post = "POST"
    case patch = "PATCH"
    case put = "PUT"
    case delete = "DELETE"
  }

  /// The request body.
  public enum Body: Sendable {
    /// No body and no length.
    case none

    /// At most ``UploadRequest/partLimit`` bytes in memory.
    case bytes([UInt8])

    case file(FilePath, size: Int64)
  }

  /// The largest body in memory: 16 MiB, held several times.
  public static let partLimit = 16 << 20

  /// The HTTP method.
  public var method: Method

  /// The absolute, validated address.
  public var address: ReceiverAddress

  /// The header fields by name.
  public var fields: [String: String]

  /// The request body.
  public var body: Body

  /// Creates a request.
  public init(_ method: Method, _ address: ReceiverAddress, fields: [String: String] = [:], body: Body = .none) {
    self.method = method
    self.address = address
    self.fields = fields
    self.body = body
  }
}

extension UploadRequest {
  /// Rejects a request that would pass a proxy unencrypted.
  package func requireNoProxy() throws(TransportError) {
    guard address.url.scheme?.lowercased() == "http", let name = Self.proxy else { return }
    throw TransportError(
      .request, "the environment variable \(name) would send it through a proxy without any encryption")
  }

  /// The variable that names a plain HTTP proxy.
  private static var proxy: String? {
    let environment = ProcessInfo.processInfo.environment
    let exceptions = (environment["no_proxy"] ?? environment["NO_PROXY"] ?? "").split(separator: ",")
      .map { $0.trimmingCharacters(in: .whitespaces) }
    if exceptions.contains("*") || (exceptions.contains("localhost") && exceptions.contains("127.0.0.1")) { return nil }
    return ["http_proxy", "all_proxy", "ALL_PROXY"].first { environment[$0]?.isEmpty == false }
  }
}

/// A request without an answer.
public struct TransportError: Error, Sendable, Hashable {
  /// The kind of failure.
  public enum Kind: Sendable, Hashable {
    /// The connection failed or timed out; a retry may work.
    case connection

    /// The receiver is not authenticated, or TLS failed.
    case untrusted

    case request

    /// The file is unreadable or changed.
    case file
  }

  /// The kind of failure.
  public var kind: Kind

  /// The failure in one sentence without a full stop, address or token.
  public var detail: String

  /// Creates an error.
  public init(_ kind: Kind, _ detail: String) {
    self.kind = kind
    self.detail = detail
  }
}

/// A receiver's answer.
public struct UploadResponse: Sendable {
  /// The status code.
  public var status: Int

  /// The header fields with lower-case names.
  public private(set) var fields: [String: String]

  /// The first ``bodyLimit`` bytes of the body.
  public var body: [UInt8]

  /// Whether the body was longer.
  public var isCutOff: Bool

  /// The most bytes read of a body.
  public static let bodyLimit = 64 << 10

  /// Creates an answer.
  public init(_ status: Int, fields: [String: String] = [:], body: [UInt8] = [], isCutOff: Bool = false) {
    self.status = status
    self.fields = Dictionary(fields.map { ($0.key.lowercased(), $0.value) }) { first, _ in first }
    self.body = body
    self.isCutOff = isCutOff
  }

  /// The value of a field, case-insensitive.
  public subscript(_ name: String) -> String? { fields[name.lowercased()] }

  /// Returns a nonnegative whole number in a field; nil if missing or malformed.
  public func number(_ name: String) -> Int64? {
    guard let text = self[name], !text.isEmpty, text.utf8.count <= 19,
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int64(text)
  }
}

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
