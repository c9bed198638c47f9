import Foundation
import Platform
import Testing

/// The one writer of JSON, read back by Foundation.
@Suite("JSON")
struct JSONTests {
  private struct Car: Encodable {
    var name: String
    var price: Double
  }

  private func read(_ text: String) throws -> Any {
    try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
  }

  @Test("keys come in alphabetical order, slashes are plain, and a line ends behind it")
  func layout() throws {
    let value: JSON.Object = ["b": "a/b", "a": 1]
    #expect(try JSON.shown(value, .line) == "{\"a\":1,\"b\":\"a/b\"}\n")
    #expect(try JSON.bytes(of: value, to: "write it").last == UInt8(ascii: "\n"))
    #expect(try JSON.shown(value).split(separator: "\n").count == 4)
  }

  @Test("a number that JSON has no word for is an error that holds no value, and never null or an empty object")
  func failing() throws {
    for price in [Double.nan, .infinity, -.infinity] {
      let error = #expect(throws: FileError.self) {
        try JSON.bytes(of: Car(name: "secret", price: price), to: "write the car")
      }
      #expect(error?.code == "encoding-failed" && error?.operation == "write the car")
      #expect(error?.isEnvironmental == false && error.map { !"\($0)".contains("secret") } == true)
      #expect(throws: FileError.self) { try JSON.shown(["cars": [Car(name: "", price: price)]]) }
    }
  }

  @Test("members without a value are left out, unless they are said to be null")
  func members() throws {
    let none: Int? = nil
    let value: JSON.Object = ["left out": none, "null": JSON.orNull(none), "one": 1 as Int?]
    let object = try #require(try read(JSON.shown(value)) as? [String: Any])
    #expect(Set(object.keys) == ["null", "one"])
    #expect(object["null"] is NSNull && object["one"] as? Int == 1)
  }

  @Test("an object takes up the members of another value")
  func joining() throws {
    let joined = JSON.Object(JSON.Object(Car(name: "a", price: 1.5), ["doors": 4]), ["owner": ["name": "b"]])
    let object = try #require(try read(JSON.shown(joined)) as? [String: Any])
    #expect(Set(object.keys) == ["name", "price", "doors", "owner"])
    #expect(object["name"] as? String == "a" && object["doors"] as? Int == 4)
    #expect((object["owner"] as? [String: Any])?["name"] as? String == "b")
  }

  @Test("nothing in it steers a terminal or ends a script, and it says the same")
  func safety() throws {
    let text = "</script>&\u{1B}[2J\u{7F}\u{202E}\u{2028}\u{2029}\u{0}\r\n\t\"\\é🚢👩\u{200D}🚀"
    let shown = try JSON.shown(["a": text], .line, withinPages: true)
    #expect(try read(shown) as? [String: String] == ["a": text])
    let steering = shown.dropLast().unicodeScalars.filter {
      $0.value < 0x20 || $0.value == 0x7F || $0.properties.generalCategory == .format
        || ["<", ">", "&", "\u{2028}", "\u{2029}"].contains($0)
    }
    #expect(steering.isEmpty && shown.contains("é🚢"))
    // On a terminal markup is only text.
    #expect(try JSON.shown(["a": "<&>"], .line) == "{\"a\":\"<&>\"}\n")
    #expect(try !JSON.shown(["a": text], .line).contains("\u{1B}"))
    #expect(try read(JSON.literal(text)) as? String == text)
    #expect(!JSON.literal(text).contains("<") && !JSON.literal(text).contains("\n"))
  }

  @Test("a value of any shape is the same, encoded or as text in its own order")
  func values() throws {
    let value: JSON.Value = [
      "b": [1, true, .null, .real(0.5), .real(.infinity), "</a>"], "a": .members(("x", nil), ("y", "z")),
    ]
    #expect(value.text == #"{"b":[1,true,null,0.5,"inf","\u003c/a\u003e"],"a":{"y":"z"}}"#)
    let encoded = try #require(try read(JSON.shown(value)) as? NSDictionary)
    #expect(encoded == (try read(value.text) as? NSDictionary))
  }

  @Test("moments are RFC 3339")
  func moments() throws {
    let time = try #require(Timestamp("2026-11-21T10:11:12Z"))
    #expect(try JSON.shown(["t": time], .line) == "{\"t\":\"2026-11-21T10:11:12Z\"}\n")
  }
}
