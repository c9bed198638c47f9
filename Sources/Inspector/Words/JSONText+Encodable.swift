import Foundation
package import HTTPServer

extension JSONText {
  /// A value as it encodes itself; keys in alphabetical order.
  ///
  /// A number that JSON has no word for makes it null; none of this project's values has one.
  package init(encoding value: some Encodable) {
    do {
      let decoder = JSONDecoder()
      self = try decoder.decode(DecodedJSON.self, from: JSONEncoder().encode(value)).value
    } catch {
      self = .null
    }
  }

  /// An object from its members, those without a value left out.
  package static func members(_ members: (String, JSONText?)...) -> JSONText {
    .object(members.compactMap { key, value in value.map { Member(key, $0) } })
  }
}

/// Any JSON as it is read.
private struct DecodedJSON: Decodable {
  let value: JSONText

  private struct Key: CodingKey {
    let stringValue: String
    let intValue: Int? = nil
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    // What a value is not is no error here: it is asked for one kind after the other.
    if let object = try? decoder.container(keyedBy: Key.self) {
      value = .object(
        try object.allKeys.sorted { $0.stringValue < $1.stringValue }.map { key in
          Member(key.stringValue, try object.decode(DecodedJSON.self, forKey: key).value)
        })
      return
    }
    if var list = try? decoder.unkeyedContainer() {
      var values: [JSONText] = []
      while !list.isAtEnd { values.append(try list.decode(DecodedJSON.self).value) }
      value = .array(values)
      return
    }
    let single = try decoder.singleValueContainer()
    if single.decodeNil() {
      value = .null
    } else if let flag = try? single.decode(Bool.self) {
      value = .boolean(flag)
    } else if let number = try? single.decode(Int64.self) {
      value = .integer(number)
    } else if let number = try? single.decode(Double.self) {
      value = .real(number)
    } else {
      value = .string(try single.decode(String.self))
    }
  }

  private typealias Member = JSONText.Member
}
