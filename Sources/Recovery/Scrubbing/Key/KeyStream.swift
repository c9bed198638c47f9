internal import StoreFiles

/// Pseudorandom numbers that follow from a seed under a key.
///
/// The keyed function gives the beginning, and SplitMix64 (Steele, Lea and Flood, 2014) goes on from there: a reader who sees the
/// numbers can go back to the beginning, which says nothing of the seed without the key.
struct KeyStream {
  private var state: UInt64
  private var word: UInt64 = 0
  private var left = 0

  init(_ function: KeyedFunction, seed: UInt64) { state = function(seed, 0x73_7472_6561_6d) }

  /// The next 64 bits.
  @inline(__always)
  mutating func next64() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return state.mixed
  }

  /// The next 16 bits.
  @inline(__always)
  mutating func next16() -> Int {
    if left == 0 {
      word = next64()
      left = 4
    }
    left &-= 1
    let result = Int(truncatingIfNeeded: word & 0xffff)
    word >>= 16
    return result
  }

  /// A number below a bound, up to 2³¹.
  @inline(__always)
  mutating func below(_ bound: Int) -> Int {
    if bound <= 256 { return (next16() &* bound) >> 16 }
    let wide = next16() << 16 | next16()
    return (wide &* bound) >> 32
  }

  /// A number below a bound of any size, at least 1.
  mutating func below64(_ bound: UInt64) -> UInt64 { next64().multipliedFullWidth(by: max(1, bound)).high }
}
