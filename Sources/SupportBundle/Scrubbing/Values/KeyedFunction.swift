internal import Platform

/// SipHash-2-4: a pseudorandom function with a 128-bit key (Aumasson and Bernstein, 2012).
struct KeyedFunction: Sendable {
  private let key0: UInt64
  private let key1: UInt64

  init(_ key0: UInt64, _ key1: UInt64) {
    self.key0 = key0
    self.key1 = key1
  }

  /// Hashes bytes; the tweak separates uses.
  @inline(__always)
  func callAsFunction(_ bytes: Span<UInt8>, _ range: Range<Int>, tweak: UInt64) -> UInt64 {
    var state = State(key0, key1)
    state.add(tweak)
    var index = range.lowerBound
    let end = range.upperBound
    while index &+ 8 <= end {
      var word = UInt64(bytes[index]) | UInt64(bytes[index &+ 1]) << 8
      word |= UInt64(bytes[index &+ 2]) << 16 | UInt64(bytes[index &+ 3]) << 24
      word |= UInt64(bytes[index &+ 4]) << 32 | UInt64(bytes[index &+ 5]) << 40
      word |= UInt64(bytes[index &+ 6]) << 48 | UInt64(bytes[index &+ 7]) << 56
      state.add(word)
      index &+= 8
    }
    var last = UInt64(truncatingIfNeeded: range.count &+ 8) << 56
    var shift: UInt64 = 0
    while index < end {
      last |= UInt64(bytes[index]) << shift
      shift &+= 8
      index &+= 1
    }
    state.add(last)
    return state.finish()
  }

  @inline(__always)
  func callAsFunction(_ first: UInt64, _ second: UInt64) -> UInt64 {
    var state = State(key0, key1)
    state.add(first)
    state.add(second)
    state.add(16 << 56)
    return state.finish()
  }

  private struct State {
    var v0: UInt64
    var v1: UInt64
    var v2: UInt64
    var v3: UInt64

    @inline(__always)
    init(_ key0: UInt64, _ key1: UInt64) {
      v0 = key0 ^ 0x736f_6d65_7073_6575
      v1 = key1 ^ 0x646f_7261_6e64_6f6d
      v2 = key0 ^ 0x6c79_6765_6e65_7261
      v3 = key1 ^ 0x7465_6462_7974_6573
    }

    @inline(__always)
    mutating func add(_ word: UInt64) {
      v3 ^= word
      round()
      round()
      v0 ^= word
    }

    @inline(__always)
    mutating func finish() -> UInt64 {
      v2 ^= 0xff
      round()
      round()
      round()
      round()
      return v0 ^ v1 ^ v2 ^ v3
    }

    @inline(__always)
    private mutating func round() {
      v0 = v0 &+ v1
      v1 = (v1 << 13 | v1 >> 51) ^ v0
      v0 = v0 << 32 | v0 >> 32
      v2 = v2 &+ v3
      v3 = (v3 << 16 | v3 >> 48) ^ v2
      v0 = v0 &+ v3
      v3 = (v3 << 21 | v3 >> 43) ^ v0
      v2 = v2 &+ v1
      v1 = (v1 << 17 | v1 >> 47) ^ v2
      v2 = v2 << 32 | v2 >> 32
    }
  }
}

/// A keyed pseudorandom stream for a seed.
///
/// SplitMix64 (Steele, Lea and Flood, 2014) continues from the keyed function; its start can be recovered, but reveals
/// no seed without the key.
struct KeyStream {
  private var state: UInt64
  private var word: UInt64 = 0
  private var left = 0

  init(_ function: KeyedFunction, seed: UInt64) { state = function(seed, 0x73_7472_6561_6d) }

  @inline(__always)
  mutating func next64() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return state.mixed
  }

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

  /// Returns a number below a bound of up to 2³¹.
  @inline(__always)
  mutating func below(_ bound: Int) -> Int {
    if bound <= 256 { return (next16() &* bound) >> 16 }
    let wide = next16() << 16 | next16()
    return (wide &* bound) >> 32
  }

  mutating func below64(_ bound: UInt64) -> UInt64 { next64().multipliedFullWidth(by: max(1, bound)).high }
}
