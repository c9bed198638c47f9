internal import Foundation
public import Platform
internal import SystemPackage

/// One bundle on its way to one receiver.
///
/// Versioned JSON (`entry.json`); keys may be added, never changed. No token is in it.
public struct OutboxEntry: Sendable, Hashable, Codable {
  /// What has become of it.
  public enum State: String, Sendable, Hashable, Codable {
    /// It waits to be sent, or to be sent on.
    case waiting

    /// A process is sending it, or was when it ended.
    case sending

    case sent

    /// The receiver refused it, or the bundle was altered; it is not sent again unless the user asks.
    case failed

    /// The user took it back.
    case cancelled
  }

  /// How it is sent.
  public enum Method: String, Sendable, Hashable, Codable {
    /// In parts, by tus 1.0.
    case tus

    /// In one piece, by `PUT` to its own address.
    case put
  }

  /// The name of the format: always `lazaret-outbox-entry`.
  public var format = Self.format

  /// The version of the format: 1.
  public var version = 1

  /// What the outbox calls it: the time it was put there, and the first eight digits of its SHA-256.
  public var id: String

  /// What has become of it.
  public var state: State

  /// To whom it goes: the address up to the end of its path.
  public var endpoint: String

  /// Whether the address went on behind its path; that part can be a secret, is not kept, and must be given anew.
  public var isAddressWithheld: Bool

  /// How it is sent.
  public var method: Method

  /// Where it is at the receiver's; nil before it was announced there, and when that is over.
  public var upload: String?

  /// Until when the receiver keeps an unfinished one, in RFC 3339; nil where it did not say.
  public var expires: String?

  /// How many bytes the receiver has, as far as it said.
  public var offset: Int64

  /// The file's name as it was given.
  public var name: String

  /// Its size in bytes.
  public var bytes: Int64

  /// Its SHA-256 in hexadecimal digits: of what was shown, and of nothing else.
  public var sha256: String

  /// How much of the store is in it; nil where it is encrypted and nothing else tells.
  public var level: BundleLevel?

  /// Whether only the holders of certain keys can open it.
  public var isEncrypted: Bool

  /// When it was put into the outbox, in RFC 3339.
  public var created: String

  /// When this was last changed, in RFC 3339.
  public var updated: String

  /// How often sending it was tried in vain.
  public var tries: Int

  /// Before when it is not tried again unless the user asks, in RFC 3339; nil for at any time.
  public var nextTry: String?

  /// The code of the error that ended the last try; nil for none.
  public var lastError: String?

  /// The file that the token is read from; nil where it comes from elsewhere.
  public var tokenFile: PathText?

  /// The receiver's receipt; nil before it was sent.
  public var receipt: DeliveryReceipt?

  /// What `format` says.
  static let format = "lazaret-outbox-entry"

  private enum CodingKeys: String, CodingKey {
    case format
    case version
    case id
    case state
    case endpoint
    case isAddressWithheld = "addressWithheld"
    case method = "protocol"
    case upload
    case expires
    case offset
    case name
    case bytes
    case sha256
    case level
    case isEncrypted = "encrypted"
    case created
    case updated
    case tries
    case nextTry
    case lastError
    case tokenFile
    case receipt
  }

  /// The entry for a bundle that has not been announced to a receiver.
  init(
    id: String, to receiver: ReceiverAddress, by method: Method, name: String, bytes: Int64, sha256: String,
    level: BundleLevel?, isEncrypted: Bool, tokenFile: FilePath?, at date: Timestamp
  ) {
    self.id = id
    state = .waiting
    endpoint = receiver.withoutQuery
    isAddressWithheld = receiver.hasQuery
    self.method = method
    offset = 0
    self.name = name
    self.bytes = bytes
    self.sha256 = sha256
    self.level = level
    self.isEncrypted = isEncrypted
    created = date.rfc3339
    updated = date.rfc3339
    tries = 0
    self.tokenFile = tokenFile.map { PathText($0) }
  }

  /// Whether nothing more happens to it.
  public var isOver: Bool { state == .sent || state == .cancelled }

  // MARK: Reading and writing

  private static let limit = 1 << 20

  /// Reads an entry.
  ///
  /// - Throws: `outbox-entry-unreadable` where it is none, or of a later version, or what the file system says.
  init(at path: FilePath, id: String, in fileSystem: FileSystem) throws {
    let bytes = try fileSystem.contents(of: path, limit: Self.limit)
    // Why it cannot be read is told in our own words.
    guard let entry = try? JSONDecoder().decode(OutboxEntry.self, from: Data(bytes)), entry.format == Self.format,
      entry.id == id, entry.bytes >= 0, entry.offset >= 0
    else { throw Self.unreadable(path, "it is not an entry of an outbox") }
    guard entry.version == 1 else {
      throw Self.unreadable(path, "it is of version \(entry.version), and this software knows version 1")
    }
    self = entry
  }

  /// The entry as the JSON text that is written.
  func json() throws(FileError) -> [UInt8] { try JSON.bytes(of: self, to: "write the entry of the outbox") }

  private static func unreadable(_ path: FilePath, _ detail: String) -> SendingError {
    SendingError(.entryUnreadable, operation: "read the entry of the outbox", path: path, detail: detail)
  }
}
