/// Pseudorandom numbers that follow from a seed under a key: the keyed function in counter mode.
struct KeyStream {
  private let function: KeyedFunction
  private let seed: UInt64
  private var counter: UInt64 = 0
  private var word: UInt64 = 0
  private var left = 0

  init(_ function: KeyedFunction, seed: UInt64) {
    self.function = function
    self.seed = seed
  }

  /// The next 64 bits.
  mutating func next64() -> UInt64 {
    counter &+= 1
    return function(seed, counter)
  }

  /// The next 16 bits.
  @inline(__always)
  mutating func next16() -> Int {
    if left == 0 {
      word = next64()
      left = 4
    }
    left &-= 1
    let result = Int(word & 0xffff)
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
