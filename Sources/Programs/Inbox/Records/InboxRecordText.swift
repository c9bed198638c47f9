internal import Foundation
internal import StoreFiles

/// Values of the records as JSON text, which databases keep.
package enum InboxRecordText {
  /// A value as JSON text.
  ///
  /// - Throws: `encoding-failed`.
  package static func text(_ value: some Encodable) throws -> String {
    String(decoding: try JSON.bytes(of: value, .line, to: "keep the records of the inbox"), as: UTF8.self)
  }

  /// A value of JSON text.
  package static func value<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
    try JSONDecoder().decode(type, from: Data(text.utf8))
  }
}
