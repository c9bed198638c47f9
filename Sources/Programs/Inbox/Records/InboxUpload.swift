package import StoreFiles

/// A file on its way in: how much of it there is.
package struct InboxUpload: Sendable, Hashable, Codable {
  /// How far an upload is.
  package enum State: String, Sendable, Hashable, Codable {
    /// Bytes are still to come, or all are there and not checked yet.
    case open

    /// It is a bundle of the inbox.
    case finished

    /// It expired, was ended by its sender, or was not what its sum says.
    case dropped
  }

  /// What it is called in its address; also the name of its file.
  package var id: String

  /// The name of the sender.
  package var sender: String

  /// How many bytes it has in all.
  package var length: Int64

  /// How many of them are on the disk.
  package var offset: Int64 = 0

  /// The SHA-256 that the sender says it has, in hexadecimal digits; nil where it does not say.
  package var sha256: String?

  /// The file's name, as the sender says; never used as a path.
  package var fileName: String?

  /// How much of a store is in it, as the sender says.
  package var level: String?

  /// What the sender said of it, as it was sent.
  package var metadata: String = ""

  /// When it was begun.
  package var created: String

  /// Until when it is kept unless more of it comes, in seconds since 1970.
  package var expires: Int64

  /// The process that it comes in by, where several receive in one inbox.
  package var frontEnd: String?

  /// How far it is.
  package var state = State.open

  /// The bundle that it became; an earlier one where the same was sent before.
  package var bundle: String?

  /// How many uploads that are not over are read at a time.
  static let readAtOnce = 1000

  /// The most uploads that are over and not forgotten, of one sender.
  package static let maximumEnded = 1000

  /// All of it is there, and it is a bundle.
  package mutating func finish(as bundle: String) {
    state = .finished
    offset = length
    self.bundle = bundle
  }

  /// An upload of which nothing has come yet.
  package init(id: String, sender: String, length: Int64, created: Timestamp, expires: Timestamp) {
    self.id = id
    self.sender = sender
    self.length = length
    self.created = created.rfc3339
    self.expires = expires.secondsSince1970
  }
}
