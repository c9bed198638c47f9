/// What takes the body of one request piece by piece, as it comes in, so that it is never in memory as a whole.
///
/// All calls come one after another, from the connection's own thread, which may wait within them.
package protocol BodyConsumer: AnyObject {
  /// Takes the next piece, of at most as many bytes as the connection's buffer has.
  ///
  /// What it throws ends the taking: what is still to come is dropped, and the error is the answer.
  func take(_ bytes: [UInt8]) throws

  /// The answer, once every byte has come.
  func finish() -> Response

  /// Told in place of ``finish()`` where the rest does not come: the connection broke, its client was too slow, or the body
  /// had more bytes than it may.
  func abandon()
}

/// How a request with a body is taken in; decided by its header, before a byte of the body is read.
package enum BodyIntake {
  /// No byte of the body is read; this is the answer, and the connection ends.
  case refused(Response)

  /// The body goes to a consumer, up to a limit in bytes.
  case stream(limit: Int64, any BodyConsumer)
}
