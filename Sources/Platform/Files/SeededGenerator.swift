/// A deterministic random number generator (SplitMix64), not for secrets.
///
/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= Self.step
    return state.mixed
  }

  package static let step: UInt64 = 0x9E37_79B9_7F4A_7C15
}

extension UInt64 {
  /// The bits mixed as in SplitMix64; injective.
  @inlinable
  @inline(__always)
  package var mixed: UInt64 {
    var mixed = self
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
