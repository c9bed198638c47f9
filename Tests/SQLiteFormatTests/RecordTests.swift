import SQLiteFormat
import Testing

@Suite("Varints, values and records")
struct RecordTests {
  @Test("A varint of every length is read, and a cut one is not")
  func varints() {
    let cases: [(Int64, [UInt8])] = [
      (0, [0]), (127, [0x7f]), (128, [0x81, 0]), (16383, [0xff, 0x7f]), (16384, [0x81, 0x80, 0]),
      (2_097_152, [0x81, 0x80, 0x80, 0]), (-1, [UInt8](repeating: 0xff, count: 9)),
      (.min, [0xc0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]), (.max, [0xbf] + [UInt8](repeating: 0xff, count: 8)),
      ((1 << 56) - 1, [UInt8](repeating: 0xff, count: 7) + [0x7f]),
      (1 << 56, [0x80, 0xc0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]),
    ]
    for (value, bytes) in cases {
      var offset = 0
      #expect(Varint.read(bytes.span, at: &offset, before: bytes.count) == value)
      #expect(offset == bytes.count)
      #expect(Varint.length(of: value) == bytes.count)
      for end in 0..<bytes.count {
        offset = 0
        #expect(Varint.read(bytes.span, at: &offset, before: end) == nil)
        #expect(offset == 0)
      }
    }
    var offset = -1
    #expect(Varint.read([1, 2].span, at: &offset, before: 9) == nil)
    offset = 2
    #expect(Varint.read([1, 2].span, at: &offset, before: 9) == nil)
  }

  @Test("Every serial type is decoded")
  func serialTypes() throws {
    let body: [UInt8] =
      [0xff] + [0x80, 0] + [0xff, 0xff, 0xfe] + [0x7f, 0xff, 0xff, 0xff] + [0x80, 0, 0, 0, 0, 0]
      + [0, 0, 0, 0, 0, 0, 1, 0] + [0x3f, 0xf8, 0, 0, 0, 0, 0, 0] + [0xaa, 0xbb] + [0x68, 0x69]
    let payload: [UInt8] = [12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16] + body
    // The text's serial type is behind the header's end here, so the header is one byte longer.
    let whole = [13] + Array(payload[1..<12]) + [17] + body
    let record = try #require(Record(payload: whole[...], encoding: .utf8))
    #expect(record.columnCount == 12)
    #expect(
      record.values == [
        .null, .integer(-1), .integer(-32768), .integer(-2), .integer(0x7fff_ffff), .integer(-0x8000_0000_0000),
        .integer(256), .real(1.5), .integer(0), .integer(1), .blob([0xaa, 0xbb]), .text(EncodedText("hi")),
      ])
    #expect(record.isWellFormed)
    for column in 0..<12 { #expect(record.value(at: column) == record.values[column]) }
    #expect(record.value(at: 12) == nil)
    #expect(record.value(at: -1) == nil)
  }

  @Test("A record that is cut gives the columns that are there")
  func cutRecord() throws {
    let payload: [UInt8] = [4, 1, 17, 18, 7, 0x68, 0x69, 1, 2, 3]
    let whole = try #require(Record(payload: payload[...], encoding: .utf8))
    #expect(whole.isWellFormed && whole.isComplete)
    let cut = try #require(Record(payload: payload[..<8], payloadLength: 10, encoding: .utf8))
    #expect(!cut.isComplete)
    #expect(cut.value(at: 1) == .text(EncodedText("hi")))
    #expect(cut.value(at: 2) == nil)
    #expect(cut.values == [.integer(7), .text(EncodedText("hi")), .null])
    // Behind a column whose bytes are missing nothing is believed, not even what needs no bytes.
    let middle = try #require(Record(payload: [4, 32, 9, 9, 1, 2], payloadLength: 14, encoding: .utf8))
    #expect(middle.values == [.null, .null, .null])
    #expect(middle.value(at: 1) == nil)
    #expect(Record(payload: payload[..<3], encoding: .utf8) == nil)
    #expect(Record(payload: [], encoding: .utf8) == nil)
    #expect(Record(payload: [0], encoding: .utf8) == nil)
  }

  @Test("Reserved serial types, and text of a wrong length, are not well-formed")
  func malformed() throws {
    #expect(try #require(Record(payload: [2, 10], encoding: .utf8)).isWellFormed == false)
    #expect(try #require(Record(payload: [2, 1], encoding: .utf8)).isWellFormed == false)
    #expect(try #require(Record(payload: [2, 1, 5, 6], encoding: .utf8)).isWellFormed == false)
    #expect(try #require(Record(payload: [2, 1, 5], encoding: .utf8)).isWellFormed)
    #expect(try #require(Record(payload: [2, 0x81], encoding: .utf8)).values == [])
  }

  @Test("Not-a-number is NULL, as SQLite reads it")
  func notANumber() throws {
    let record = try #require(Record(payload: [2, 7, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], encoding: .utf8))
    #expect(record.values == [.null])
  }

  @Test("Text is kept as bytes in its encoding, valid or not")
  func text() {
    for encoding in [TextEncoding.utf8, .utf16LittleEndian, .utf16BigEndian] {
      let text = EncodedText("aé𝄞", encoding: encoding)
      #expect(text.string == "aé𝄞")
      #expect(text.isValid)
    }
    #expect(EncodedText("a", encoding: .utf16LittleEndian).bytes == [0x61, 0])
    #expect(EncodedText("a", encoding: .utf16BigEndian).bytes == [0, 0x61])
    let broken = EncodedText(bytes: [0x61, 0xff], encoding: .utf8)
    #expect(!broken.isValid)
    #expect(broken.string == "a\u{fffd}")
    let odd = EncodedText(bytes: [0x61, 0, 0x62], encoding: .utf16LittleEndian)
    #expect(!odd.isValid)
    #expect(odd.string == "a")
    let halfPair = EncodedText(bytes: [0, 0xd8], encoding: .utf16LittleEndian)
    #expect(!halfPair.isValid)
  }
}
