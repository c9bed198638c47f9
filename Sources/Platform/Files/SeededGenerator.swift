/// A random number generator that gives the same numbers for the same seed (SplitMix64).
///
/// For rehearsals and tests, never for secrets. (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.)
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// The generator of a seed.
  package init(seed: UInt64) { state = seed }

  /// The next number.
  package mutating func next() -> UInt64 {
    state &+= Self.step
    return state.mixed
  }

  /// How far the state goes from one number to the next.
  package static let step: UInt64 = 0x9E37_79B9_7F4A_7C15
}

extension UInt64 {
  /// The number with its bits mixed as SplitMix64 does it; no two numbers give the same.
  @inlinable
  @inline(__always)
  package var mixed: UInt64 {
    var mixed = self
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
