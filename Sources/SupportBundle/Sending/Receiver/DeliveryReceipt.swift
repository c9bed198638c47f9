internal import Foundation
internal import Lazaret
public import Platform

/// A receiver's receipt: that it has the bundle, and what it calls it.
public struct DeliveryReceipt: Sendable, Hashable, Codable {
  /// What the receiver calls it.
  public var id: String

  /// The SHA-256 of what was received, in hexadecimal digits.
  public var sha256: String

  /// Its size in bytes.
  public var bytes: Int64

  /// When it was received, in RFC 3339.
  public var date: String

  /// Who received it: scheme, host and port.
  public var receiver: String

  /// Whether the receiver itself wrote the receipt; if not, it was made here of what the receiver did say.
  public var isReceivers: Bool

  private enum CodingKeys: String, CodingKey {
    case id
    case sha256
    case bytes
    case date
    case receiver
    case isReceivers = "byReceiver"
  }

  /// A receipt.
  public init(id: String, sha256: String, bytes: Int64, date: Timestamp, receiver: String, isReceivers: Bool) {
    self.id = Self.plain(id)
    self.sha256 = sha256
    self.bytes = bytes
    self.date = date.rfc3339
    self.receiver = receiver
    self.isReceivers = isReceivers
  }

  /// What a receiver says in JSON: `id`, `sha256`, `bytes`, `date`; nil where that is not what it says.
  ///
  /// - Parameter now: the date where the receiver's is none.
  package init?(_ json: [UInt8], receiver: String, now: Timestamp) {
    struct Words: Decodable {
      var id: String
      var sha256: String
      var bytes: Int64
      var date: String?
    }
    guard json.count <= UploadResponse.bodyLimit,
      // Anything else than these keys is no receipt: the receiver is one that writes none.
      let words = try? JSONDecoder().decode(Words.self, from: Data(json)), !words.id.isEmpty, words.bytes >= 0
    else { return nil }
    let date = words.date.flatMap(Self.timestamp) ?? now
    self.init(
      id: words.id, sha256: words.sha256.lowercased(), bytes: words.bytes, date: date, receiver: receiver,
      isReceivers: true)
  }

  /// A moment in RFC 3339 and UTC, whatever follows its seconds.
  private static func timestamp(_ text: String) -> Timestamp? {
    guard text.hasSuffix("Z") || text.hasSuffix("z"), text.utf8.count <= 40 else { return nil }
    return Timestamp(String(text.prefix(19)) + "Z")
  }

  /// A name that a receiver gave, as it can be printed anywhere.
  private static func plain(_ text: String) -> String {
    let characters = text.unicodeScalars.prefix(200).map { scalar in
      scalar.isASCII && scalar.value > 0x20 && scalar.value < 0x7f && scalar != "<" && scalar != ">" && scalar != "\""
        ? Character(scalar) : "_"
    }
    return characters.isEmpty ? "unnamed" : String(characters)
  }

  /// The same as the receipt of a quarantined store has it.
  var delivery: Receipt.Delivery {
    Receipt.Delivery(
      at: Timestamp(date) ?? Timestamp(secondsSince1970: 0), receiver: receiver, id: id, bytes: bytes, sha256: sha256)
  }
}
