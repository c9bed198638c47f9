import Sending
import StoreCoordination

extension Sender {
  /// Sends an entry, shows on the terminal how far it is, and ends with Ctrl-C.
  func sendShowing(
    _ id: String, as token: AccessToken?, to address: ReceiverAddress?
  ) throws(SendingError) -> SendingOutcome {
    let progress = ProgressLine()
    defer { progress.clear() }
    Interruption.listen()
    return try send(
      id, as: token, to: address, progress: { progress.show($0) }, isStopped: { Interruption.isRequested })
  }
}
