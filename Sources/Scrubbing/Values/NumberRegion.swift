/// The integers that one may be replaced by: of the same sign and of the width that SQLite stores it in.
enum NumberRegion {
  /// The largest integer that stays as it is.
  static let kept: Int64 = 999_999

  /// The region of an integer of more than six digits.
  static func region(of number: Int64) -> ClosedRange<Int64> {
    if number > kept {
      if number <= 8_388_607 { return (kept + 1)...8_388_607 }
      if number <= Int64(Int32.max) { return 8_388_608...Int64(Int32.max) }
      if number < 1 << 47 { return (Int64(Int32.max) + 1)...(1 << 47 - 1) }
      return (1 << 47)...Int64.max
    }
    if number >= -8_388_608 { return -8_388_608...(-kept - 1) }
    if number >= Int64(Int32.min) { return Int64(Int32.min)...(-8_388_609) }
    if number >= -(1 << 47) { return -(1 << 47)...(Int64(Int32.min) - 1) }
    return Int64.min...(-(1 << 47) - 1)
  }

  /// Whether an integer has more than six digits.
  @inline(__always)
  static func isLong(_ number: Int64) -> Bool { number > kept || number < -kept }

  /// The bytes that SQLite stores an integer in.
  static func width(_ number: Int64) -> Int {
    let bits = 64 - (number < 0 ? ~number : number).leadingZeroBitCount + 1
    return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 24 ? 3 : bits <= 32 ? 4 : bits <= 48 ? 6 : 8
  }
}
