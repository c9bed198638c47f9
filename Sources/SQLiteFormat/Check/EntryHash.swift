/// The encoding-independent hash of an index entry.
///
/// Hashes are summed, so order does not matter. An integer and an equal real hash alike, because REAL columns store
/// integers to save space.
struct EntryHash {
  private(set) var value: UInt64 = 0x9e37_79b9_7f4a_7c15

  /// Each step is one-to-one, so one different word changes the hash.
  @inline(__always)
  private mutating func fold(_ word: UInt64) {
    value = (value ^ word) &* 0xff51_afd7_ed55_8ccd
    value ^= value >> 32
  }

  @inline(__always)
  mutating func addNull() { fold(0) }

  @inline(__always)
  mutating func add(_ number: Int64) {
    fold(1)
    fold(UInt64(bitPattern: number))
  }

  @inline(__always)
  mutating func add(_ number: Double) {
    if let whole = Int64(exactly: number) { return add(whole) }
    fold(2)
    fold(number.bitPattern)
  }

  @inline(__always)
  mutating func add(_ bytes: Span<UInt8>, from start: Int, count: Int, isText: Bool) {
    fold(UInt64(truncatingIfNeeded: count) << 3 | (isText ? 3 : 4))
    var offset = start
    let end = start &+ count
    while offset &+ 8 <= end {
      var word: UInt64 = 0
      for index in 0..<8 { word = word << 8 | UInt64(bytes[offset &+ index]) }
      fold(word)
      offset &+= 8
    }
    guard offset < end else { return }
    var word: UInt64 = 0
    while offset < end {
      word = word << 8 | UInt64(bytes[offset])
      offset &+= 1
    }
    fold(word)
  }

  /// Adds a complete record field.
  @inline(__always)
  mutating func add(_ code: Int64, _ bytes: Span<UInt8>, at offset: Int) {
    switch code {
    case 8: add(Int64(0))
    case 9: add(Int64(1))
    case 1...6:
      add(bytes.signedInteger(at: offset, length: SerialType.length(of: code) ?? 1) ?? 0)
    case 7:
      let number = Double(bitPattern: UInt64(bitPattern: bytes.signedInteger(at: offset, length: 8) ?? 0))
      if number.isNaN { addNull() } else { add(number) }
    case 12...: add(bytes, from: offset, count: Int((code &- 12) >> 1), isText: code & 1 == 1)
    default: addNull()
    }
  }

  mutating func add(_ value: Value) {
    switch value {
    case .null: addNull()
    case .integer(let number): add(number)
    case .real(let number): add(number)
    case .text(let text): add(text.bytes.span, from: 0, count: text.bytes.count, isText: true)
    case .blob(let bytes): add(bytes.span, from: 0, count: bytes.count, isText: false)
    }
  }
}
