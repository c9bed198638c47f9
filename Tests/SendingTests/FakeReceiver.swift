import Foundation
import Platform
import SupportBundle

/// A receiver in memory: tus 1.0 and `PUT`, with troubles that a test orders.
final class FakeReceiver: UploadTransport {
  /// What goes wrong with the next request of a method.
  enum Trouble: Sendable {
    /// The line breaks before anything arrives.
    case unreachable

    /// The line breaks when a share of the body has arrived; the answer is lost.
    case cut(Double)

    /// It is answered so, and nothing is done.
    case answer(UploadResponse)

    /// It is done, and answered so.
    case lie(UploadResponse)

    /// All uploads are forgotten, and then it is done.
    case forget
  }

  struct Upload: Sendable {
    var length: Int64
    var metadata: UploadMetadata
    var bytes: [UInt8] = []
  }

  struct State: Sendable {
    var uploads: [String: Upload] = [:]
    var puts: [[UInt8]] = []
    var requests: [UploadRequest] = []
    var troubles: [UploadRequest.Method: [Trouble]] = [:]
    var deleted: [String] = []
    var received: Int64 = 0
    var next = 1
  }

  /// Whether it writes receipts, checks sums, knows bundles again, and says what it can do.
  let isOurs: Bool
  let origin: String
  let state = Mutex(State())

  init(origin: String = "https://support.example.com", isOurs: Bool = true) {
    self.origin = origin
    self.isOurs = isOurs
  }

  var endpoint: String { "\(origin)/inbox/uploads" }
  var requests: [UploadRequest] { state.withLock { $0.requests } }
  var methods: [String] { requests.map(\.method.rawValue) }
  var complete: [[UInt8]] {
    state.withLock { state in
      state.uploads.values.filter { Int64($0.bytes.count) == $0.length }.map(\.bytes)
    }
  }

  func order(_ method: UploadRequest.Method, _ troubles: Trouble...) {
    state.withLock { $0.troubles[method, default: []] += troubles }
  }

  func send(
    _ request: UploadRequest, progress: @escaping @Sendable (Int64) -> Void
  ) throws(TransportError) -> UploadResponse {
    let trouble = state.withLock { state -> Trouble? in
      state.requests.append(request)
      guard state.troubles[request.method]?.isEmpty == false else { return nil }
      return state.troubles[request.method]?.removeFirst()
    }
    let body: [UInt8]
    switch request.body {
    case .none: body = []
    case .bytes(let bytes): body = bytes
    case .file(let path, _):
      do { body = try FileSystem().contents(of: path, limit: 1 << 30) } catch { throw TransportError(.file, "gone") }
    }
    switch trouble {
    case nil: break
    case .unreachable: throw TransportError(.connection, "nothing answers there")
    case .cut(let share):
      _ = respond(request, Array(body.prefix(Int(Double(body.count) * share))), isCut: true)
      throw TransportError(.connection, "the connection was lost")
    case .answer(let response): return response
    case .lie(let response):
      _ = respond(request, body)
      return response
    case .forget: state.withLock { $0.uploads = [:] }
    }
    progress(Int64(body.count))
    return respond(request, body)
  }

  /// What a receiver does with a request.
  func respond(_ request: UploadRequest, _ body: [UInt8], isCut: Bool = false) -> UploadResponse {
    state.withLock { state in
      let name = request.address.lastComponent
      switch request.method {
      case .options:
        return isOurs
          ? UploadResponse(
            204,
            fields: [
              "Tus-Resumable": "1.0.0", "Tus-Version": "1.0.0", "Tus-Max-Size": "1000000000",
              "Tus-Extension": "creation,expiration,termination,checksum", "Tus-Checksum-Algorithm": "sha1,sha256",
            ]) : UploadResponse(405)
      case .post:
        guard let length = request.fields["Upload-Length"].flatMap({ Int64($0) }),
          let metadata = UploadMetadata(request.fields["Upload-Metadata"] ?? "")
        else { return UploadResponse(400) }
        let known = state.uploads.first { _, upload in
          Int64(upload.bytes.count) == upload.length && upload.length == length
            && upload.metadata["sha256"] == metadata["sha256"]
        }
        if isOurs, let known {
          return UploadResponse(
            201, fields: ["Location": "/inbox/uploads/\(known.key)", "Upload-Offset": "\(length)"])
        }
        let id = "u\(state.next)"
        state.next += 1
        state.uploads[id] = Upload(length: length, metadata: metadata)
        return UploadResponse(
          201,
          fields: ["Location": "/inbox/uploads/\(id)", "Upload-Expires": "Sun, 22 Nov 2026 10:11:12 GMT"])
      case .head:
        guard let upload = state.uploads[name] else { return UploadResponse(404) }
        return UploadResponse(
          200, fields: ["Upload-Offset": "\(upload.bytes.count)", "Upload-Length": "\(upload.length)"])
      case .patch:
        guard let upload = state.uploads[name] else { return UploadResponse(404) }
        guard request.fields["Upload-Offset"] == "\(upload.bytes.count)" else { return UploadResponse(409) }
        if !isCut, let field = request.fields["Upload-Checksum"] {
          guard let sum = UploadChecksum(field),
            sum.sum.map({ ($0 < 16 ? "0" : "") + String($0, radix: 16) }).joined() == FileDigest(of: body).hexadecimal
          else { return UploadResponse(460) }
        }
        guard Int64(upload.bytes.count + body.count) <= upload.length else { return UploadResponse(413) }
        state.uploads[name]?.bytes += body
        state.received += Int64(body.count)
        return UploadResponse(204, fields: ["Upload-Offset": "\(upload.bytes.count + body.count)"])
      case .delete:
        guard state.uploads.removeValue(forKey: name) != nil else { return UploadResponse(404) }
        state.deleted.append(name)
        return UploadResponse(204)
      case .get:
        guard isOurs else { return UploadResponse(404) }
        guard let upload = state.uploads[name], Int64(upload.bytes.count) == upload.length else {
          return UploadResponse(404)
        }
        return Self.receipt(id: name, upload.bytes)
      case .put:
        state.puts.append(body)
        state.received += Int64(body.count)
        return isOurs ? Self.receipt(id: "put-1", body) : UploadResponse(200)
      }
    }
  }

  static func receipt(id: String, _ bytes: [UInt8]) -> UploadResponse {
    let text =
      "{\"id\": \"\(id)\", \"sha256\": \"\(FileDigest(of: bytes).hexadecimal)\", \"bytes\": \(bytes.count), "
      + "\"date\": \"2026-11-21T10:20:30Z\"}"
    return UploadResponse(200, fields: ["Content-Type": "application/json"], body: Array(text.utf8))
  }
}

/// A clock that a test moves.
final class TestClock: Sendable {
  private let state = Mutex((seconds: Int64(0), pauses: [Duration]()))

  var pauses: [Duration] { state.withLock { $0.pauses } }

  func pass(_ seconds: Int64) { state.withLock { $0.seconds += seconds } }

  private var date: Timestamp {
    let start = Timestamp("2026-11-21T10:11:12Z")?.secondsSince1970 ?? 0
    return Timestamp(secondsSince1970: start + state.withLock { $0.seconds })
  }

  var clock: SendingClock {
    SendingClock(
      now: { self.date }, elapsed: { .seconds(self.state.withLock { $0.seconds }) },
      pause: { span, _ in
        self.state.withLock { state in
          state.pauses.append(span)
          state.seconds += Int64((span / .seconds(1)).rounded(.up))
        }
      })
  }

  func surroundings(_ fileSystem: FileSystem = FileSystem()) -> Surroundings {
    Surroundings(fileSystem: fileSystem, now: { self.date }, makeUUID: { UniversalIdentifier.random() })
  }
}
