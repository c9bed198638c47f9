internal import Foundation
public import SystemPackage

/// One request to a receiver.
public struct UploadRequest: Sendable {
  /// What is to be done.
  public enum Method: String, Sendable {
    case options = "OPTIONS"
    case head = "HEAD"
    case get = "GET"
    case post = "POST"
    case patch = "PATCH"
    case put = "PUT"
    case delete = "DELETE"
  }

  /// What follows the header.
  public enum Body: Sendable {
    /// Nothing, and its length is not told.
    case none

    /// Bytes in memory, at most ``UploadRequest/partLimit``.
    case bytes([UInt8])

    /// A whole file of a known size.
    case file(FilePath, size: Int64)
  }

  /// The most bytes of a body in memory: 16 MiB.
  ///
  /// A body in memory is held several times over on its way to the connection.
  public static let partLimit = 16 << 20

  /// What is to be done.
  public var method: Method

  /// To what: an absolute address, checked by ``ReceiverAddress``.
  public var address: ReceiverAddress

  /// The header fields by name.
  public var fields: [String: String]

  /// What follows the header.
  public var body: Body

  /// A request.
  public init(
    _ method: Method, _ address: ReceiverAddress, fields: [String: String] = [:], body: Body = .none
  ) {
    self.method = method
    self.address = address
    self.fields = fields
    self.body = body
  }
}

extension UploadRequest {
  /// Refuses what would go through a proxy without any encryption.
  package func requireNoProxy() throws(TransportError) {
    guard address.url.scheme?.lowercased() == "http", let name = Self.proxy else { return }
    throw TransportError(
      .request, "the environment variable \(name) would send it through a proxy without any encryption")
  }

  /// The variable that names a proxy for plain HTTP; nil where there is none, or none for this machine.
  private static var proxy: String? {
    let environment = ProcessInfo.processInfo.environment
    let exceptions = (environment["no_proxy"] ?? environment["NO_PROXY"] ?? "").split(separator: ",")
      .map { $0.trimmingCharacters(in: .whitespaces) }
    if exceptions.contains("*") || (exceptions.contains("localhost") && exceptions.contains("127.0.0.1")) { return nil }
    return ["http_proxy", "all_proxy", "ALL_PROXY"].first { environment[$0]?.isEmpty == false }
  }
}

/// A request that got no answer.
public struct TransportError: Error, Sendable, Hashable {
  /// What kind of failure it was.
  public enum Kind: Sendable, Hashable {
    /// The connection did not come about, broke or took too long; another time it may work.
    case connection

    /// The receiver could not prove who it is, or no secure connection came about.
    case untrusted

    /// The request is one that is not made.
    case request

    /// The file could not be read, or changed meanwhile.
    case file
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What went wrong, in one sentence without a full stop; no address and no token is in it.
  public var detail: String

  /// A failure.
  public init(_ kind: Kind, _ detail: String) {
    self.kind = kind
    self.detail = detail
  }
}
