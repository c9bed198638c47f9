/// A receiver's answer.
public struct UploadResponse: Sendable {
  /// The three digits of its status.
  public var status: Int

  /// The header fields; names are in lower case.
  public private(set) var fields: [String: String]

  /// The body, as far as it was wanted: at most ``bodyLimit`` bytes.
  public var body: [UInt8]

  /// Whether the body was longer than was wanted.
  public var isCutOff: Bool

  /// The most bytes of a body that are read; what a receiver has to say is short.
  public static let bodyLimit = 64 << 10

  /// An answer.
  public init(_ status: Int, fields: [String: String] = [:], body: [UInt8] = [], isCutOff: Bool = false) {
    self.status = status
    self.fields = Dictionary(fields.map { ($0.key.lowercased(), $0.value) }) { first, _ in first }
    self.body = body
    self.isCutOff = isCutOff
  }

  /// The value of a field, whatever its case.
  public subscript(_ name: String) -> String? { fields[name.lowercased()] }

  /// A field that is a whole number from 0 up; nil where it is missing, or anything else.
  public func number(_ name: String) -> Int64? {
    guard let text = self[name], !text.isEmpty, text.utf8.count <= 19,
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int64(text)
  }
}
