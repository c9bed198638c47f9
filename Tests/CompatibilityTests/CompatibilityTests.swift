import Dispatch
import Platform
import TestSupport
import Testing

struct MutexTests {
  @Test func oneThreadAtATimeWorksWithTheValue() {
    let sum = Mutex(0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<10_000 { sum.withLock { $0 += 1 } }
    }
    #expect(sum.withLock { $0 } == 80_000)
  }

  @Test func anErrorLeavesItFree() {
    struct Trouble: Error {}
    let value = Mutex("before")
    #expect(throws: Trouble.self) {
      try value.withLock { text throws(Trouble) in
        text = "changed"
        throw Trouble()
      }
    }
    #expect(value.withLock { $0 } == "changed")
  }
}

/// The reading of text on old systems, against the standard library's own on this one.
struct CheckedTextTests {
  private static let valid = ["", "a", "Ä€𝄞", "\u{0}", "\u{FFFD}", "e\u{301}", "\u{FEFF}BOM"]

  private static let invalid: [[UInt8]] = [
    [0x80], [0xC0, 0x80], [0xE2, 0x82], [0x61, 0xFF, 0x62], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xC3, 0x28],
    // As many bytes as what they are replaced by.
    [0xF0, 0x90, 0x80],
  ]

  @Test(arguments: valid) func validTextIsRead(_ text: String) {
    #expect(String(utf8: Array(text.utf8)) == text)
    #expect(String(comparingUTF8: Array(text.utf8)) == text)
    #expect(String(utf16: Array(text.utf16)) == text)
    #expect(String(comparingUTF16: Array(text.utf16)) == text)
  }

  @Test(arguments: invalid) func whatIsNoTextIsNot(_ bytes: [UInt8]) {
    #expect(String(utf8: bytes) == nil)
    #expect(String(comparingUTF8: bytes) == nil)
  }

  @Test func loneSurrogatesAreNoText() {
    for units: [UInt16] in [[0xD800], [0xDC00, 0x61], [0x61, 0xD834]] {
      #expect(String(utf16: units) == nil)
      #expect(String(comparingUTF16: units) == nil)
    }
  }

  @Test func bothWaysSayTheSameOfAnyBytes() {
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...6, using: &generator)
      let bytes = (0..<count).map { _ in UInt8.random(in: 0x60...0xFF, using: &generator) }
      #expect(String(comparingUTF8: bytes) == String(validating: bytes, as: UTF8.self), "\(bytes)")
    }
  }
}
