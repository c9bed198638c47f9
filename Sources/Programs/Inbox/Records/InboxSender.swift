package import StoreFiles

/// A sender, who may send bundles by a token that only the sender has.
package struct InboxSender: Sendable, Hashable, Encodable {
  /// The name, different for each; at most ``maximumNameLength`` bytes.
  package var name: String

  /// The most bytes of bundles that are kept of this sender, unfinished uploads included.
  package var quota: Int64

  /// Since when the token is known.
  package var created: Timestamp

  /// Since when the token is revoked; nil while it is valid.
  package var revoked: Timestamp?

  /// A sender.
  package init(name: String, quota: Int64, created: Timestamp, revoked: Timestamp? = nil) {
    self.name = name
    self.quota = quota
    self.created = created
    self.revoked = revoked
  }

  /// The longest name, in bytes.
  package static let maximumNameLength = 100

  /// - Throws: `sender-name` where its name cannot be one.
  package func checkName() throws(InboxError) {
    guard !Self.isName(name) else { return }
    throw InboxError(
      .senderName, operation: "add a sender", detail: "that is no name for a sender",
      hint: "Give 1 to \(Self.maximumNameLength) bytes without control characters, and no space at either end.")
  }

  /// Whether a text can be a name: not empty, not too long, no control characters, no white space around it.
  static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= maximumNameLength && printable(text) == text
      && text.first?.isWhitespace == false && text.last?.isWhitespace == false
  }
}

/// A sender, and how many bytes are kept or announced of it.
package struct InboxSenderUsage: Sendable, Hashable {
  /// The sender.
  package var sender: InboxSender

  /// The bytes.
  package var used: Int64

  /// A sender and its bytes.
  package init(sender: InboxSender, used: Int64) {
    self.sender = sender
    self.used = used
  }
}
