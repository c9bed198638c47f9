extension Sequence<UInt8> {
  /// Lower-case digits.
  package var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(2 * underestimatedCount)
    for byte in self {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// A UUID's text, in upper case as Core Data writes it.
  package var uuidText: String {
    let digits = Array(hexadecimal.uppercased().utf8)
    let groups = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { digits[$0.clamped(to: digits.indices)] }
    return groups.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "-")
  }
}

extension [UInt8] {
  /// Returns nil for other text than digits of either case.
  package init?(hexadecimal text: some StringProtocol) {
    self.init(hexadecimal: Array(text.utf8))
  }

  package init?(hexadecimal digits: [UInt8]) {
    guard digits.count.isMultiple(of: 2) else { return nil }
    self.init()
    reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Self.nibble(digits[index]), let low = Self.nibble(digits[index + 1]) else { return nil }
      append(high << 4 | low)
    }
  }

  private static func nibble(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
