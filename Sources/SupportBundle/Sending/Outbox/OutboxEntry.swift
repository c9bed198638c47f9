internal import Foundation
internal import Lazaret
public import Platform
internal import SystemPackage

/// A bundle for one receiver.
///
/// Versioned JSON (`entry.json`); keys may be added, never changed. It contains no token.
public struct OutboxEntry: Sendable, Hashable, Codable {
  /// The state of an entry.
  public enum State: String, Sendable, Hashable, Codable {
    case waiting

    /// A process is sending it, or ended meanwhile.
    case sending

    case sent

    /// Rejected by the receiver, or altered; sent again only on request.
    case failed

    case cancelled
  }

  /// The upload protocol.
  public enum Method: String, Sendable, Hashable, Codable {
    /// In parts, by tus 1.0.
    case tus

    /// In one `PUT` request to its own address.
    case put
  }

  /// The format name, `lazaret-outbox-entry`.
  public var format = Self.format

  /// The format version: 1.
  public var version = 1

  /// The identifier: the creation time, and eight digits of the SHA-256.
  public var id: String

  /// The state.
  public var state = State.waiting

  /// The receiver's address without query.
  public var endpoint: String

  /// Whether the address had a query, which may be secret and is not stored.
  public var isAddressWithheld: Bool

  /// The upload protocol.
  public var method: Method

  /// The upload's address at the receiver, while it exists.
  public var upload: String?

  /// The expiry of a partial upload in RFC 3339, if known.
  public var expires: String?

  /// The bytes at the receiver, if known.
  public var offset: Int64 = 0

  /// The original file name.
  public var name: String

  /// The size in bytes.
  public var bytes: Int64

  /// The hexadecimal SHA-256 of the confirmed content.
  public var sha256: String

  /// How much of the store is in it; nil if encrypted and unknown.
  public var level: BundleLevel?

  /// Whether it is encrypted.
  public var isEncrypted: Bool

  /// The creation time in RFC 3339.
  public var created: String

  /// The time of the last change in RFC 3339.
  public var updated: String

  /// The number of failed tries.
  public var tries = 0

  /// The earliest automatic retry in RFC 3339, if any.
  public var nextTry: String?

  /// The code of the last try's error, if any.
  public var lastError: String?

  /// The file with the token, if any.
  public var tokenFile: PathText?

  /// The receiver's receipt, once sent.
  public var receipt: DeliveryReceipt?

  static let format = "lazaret-outbox-entry"

  private enum CodingKeys: String, CodingKey {
    case format, version, id, state, endpoint
    case isAddressWithheld = "addressWithheld"
    case method = "protocol"
    case upload, expires, offset, name, bytes, sha256, level
    case isEncrypted = "encrypted"
    case created, updated, tries, nextTry, lastError, tokenFile, receipt
  }

  init(
    _ preview: BundlePreview, id: String, to receiver: ReceiverAddress, by method: Method, tokenFile: FilePath?,
    at date: Timestamp
  ) {
    self.id = id
    endpoint = receiver.withoutQuery
    isAddressWithheld = receiver.hasQuery
    self.method = method
    name = preview.name
    bytes = preview.bytes
    sha256 = preview.sha256
    level = preview.level
    isEncrypted = preview.isEncrypted
    created = date.rfc3339
    updated = date.rfc3339
    self.tokenFile = tokenFile.map { PathText($0) }
  }

  /// Whether the entry is sent or cancelled.
  public var isOver: Bool { state == .sent || state == .cancelled }

  // MARK: Reading and writing

  private static let limit = 1 << 20

  /// - Throws: `outbox-entry-unreadable` if malformed or of a later version, or a file error.
  init(at path: FilePath, id: String, in fileSystem: FileSystem) throws {
    let bytes = try fileSystem.contents(of: path, limit: Self.limit)
    // Decoding errors are replaced by our own text.
    guard let entry = try? JSONDecoder().decode(OutboxEntry.self, from: Data(bytes)), entry.format == Self.format,
      entry.id == id, entry.bytes >= 0, entry.offset >= 0
    else { throw Self.unreadable(path, "it is not an entry of an outbox") }
    guard entry.version == 1 else {
      throw Self.unreadable(path, "it is of version \(entry.version), and this software knows version 1")
    }
    self = entry
  }

  func json() throws(FileError) -> [UInt8] { try JSON.bytes(of: self, to: "write the entry of the outbox") }

  private static func unreadable(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.entryUnreadable, operation: "read the entry of the outbox", path: path, detail: detail)
  }
}

/// A receiver's confirmation of a bundle.
public struct DeliveryReceipt: Sendable, Hashable, Codable {
  /// The receiver's identifier.
  public var id: String

  /// The hexadecimal SHA-256 of the received content.
  public var sha256: String

  /// The size in bytes.
  public var bytes: Int64

  /// The time of receipt in RFC 3339.
  public var date: String

  /// The receiver: scheme, host and port.
  public var receiver: String

  /// Whether the receiver wrote the receipt; otherwise it is derived from its answers.
  public var isReceivers: Bool

  private enum CodingKeys: String, CodingKey {
    case id, sha256, bytes, date, receiver
    case isReceivers = "byReceiver"
  }

  /// Creates a receipt.
  public init(id: String, sha256: String, bytes: Int64, date: Timestamp, receiver: String, isReceivers: Bool) {
    self.id = Self.plain(id)
    self.sha256 = sha256
    self.bytes = bytes
    self.date = date.rfc3339
    self.receiver = receiver
    self.isReceivers = isReceivers
  }

  /// Parses a receiver's JSON: `id`, `sha256`, `bytes`, `date`.
  ///
  /// - Parameter now: the default date.
  package init?(_ json: [UInt8], receiver: String, now: Timestamp) {
    struct Words: Decodable {
      var id: String
      var sha256: String
      var bytes: Int64
      var date: String?
    }
    guard json.count <= UploadResponse.bodyLimit,
      // The receiver writes no receipts.
      let words = try? JSONDecoder().decode(Words.self, from: Data(json)), !words.id.isEmpty, words.bytes >= 0
    else { return nil }
    let date = words.date.flatMap(Self.timestamp) ?? now
    self.init(
      id: words.id, sha256: words.sha256.lowercased(), bytes: words.bytes, date: date, receiver: receiver,
      isReceivers: true)
  }

  /// Parses RFC 3339 in UTC, ignoring fractions.
  private static func timestamp(_ text: String) -> Timestamp? {
    guard text.hasSuffix("Z") || text.hasSuffix("z"), text.utf8.count <= 40 else { return nil }
    return Timestamp(String(text.prefix(19)) + "Z")
  }

  private static func plain(_ text: String) -> String {
    let characters = text.unicodeScalars.prefix(200).map { scalar in
      scalar.isASCII && scalar.value > 0x20 && scalar.value < 0x7f && scalar != "<" && scalar != ">" && scalar != "\""
        ? Character(scalar) : "_"
    }
    return characters.isEmpty ? "unnamed" : String(characters)
  }

  var delivery: Receipt.Delivery {
    Receipt.Delivery(
      at: Timestamp(date) ?? Timestamp(secondsSince1970: 0), receiver: receiver, id: id, bytes: bytes, sha256: sha256)
  }
}
