import Platform
import SupportBundle

/// A receiver of bundles that keeps what it gets, and can be away.
final class Receiver: UploadTransport {
  private struct State {
    var bytes: [UInt8] = []
    var length = 0
    var isAway = false
    var wasDropped = false
  }

  private let state = Mutex(State())

  /// What it has so far.
  var bytes: [UInt8] { state.withLock(\.bytes) }

  /// Whether the sender took back what it had begun to send.
  var wasDropped: Bool { state.withLock(\.wasDropped) }

  /// Whether it answers with 503 instead of taking parts.
  var isAway: Bool {
    get { state.withLock(\.isAway) }
    set { state.withLock { $0.isAway = newValue } }
  }

  func send(
    _ request: UploadRequest, progress: @escaping @Sendable (Int64) -> Void
  ) throws(TransportError) -> UploadResponse {
    state.withLock { state in
      let offset = ["Tus-Resumable": "1.0.0", "Upload-Offset": String(state.bytes.count)]
      switch request.method {
      case .options:
        return UploadResponse(204, fields: ["Tus-Version": "1.0.0", "Tus-Extension": "creation,termination"])
      case .post:
        state.length = Int(request.fields["Upload-Length"] ?? "") ?? 0
        return UploadResponse(201, fields: ["Location": "/inbox/uploads/u1", "Tus-Resumable": "1.0.0"])
      case .head:
        return UploadResponse(
          200, fields: offset.merging(["Upload-Length": String(state.length)]) { first, _ in first })
      case .patch:
        if state.isAway { return UploadResponse(503, fields: ["Retry-After": "7200"]) }
        if case .bytes(let bytes) = request.body { state.bytes += bytes }
        return UploadResponse(
          204, fields: ["Tus-Resumable": "1.0.0", "Upload-Offset": String(state.bytes.count)])
      case .get:
        let receipt =
          "{\"id\": \"R-1\", \"sha256\": \"\(FileDigest(of: state.bytes).hexadecimal)\", \"bytes\": \(state.bytes.count), "
          + "\"date\": \"2026-11-21T10:11:12Z\"}"
        return UploadResponse(200, fields: ["Content-Type": "application/json"], body: Array(receipt.utf8))
      case .delete:
        state.wasDropped = true
        return UploadResponse(204)
      case .put: return UploadResponse(405)
      }
    }
  }
}
