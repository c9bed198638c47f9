import Foundation
import Platform
import TestSupport
import Testing

@Suite struct BinaryPropertyListTests {
  static let sample: PropertyList = .dictionary([
    "text": .string("plain"), "umlaut": .string("größer 🚢"), "empty": .string(""),
    "long": .string(String(repeating: "x", count: 300)), "small": .integer(7), "byte": .integer(255),
    "word": .integer(65_535), "long integer": .integer(4_294_967_296), "negative": .integer(-1),
    "least": .integer(.min), "most": .integer(.max), "beyond": .unsigned(.max), "half": .real(0.5),
    "minus zero": .real(-0.0), "zero": .real(0), "date": .date(600_000_000.25), "data": .data([0, 1, 255]),
    "yes": .boolean(true), "no": .boolean(false),
    "list": .array([.integer(1), .string("plain"), .array([]), .dictionary([:])]),
  ])

  @Test func givesBackWhatWasWritten() throws {
    let bytes = try Self.sample.binaryBytes()
    #expect(try PropertyList(bytes) == Self.sample)
    #expect(try PropertyList(bytes)["minus zero"]?.real?.sign == .minus)
    #expect(try PropertyList(bytes).binaryBytes() == bytes)
  }

  @Test func isReadByFoundation() throws {
    let bytes = try Self.sample.binaryBytes()
    let object = try unsafe PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
    let dictionary = try #require(object as? [String: Any])
    #expect(dictionary["umlaut"] as? String == "größer 🚢")
    #expect(dictionary["negative"] as? Int == -1)
    #expect(dictionary["long integer"] as? Int == 4_294_967_296)
    #expect(dictionary["date"] as? Date == Date(timeIntervalSinceReferenceDate: 600_000_000.25))
    #expect(dictionary["data"] as? Data == Data([0, 1, 255]))
    #expect((dictionary["list"] as? [Any])?.count == 4)
    #expect(dictionary.count == 20)
  }

  @Test func readsWhatFoundationWrites() throws {
    let object: [String: Any] = [
      "text": "größer", "number": 300, "list": [1, 2, 3, "a"], "data": Data(repeating: 9, count: 400),
      "date": Date(timeIntervalSinceReferenceDate: 12.5), "real": 1.25, "flag": true,
    ]
    let data = try PropertyListSerialization.data(fromPropertyList: object, format: .binary, options: 0)
    let list = try PropertyList(Array(data))
    #expect(list["text"]?.string == "größer")
    #expect(list["number"]?.integer == 300)
    #expect(list["list"]?.array?.count == 4)
    #expect(list["data"]?.data == [UInt8](repeating: 9, count: 400))
    #expect(list["date"] == .date(12.5))
    #expect(list["flag"]?.boolean == true)
  }

  @Test func writesManyObjectsWithWiderReferences() throws {
    let list = PropertyList.array((0..<70_000).map { .integer(Int64($0)) })
    #expect(try PropertyList(list.binaryBytes()) == list)
  }

  @Test func writesUIDs() throws {
    let list = PropertyList.array([.uid(0), .uid(255), .uid(256), .uid(70_000), .uid(1 << 40)])
    #expect(try PropertyList(list.binaryBytes()) == list)
  }

  /// Objects by hand: `bplist00`, objects, offsets of one byte, trailer.
  private func handMade(_ objects: [[UInt8]], top: UInt8 = 0) -> [UInt8] {
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
      offsets.append(UInt8(bytes.count))
      bytes += object
    }
    let table = UInt8(bytes.count)
    bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
    bytes += [0, 0, 0, 0, 0, 0, 0, UInt8(objects.count)] + [0, 0, 0, 0, 0, 0, 0, top] + [0, 0, 0, 0, 0, 0, 0, table]
    return bytes
  }

  @Test func readsAHandMadeList() throws {
    #expect(
      try PropertyList(handMade([[0xA2, 1, 2], [0x10, 5], [0x51, 0x61]])) == .array([.integer(5), .string("a")]))
  }

  @Test(arguments: [
    ("a list that contains itself", [[0xA1, 0]] as [[UInt8]]),
    ("two lists that contain each other", [[0xA1, 1], [0xA1, 0]]),
    ("a reference beyond the table", [[0xA1, 9]]),
    ("a length beyond the file", [[0x5F, 0x13, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]]),
    ("a negative length", [[0x4F, 0x13, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]]),
    ("a length without an integer", [[0x5F, 0x51, 0x61]]),
    ("a dictionary whose key is a number", [[0xD1, 1, 1], [0x10, 5]]),
    ("a dictionary with a key twice", [[0xD2, 1, 1, 1, 1], [0x51, 0x61]]),
    ("an unknown object", [[0x70]]),
    ("an integer of 32 bytes", [[0x15] + [UInt8](repeating: 0, count: 32)]),
    ("text that is not ASCII", [[0x51, 0xFF]]),
  ])
  func refuses(_ what: String, _ objects: [[UInt8]]) {
    #expect(throws: FileError.self, "\(what)") { try PropertyList(handMade(objects)) }
  }

  @Test func refusesObjectsThatOverlap() throws {
    // Forty list objects that all lie on the same bytes.
    var bytes = Array("bplist00".utf8)
    bytes += [0xAF, 0x10, 39] + (1...39).map { UInt8($0) }
    let table = UInt8(bytes.count)
    bytes += [8] + [UInt8](repeating: 8, count: 39) + [0, 0, 0, 0, 0, 0, 1, 1]
    bytes += [0, 0, 0, 0, 0, 0, 0, 40] + [0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, table]
    #expect { try PropertyList(bytes) } throws: { ($0 as? FileError)?.detail.contains("overlap") == true }
  }

  @Test func refusesAListThatUnfoldsWithoutEnd() {
    // Thirty lists, each holding the next one sixteen times.
    var objects: [[UInt8]] = []
    for index in 0..<12 { objects.append([0xAE] + [UInt8](repeating: UInt8(index + 1), count: 14)) }
    objects.append([0x09])
    #expect { try PropertyList(handMade(objects)) } throws: {
      ($0 as? FileError)?.kind == .propertyListTooLarge
    }
  }

  @Test func refusesDeepNesting() {
    var objects: [[UInt8]] = []
    for index in 0..<110 { objects.append([0xA1, UInt8(index + 1)]) }
    objects.append([0x09])
    #expect { try PropertyList(handMade(objects)) } throws: {
      ($0 as? FileError)?.kind == .propertyListTooLarge
    }
  }

  @Test func refusesATruncatedList() throws {
    let bytes = try Self.sample.binaryBytes()
    for length in 0..<bytes.count {
      #expect(throws: FileError.self) { try PropertyList(Array(bytes[..<length])) }
    }
  }

  @Test func survivesMutations() throws {
    let rounds = mutationCount(usually: 3000)
    let seed = UInt64.random(in: 0...UInt64.max)
    print("mutations of a property list: \(rounds), seed \(seed)")
    var mutation = Mutation(seed: seed)
    let bytes = try Self.sample.binaryBytes()
    for _ in 0..<rounds {
      let damaged = mutation.apply(to: bytes)
      do {
        _ = try PropertyList(damaged).binaryBytes()
      } catch {
        #expect(!error.detail.isEmpty)
      }
    }
  }
}
