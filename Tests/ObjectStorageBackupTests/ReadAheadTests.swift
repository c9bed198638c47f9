import ObjectStorage
import Testing

@Suite("Reading ahead in objects")
struct ReadAheadTests {
  /// An object of the server, and what was asked for of it.
  private final class Object {
    let bytes: [UInt8]
    var requests: [Range<Int>] = []

    init(count: Int) { bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7919 >> 5) } }

    func fetch(_ offset: Int64, _ length: Int) -> [UInt8] {
      let range = min(bytes.count, Int(offset))..<min(bytes.count, Int(offset) + length)
      requests.append(range)
      return Array(bytes[range])
    }

    var read: Int { requests.reduce(0) { $0 + $1.count } }
  }

  @Test("From one end to the other every byte is asked for once, in few requests")
  func sequential() throws {
    let (ahead, object) = (ObjectReadAhead(), Object(count: 40_000_123))
    var result: [UInt8] = []
    // Blocks are of different lengths.
    var length = 400_001
    while result.count < object.bytes.count {
      result += try ahead.read("a", at: Int64(result.count), length: length, fetch: object.fetch)
      length = 300_000 + (length &* 31) % 200_000
    }
    #expect(result == object.bytes)
    #expect(object.requests.count < 20)
    // A block that the end of what was fetched cuts in two is asked for whole.
    #expect(object.read < object.bytes.count / 20 * 21)
  }

  @Test("Threads that read together, and overtake each other, ask for every byte once")
  func overtaking() throws {
    let (ahead, object, length) = (ObjectReadAhead(), Object(count: 40_000_000), 500_000)
    var blocks = Array(0..<80)
    for place in stride(from: 4, to: 78, by: 3) { blocks.swapAt(place, place + 1) }
    for block in blocks {
      let part = try ahead.read("a", at: Int64(block * length), length: length, fetch: object.fetch)
      #expect(part == Array(object.bytes[(block * length)..<((block + 1) * length)]))
    }
    #expect(object.requests.count < 20)
    #expect(object.read < object.bytes.count / 20 * 21)
  }

  @Test("Of places here and there nothing is read but what is asked for")
  func scattered() throws {
    let (ahead, object) = (ObjectReadAhead(), Object(count: 9_000_000))
    for place in [8_000_000, 100, 5_000_000, 2_000_000, 7_000_000] {
      let part = try ahead.read("a", at: Int64(place), length: 1000, fetch: object.fetch)
      #expect(part == Array(object.bytes[place..<(place + 1000)]))
    }
    #expect(object.read == 5000)
    #expect(try ahead.read("a", at: 8_999_990, length: 1000, fetch: object.fetch) == Array(object.bytes.suffix(10)))
    #expect(try ahead.read("a", at: 9_000_000, length: 1000, fetch: object.fetch).isEmpty)
    #expect(try ahead.read("a", at: .max - 5, length: 1000) { _, _ in [] }.isEmpty)
  }

  @Test("Another object, and one that was written anew, are asked for")
  func others() throws {
    let (ahead, object, other) = (ObjectReadAhead(), Object(count: 5000), Object(count: 3000))
    #expect(try ahead.read("a", at: 0, length: 5000, fetch: object.fetch) == object.bytes)
    #expect(try ahead.read("a", at: 10, length: 100, fetch: object.fetch) == Array(object.bytes[10..<110]))
    #expect(object.requests.count == 1)
    #expect(try ahead.read("b", at: 10, length: 100, fetch: other.fetch) == Array(other.bytes[10..<110]))
    #expect(try ahead.read("a", at: 10, length: 100, fetch: object.fetch) == Array(object.bytes[10..<110]))
    ahead.forget()
    _ = try ahead.read("a", at: 10, length: 100, fetch: object.fetch)
    #expect(object.requests.count == 3)
  }
}
