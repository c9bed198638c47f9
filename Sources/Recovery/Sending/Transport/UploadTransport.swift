/// What carries requests to a receiver: the network, or a test.
///
/// One request at a time; nothing is retried, and no redirection is followed here.
public protocol UploadTransport: Sendable {
  /// Sends a request and waits for its answer.
  ///
  /// - Parameter progress: called with the bytes of the body that have gone out, as far as that is known.
  /// - Throws: ``TransportError`` where no answer came.
  func send(
    _ request: UploadRequest, progress: @escaping @Sendable (Int64) -> Void
  ) throws(TransportError) -> UploadResponse
}
