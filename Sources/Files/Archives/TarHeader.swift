/// The fields of a header that are used.
struct TarHeader {
  var name: [UInt8]
  var size: Int64
  var type: UInt8

  /// A header from its 512 bytes.
  init(_ bytes: [UInt8]) throws(ArchiveError) {
    guard bytes.count == 512, bytes[257..<262].elementsEqual("ustar".utf8) else {
      throw ArchiveError(.tar, "a header is not one of a POSIX archive")
    }
    let sum = bytes.enumerated().reduce(0) { $0 + ((148..<156).contains($1.offset) ? 32 : Int64($1.element)) }
    guard Self.octal(bytes[148..<156]) == sum else { throw ArchiveError(.tar, "the sum of a header is wrong") }
    guard let size = Self.octal(bytes[124..<136]) else { throw ArchiveError(.tar, "a header says no size") }
    self.size = size
    type = bytes[156]
    let prefix = Array(bytes[345..<500].prefix { $0 != 0 })
    let own = Array(bytes[0..<100].prefix { $0 != 0 })
    name = prefix.isEmpty ? own : prefix + [UInt8(ascii: "/")] + own
  }

  /// A number in octal digits, with spaces or NUL around it; nil where it is none.
  ///
  /// The binary form of GNU is not taken.
  private static func octal(_ bytes: ArraySlice<UInt8>) -> Int64? {
    let digits = bytes.drop { $0 == 32 }.prefix { (48...55).contains($0) }
    let rest = bytes[digits.endIndex...]
    guard !digits.isEmpty, rest.allSatisfy({ $0 == 32 || $0 == 0 }) else { return nil }
    return digits.reduce(Int64(0)) { $0 << 3 | Int64($1 - 48) }
  }
}
