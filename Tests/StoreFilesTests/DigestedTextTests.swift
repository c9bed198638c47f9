import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Texts that end with their own digest")
struct DigestedTextTests {
  private let text = Array("{\"a\":1,\"digest\":\"of another thing\",\"z\":[true]}\n".utf8)

  @Test("The digest is what sha256sum says of the text without it")
  func form() throws {
    let digested = DigestedText.adding(to: text)
    #expect(digested.count == text.count + DigestedText.addedLength)
    #expect(DigestedText.verdict(digested) == .right)
    let folder = try TemporaryFolder()
    try folder.write(text, to: "text.json")
    let sum = try ChildProcess.run("sha256sum", [folder.appending("text.json").string]).output.prefix(64)
    let expected = String(decoding: text.dropLast(2), as: UTF8.self) + ",\"digest\":\"\(sum)\"}\n"
    #expect(String(decoding: digested, as: UTF8.self) == expected)
    #expect(DigestedText.digest(of: digested) == String(sum))
  }

  @Test("Every flipped bit is noticed: the digest is wrong, or it is no digest any more")
  func flipped() {
    let digested = DigestedText.adding(to: text)
    for place in digested.indices {
      for bit in 0..<8 {
        var bytes = digested
        bytes[place] ^= 1 << bit
        let isTail = place >= digested.count - DigestedText.addedLength - 2
        let verdict = DigestedText.verdict(bytes)
        #expect(verdict == .changed || isTail && verdict == .none, "bit \(bit) of byte \(place)")
        #expect(DigestedText.digest(of: bytes) == nil)
      }
    }
  }

  @Test("What has no digest says nothing, and what is cut off neither")
  func none() {
    #expect(DigestedText.verdict(text) == .none)
    #expect(DigestedText.verdict([]) == .none)
    let digested = DigestedText.adding(to: text)
    for count in 0..<digested.count { #expect(DigestedText.verdict(Array(digested.prefix(count))) == .none) }
    #expect(DigestedText.verdict(Array(digested.dropFirst())) == .changed)
    #expect(DigestedText.adding(to: Array("no object".utf8)) == Array("no object".utf8))
  }
}
