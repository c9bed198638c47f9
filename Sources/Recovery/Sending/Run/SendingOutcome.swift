/// What came of sending a bundle.
public struct SendingOutcome: Sendable {
  /// The receiver's receipt.
  public var receipt: DeliveryReceipt

  /// Whether the receiver had the bundle before, so that nothing was sent.
  public var wasThere: Bool

  /// The names of the quarantined stores whose receipts say so now.
  public var quarantined: [String]

  /// What kept the receipt from being noted with a quarantined store; nil where nothing did.
  public var problem: SendingError?
}
