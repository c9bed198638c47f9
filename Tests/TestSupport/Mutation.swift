import Platform

/// Damage of the kinds that disks, cables and programs do, drawn from a seed.
package struct Mutation: Sendable {
  private var generator: SeededGenerator

  package init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  /// The bytes with one to four places damaged: bits flipped, bytes overwritten, ranges zeroed or repeated, the end cut.
  package mutating func apply(to original: [UInt8]) -> [UInt8] {
    var bytes = original
    for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
      let place = Int.random(in: 0..<bytes.count, using: &generator)
      let length = min(bytes.count - place, Int.random(in: 1...64, using: &generator))
      switch Int.random(in: 0..<8, using: &generator) {
      case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 1: bytes[place] = UInt8.random(in: 0...255, using: &generator)
      case 2: bytes[place] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF].randomElement(using: &generator) ?? 0
      case 3: for index in place..<(place + length) { bytes[index] = 0 }
      case 4: for index in place..<(place + length) { bytes[index] = UInt8.random(in: 0...255, using: &generator) }
      case 5: bytes.removeLast(bytes.count - place)
      case 6: bytes.insert(contentsOf: bytes[place..<(place + length)], at: place)
      default: bytes.removeSubrange(place..<(place + length))
      }
    }
    return bytes
  }
}

/// How many seeded mutations a test tries: a few in the ordinary run, `LAZARET_MUTATIONS` in the long one.
package func mutationCount(usually few: Int) -> Int {
  environment("LAZARET_MUTATIONS").flatMap { Int($0) } ?? few
}
