package import Sending
package import StoreCoordination

/// Who receives bundles that are sent from the inspector.
package struct InspectorReceiver: Sendable {
  /// Where they go.
  package var address: ReceiverAddress

  /// The file with the word by which the receiver knows the sender; nil for none.
  package var tokenFile: FilePath?

  /// A receiver.
  package init(_ address: ReceiverAddress, tokenFile: FilePath? = nil) {
    self.address = address
    self.tokenFile = tokenFile
  }
}
