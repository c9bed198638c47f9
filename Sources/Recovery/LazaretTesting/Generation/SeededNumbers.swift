internal import StoreFiles

/// Random numbers that follow from a seed and a name, each reached by its index (SplitMix64).
///
/// No state goes from one record to the next, so that a value depends on nothing but its own place.
struct SeededNumbers: Sendable {
  private let base: UInt64

  init(seed: UInt64, _ names: String...) {
    // FNV-1a over the names, each closed by a byte that no text has.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for name in names {
      for byte in Array(name.utf8) + [0xFF] { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    }
    base = (hash &+ seed.mixed).mixed
  }

  /// The number of that index.
  subscript(index: Int) -> UInt64 { (base &+ UInt64(bitPattern: Int64(index)) &* SeededGenerator.step).mixed }

  /// One of the numbers below a limit; 0 where the limit is not positive.
  func number(_ index: Int, below limit: Int) -> Int {
    limit > 0 ? Int(self[index] % UInt64(limit)) : 0
  }

  /// A number of at least 0 and less than 1.
  func fraction(_ index: Int) -> Double { Double(self[index] >> 11) / 9_007_199_254_740_992 }

  /// Bytes that follow from an index.
  func bytes(_ index: Int, count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count + 8)
    var state = self[index]
    while result.count < count {
      state = (state &+ SeededGenerator.step).mixed
      for shift in 0..<8 { result.append(UInt8(truncatingIfNeeded: state >> UInt64(8 * shift))) }
    }
    result.removeLast(result.count - count)
    return result
  }
}
