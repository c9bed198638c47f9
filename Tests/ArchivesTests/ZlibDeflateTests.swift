import Platform
import TestSupport
import Testing

/// What packs where libdeflate is not, against libdeflate and gzip.
struct ZlibDeflateTests {
  private static func content(_ count: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: 11)
    return (0..<count).map { _ in UInt8.random(in: 0...40, using: &generator) }
  }

  /// A gzip member of a DEFLATE stream with room at both ends.
  private static func member(_ packed: [UInt8], of content: [UInt8]) -> [UInt8] {
    func bytes(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
    var member = packed
    member.replaceSubrange(0..<10, with: [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])
    member.replaceSubrange(
      (member.count - 8)..<member.count,
      with: bytes(ZlibDeflate.crc32(content[...])) + bytes(UInt32(truncatingIfNeeded: content.count)))
    return member
  }

  @Test(arguments: [0, 1, 1000, 300_000], [1, 6, 12])
  func whatItPacksIsUnpackedByOthers(_ count: Int, _ level: Int) throws {
    let content = Self.content(count)
    let packed = try #require(ZlibDeflate(level: level)).pack(content, headerLength: 10, trailerLength: 8)
    let member = Self.member(packed, of: content)
    #expect(Deflate.unpack(member: member, count: count) == content)
    #expect(ZlibDeflate.unpack(member: member, count: count) == content)
    for (bytes, length) in [(member + [0], count), (member, count + 1), (Array(member.dropLast()), count)] {
      #expect(Deflate.unpack(member: bytes, count: length) == nil)
      #expect(ZlibDeflate.unpack(member: bytes, count: length) == nil)
    }
    let folder = try TemporaryFolder()
    try folder.write(member, to: "a.gz")
    let run = try ChildProcess.run("gzip", ["-t", "a.gz"], in: folder.path)
    #expect(run.status == 0)
    if count > 0 {
      var flipped = member
      flipped[flipped.count - 5] ^= 1
      #expect(ZlibDeflate.unpack(member: flipped, count: count) == nil)
      #expect(Deflate.unpack(member: flipped, count: count) == nil)
      #expect(ZlibDeflate.unpack(member: member, count: count - 1) == nil)
      #expect(Deflate.unpack(member: member, count: count - 1) == nil)
    }
  }

  @Test func sumsAreTheKnownOnes() {
    let digits = Array("123456789".utf8)
    #expect(ZlibDeflate.crc32(digits[...]) == 0xCBF4_3926)
    #expect(ZlibDeflate.adler32(digits[...]) == 0x091E_01DE)
    let content = Self.content(100_000)
    #expect(ZlibDeflate.crc32(content[...]) == Deflate.crc32(content[...]))
    #expect(ZlibDeflate.adler32(content[...]) == Deflate.adler32(content[...]))
    #expect(ZlibDeflate.crc32([]) == 0)
    #expect(ZlibDeflate.adler32([]) == 1)
  }
}
