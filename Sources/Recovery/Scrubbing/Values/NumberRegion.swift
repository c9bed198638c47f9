/// The integers that one may be replaced by: of the same sign and of the width that SQLite stores it in.
enum NumberRegion {
  /// The largest integer that stays as it is.
  static let kept: Int64 = 999_999

  /// The least integers of each width that SQLite stores integers in, in records or as row numbers, from seven digits on.
  private static let bounds: [Int64] = [
    kept + 1, 1 << 21, 1 << 23, 1 << 28, 1 << 31, 1 << 35, 1 << 42, 1 << 47, 1 << 49, 1 << 56,
  ]

  /// The region of an integer of more than six digits.
  static func region(of number: Int64) -> ClosedRange<Int64> {
    if number > kept {
      let place = bounds.lastIndex { $0 <= number } ?? 0
      return bounds[place]...(place + 1 < bounds.count ? bounds[place + 1] - 1 : Int64.max)
    }
    if number >= -8_388_608 { return -8_388_608...(-kept - 1) }
    if number >= Int64(Int32.min) { return Int64(Int32.min)...(-8_388_609) }
    if number >= -(1 << 47) { return -(1 << 47)...(Int64(Int32.min) - 1) }
    return Int64.min...(-(1 << 47) - 1)
  }

  /// The region of an integer of up to six digits; 0 and 1, which SQLite stores in no bytes at all, stay.
  static func shortRegion(of number: Int64) -> ClosedRange<Int64> {
    switch number {
    case 0, 1: number...number
    case 2...127: 2...127
    case 128...32767: 128...32767
    case 32768...kept: 32768...kept
    case -128 ... -1: -128 ... -1
    case -32768 ... -129: -32768 ... -129
    case -kept ... -32769: -kept ... -32769
    default: number...number
    }
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
