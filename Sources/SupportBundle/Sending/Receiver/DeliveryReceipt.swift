internal import Foundation
internal import Lazaret
public import Platform

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
    case id
    case sha256
    case bytes
    case date
    case receiver
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
