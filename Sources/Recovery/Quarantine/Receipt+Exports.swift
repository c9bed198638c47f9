package import StoreFiles

extension Receipt {
  /// A bundle that was made of a quarantined store.
  package struct Export: Sendable, Hashable, Codable {
    /// When, in RFC 3339.
    package var date: String

    /// How much of the store is in it: a level of support bundles, such as `scrubbed`.
    package var level: String

    /// Where it was written.
    package var path: PathText

    /// Its size in bytes.
    package var bytes: Int64

    /// The SHA-256 of the file in hexadecimal digits.
    package var sha256: String

    /// Whether only the holders of certain keys can open it.
    package var isEncrypted: Bool

    private enum CodingKeys: String, CodingKey {
      case date
      case level
      case path
      case bytes
      case sha256
      case isEncrypted = "encrypted"
    }

    /// A bundle.
    package init(
      at date: Timestamp, level: String, path: PathText, bytes: Int64, sha256: String, isEncrypted: Bool
    ) {
      self.date = date.rfc3339
      self.level = level
      self.path = path
      self.bytes = bytes
      self.sha256 = sha256
      self.isEncrypted = isEncrypted
    }
  }

  /// A bundle that was sent: the receiver's receipt.
  package struct Delivery: Sendable, Hashable, Codable {
    /// When it was received, in RFC 3339.
    package var date: String

    /// Who received it: scheme, host and port, without any path or token.
    package var receiver: String

    /// What the receiver calls it.
    package var id: String

    /// The size of the bundle in bytes.
    package var bytes: Int64

    /// The SHA-256 of the bundle in hexadecimal digits.
    package var sha256: String

    /// A delivery.
    package init(at date: Timestamp, receiver: String, id: String, bytes: Int64, sha256: String) {
      self.date = date.rfc3339
      self.receiver = receiver
      self.id = id
      self.bytes = bytes
      self.sha256 = sha256
    }
  }

  /// The most exports, and the most deliveries, that are kept; of more, the latest are.
  private static let maximumBundles = 100

  /// Notes a bundle that was made, and adds it to the timeline.
  package mutating func add(_ export: Export, at date: Timestamp) {
    exports = ((exports ?? []) + [export]).suffix(Self.maximumBundles)
    add(Moment(.exported, at: date, words: "Level: \(export.level).", path: export.path))
  }

  /// Notes a bundle that was sent, and adds it to the timeline; one that is noted already is not noted again.
  package mutating func add(_ delivery: Delivery, at date: Timestamp) {
    let known = deliveries ?? []
    guard !known.contains(where: { $0.id == delivery.id && $0.receiver == delivery.receiver }) else { return }
    deliveries = (known + [delivery]).suffix(Self.maximumBundles)
    add(Moment(.sent, at: date, words: "To \(delivery.receiver), as \(delivery.id)."))
  }
}
