internal import CCurl
internal import Foundation
internal import Platform
package import SupportBundle

/// Requests to a bundle receiver by libcurl.
///
/// Connections persist; there are no cookies, cache or redirections, and certificates are always verified. Foundation's
/// `URLSession` on Linux ends the process if a server closes the connection within its header.
package final class CurlTransport: UploadTransport {
  private let pool = CurlPool()
  private let options: CurlHandle.Options

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - idleSeconds: the longest time without a byte in either direction.
  ///   - answerSeconds: the longest time from the last byte sent to the end of the answer.
  ///   - totalSeconds: the longest time of a request.
  package init(idleSeconds: Int = 60, answerSeconds: Int = 180, totalSeconds: Int = 86_400) {
    var retries = S3RetryPolicy()
    retries.connecting = idleSeconds * 1000
    retries.stalling = idleSeconds
    retries.slowest = 1
    retries.whole = totalSeconds
    options = CurlHandle.Options(
      retries: retries, limit: UploadResponse.bodyLimit, answerTime: .seconds(answerSeconds), cutsOff: true)
  }

  package func send(
    _ request: UploadRequest, progress: @escaping @Sendable (Int64) -> Void
  ) throws(TransportError) -> UploadResponse {
    try request.requireNoProxy()
    guard request.fields.allSatisfy({ Self.isPlain($0.key) && Self.isPlain($0.value) }) else {
      throw TransportError(.request, "a field of the header has a line break")
    }
    var options = options
    options.progress = progress
    let body = try Self.body(of: request)
    let fields = request.fields.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
    do throws(TransportFailure) {
      let answer = try pool.withHandle { handle throws(TransportFailure) in
        try handle.perform(
          request.method.rawValue, url: request.address.url.absoluteString, fields: fields, body: body, options)
      }
      return UploadResponse(answer.status, fields: answer.fields, body: answer.body, isCutOff: answer.isCutOff)
    } catch { throw Self.error(error) }
  }

  private static func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 32 || $0 == 9 } }

  private static func body(of request: UploadRequest) throws(TransportError) -> CurlExchange.Body {
    switch request.body {
    case .none: return .none
    case .bytes(let bytes):
      guard bytes.count <= UploadRequest.partLimit else {
        throw TransportError(.request, "a body in memory has at most \(UploadRequest.partLimit) bytes")
      }
      return .bytes(bytes[...])
    case .file(let path, let size):
      do throws(FileError) {
        return .file(try FileSystem().open(path), size: size)
      } catch {
        throw TransportError(.file, "the file cannot be read")
      }
    }
  }

  private static func error(_ failure: TransportFailure) -> TransportError {
    let words = failure.words.lowercased()
    let isCut = ["eof", "reset", "syscall", "timed out", "unexpected"].contains { words.contains($0) }
    switch failure.kind {
    case .file: return TransportError(.file, "the file cannot be read, or has changed")
    case .timeOut: return TransportError(.connection, "it took too long")
    case .certificate: return TransportError(.untrusted, "its certificate is not to be trusted")
    case .tooMuch: return TransportError(.connection, "the header of its answer is too long")
    case .unusable: return TransportError(.request, "the request cannot be made (\(failure.code))")
    case .unreachable: break
    }
    switch CURLcode(UInt32(failure.code)) {
    case CURLE_SSL_CONNECT_ERROR where !isCut: return TransportError(.untrusted, "no secure connection came about")
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
      return TransportError(.connection, "there is no such host, or no network")
    case CURLE_COULDNT_CONNECT: return TransportError(.connection, "nothing answers there")
    case CURLE_OK, CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
      return TransportError(.connection, "its answer is no HTTP, or was cut off")
    default: return TransportError(.connection, "the connection was lost")
    }
  }
}

/// A client's idle handles.
final class CurlPool: Sendable {
  private let idle = Mutex<[CurlHandle]>([])

  private static let most = 8

  private let made = Mutex(0)

  var connections: Int { made.withLock { $0 } }

  func withHandle<Value: Sendable>(
    _ body: (CurlHandle) throws(TransportFailure) -> Value
  ) throws(TransportFailure) -> Value {
    guard let handle = idle.withLock({ $0.popLast() }) ?? CurlHandle() else {
      throw TransportFailure(kind: .unusable, code: 0)
    }
    defer {
      made.withLock { $0 += handle.newConnections }
      idle.withLock { if $0.count < Self.most { $0.append(handle) } }
    }
    return try body(handle)
  }
}
