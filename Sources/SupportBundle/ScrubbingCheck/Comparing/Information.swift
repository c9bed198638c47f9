internal import Foundation

/// The information of bytes equal in original and result, in sixteenths of a bit.
enum Information {
  /// For text: one of 26 letters or ten digits; other characters stay.
  static let text: [UInt16] = (0..<256).map { byte in
    switch byte {
    case 0x30...0x39: 53
    case 0x41...0x5a, 0x61...0x7a: 75
    default: 0
    }
  }

  /// For identifiers: one of ten digits, or of six letters.
  static let identifier: [UInt16] = (0..<256).map { byte in
    switch byte {
    case 0x30...0x39: 53
    case 0x41...0x46, 0x61...0x66: 41
    default: 0
    }
  }

  /// For blobs: one of 255.
  static let blob: [UInt16] = (0..<256).map { $0 == 0 ? 0 : 127 }

  /// A non-ASCII character, one of the smallest alphabets.
  static let character = 44

  /// The minimum of a whole value: three letters or four digits.
  static let leastOfValue = 208

  /// Returns the information that chance exceeds less than once in a million.
  ///
  /// - Parameters:
  ///   - places: the compared places.
  ///   - pieces: the pieces sought at each.
  static func bound(places: Int64, pieces: Int64 = 1) -> Int {
    Int((16 * (log2(Double(max(1, places))) + log2(Double(max(1, pieces))) + 20)).rounded(.up))
  }

  /// Whether a character stays: marks, spaces, punctuation, joiners.
  static func stays(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0..<0x80, 0x80...0xbf, 0xd7, 0xf7, 0x300...0x36f, 0x2000...0x206f, 0x20d0...0x20ff, 0x3000...0x3040,
      0xe000...0xf8ff, 0xfe00...0xfe0f, 0xfeff, 0xfff0...0x1_2fff, 0x1f3fb...0x1f3ff, 0xe0000...0x10ffff:
      true
    default: false
    }
  }

  /// Returns the information and length of a text; words count once.
  ///
  /// - Parameter isName: whether a word is a schema name, which stays.
  static func ofText(
    _ text: String, onceEach: Bool, isName: (String) -> Bool = { _ in false }
  ) -> (bits: Int, characters: Int) {
    var bits = 0
    var characters = 0
    var seen: Set<String> = []
    for word in text.split(
      omittingEmptySubsequences: true, whereSeparator: { !($0.isLetter || $0.isNumber || $0 == "_") })
    {
      if onceEach, !seen.insert(String(word)).inserted { continue }
      if isName(String(word)) { continue }
      for scalar in word.unicodeScalars {
        if scalar.value < 0x80 {
          bits += Int(Self.text[Int(scalar.value)])
        } else if !stays(scalar.value) {
          bits += character
        }
      }
    }
    for scalar in text.unicodeScalars where scalar.value != 0 { characters += 1 }
    return (bits, characters)
  }
}
