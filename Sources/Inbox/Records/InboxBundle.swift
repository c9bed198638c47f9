package import Platform
package import SupportBundle

/// A bundle that arrived whole.
///
/// What the sender says of it is hostile: it is shown, bounded and escaped, and never used as a path.
package struct InboxBundle: Sendable, Hashable, Codable {
  /// How far it is.
  package enum State: String, Sendable, Hashable, Codable, CaseIterable {
    /// It waits to be opened.
    case received

    /// It is encrypted, and the key was not given to this process.
    case encrypted

    /// It is not what it should be; see ``failure``.
    case refused

    /// It was checked and unpacked, and holds no store.
    case unpacked

    /// It was checked and unpacked, and its store is in quarantine.
    case quarantined
  }

  /// Why something could not be done.
  package struct Failure: Sendable, Hashable, Codable {
    /// The stable word of the error.
    package var code: String

    /// What went wrong, as a sentence.
    package var words: String

    /// A failure.
    package init(code: String, words: String) {
      self.code = code
      self.words = words
    }
  }

  /// A file of the bag.
  package struct File: Sendable, Hashable, Codable {
    /// Its path below `data/`.
    package var name: String

    /// Its size in bytes.
    package var bytes: Int64

    /// A file.
    package init(name: String, bytes: Int64) {
      self.name = name
      self.bytes = bytes
    }
  }

  /// What it is called; also the name of its folder.
  package var id: String

  /// The name of the sender.
  package var sender: String

  /// When all of it was there, in RFC 3339.
  package var date: String

  /// The SHA-256 of the file as it arrived, in hexadecimal digits.
  package var sha256: String

  /// Its size as it arrived, in bytes.
  package var bytes: Int64

  /// The file's name, as the sender says.
  package var fileName: String?

  /// Whether it is encrypted.
  package var isEncrypted: Bool

  /// How far it is.
  package var state: State

  /// Why it was refused; nil where it was not.
  package var failure: Failure?

  /// How much of a store is in it; as the sender says until it is opened.
  package var level: String?

  /// The app, as the bundle says.
  package var app: String?

  /// The store's name, as the bundle says.
  package var store: String?

  /// What the bundle says of its store; nil until it is opened, and where it says nothing.
  package var facts: BundleFacts?

  /// What is below `data/`, by name; at most ``maximumFiles`` of them.
  package var files: [File] = []

  /// How many files there are in all.
  package var fileCount = 0

  /// The pages and the records, as the salvage report in the bundle has them; nil where it has none.
  package var account: BundleAccount?

  /// The mark of its damage; nil until it is opened, and where it says nothing of it.
  package var fingerprint: DamageFingerprint?

  /// The name of its store in quarantine, in the bundle's own folder; nil where it has none.
  package var quarantineID: String?

  /// The archive of what was unpacked; nil where that lies in the home, and where nothing was.
  package var opened: Archive?

  /// The archive of what its salvage added to that; nil where that lies in the home, and where nothing was salvaged.
  package var salvaged: Archive?

  /// The most files that are remembered by name.
  package static let maximumFiles = 1000

  /// A bundle that has just arrived.
  package init(
    id: String, sender: String, date: Timestamp, sha256: String, bytes: Int64, fileName: String?, level: String?,
    isEncrypted: Bool
  ) {
    self.id = id
    self.sender = sender
    self.date = date.rfc3339
    self.sha256 = sha256
    self.bytes = bytes
    self.fileName = fileName
    self.level = level
    self.isEncrypted = isEncrypted
    state = .received
  }

  /// It waits to be opened, as if it had just come.
  package mutating func receiveAgain() {
    state = .received
    failure = nil
  }

  /// It is refused, and nothing stays but itself.
  package mutating func refuse(_ failure: Failure) {
    state = .refused
    self.failure = failure
    quarantineID = nil
    opened = nil
    salvaged = nil
  }

  /// The archives of what was made of it, in the order in which they are unpacked.
  package var archives: [Archive] { [opened, salvaged].compactMap(\.self) }

  /// Texts by which it is found.
  package var words: String {
    [
      id, sender, sha256, fileName, app, store, state.rawValue, failure?.code, facts?.verdict, facts?.reason,
      facts?.modelVersion, facts?.versions.app, fingerprint?.group, quarantineID,
    ].compactMap(\.self).joined(separator: "\n").lowercased()
  }
}
