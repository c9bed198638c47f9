package import Scrubbing
internal import StoreFiles
internal import SupportBundle
internal import SystemPackage

/// Looks for values of the store in the texts of a bundle.
///
/// A value that is found is no leak where it is a word of this software's own, a name of the schema or the model, a number
/// that stands by itself, or part of a sum or a time: the text would be the same without the record.
package struct ExportCheck {
  private let scanner: ValueScanner
  private let names: Set<String>

  /// A place where a value was found.
  package struct Leak {
    /// The text.
    package var name: String

    /// The offset of the first byte.
    package var offset: Int64
  }

  private static let piece = 2048
  private static let overlap = 128

  /// - Parameter names: texts with the names of the schema and the model.
  package init(_ scanner: ValueScanner, names texts: [String]) {
    self.scanner = scanner
    var names = Set<String>()
    for text in texts {
      if text.utf8.count < 100 { names.insert(text.lowercased()) }
      for word in Self.words(Array(text.utf8)[...]) { names.insert(word) }
    }
    self.names = names
  }

  /// The values found in a text that must not be there: how many, and the first.
  package func leaks(in bytes: [UInt8], named name: String) -> (count: Int, first: Leak)? {
    // One look is enough where nothing at all is found.
    guard !scanner.scan(bytes, named: FilePath(name)).isEmpty else { return nil }
    var (count, first) = (0, Leak?.none)
    var seen = Set<Int64>()
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + Self.piece + Self.overlap)
      for place in places(bytes, start..<end) where seen.insert(place.offset).inserted {
        let range = Int(place.offset)..<min(bytes.count, Int(place.offset) + place.length)
        if isOwn(bytes, range) { continue }
        count += 1
        if first == nil { first = Leak(name: name, offset: place.offset) }
      }
      start += Self.piece
    }
    return first.map { (count, $0) }
  }

  /// Every place where a value is, in parts small enough that none is left unlisted.
  private func places(_ bytes: [UInt8], _ range: Range<Int>) -> [(offset: Int64, length: Int)] {
    let findings = scanner.scan(Array(bytes[range]), named: "text")
    if findings.count > findings.places.count, range.count > 2 * Self.overlap {
      let middle = range.lowerBound + range.count / 2
      return places(bytes, range.lowerBound..<min(range.upperBound, middle + Self.overlap))
        + places(bytes, middle..<range.upperBound)
    }
    return findings.places.map { (Int64(range.lowerBound) + $0.offset, $0.length) }
  }

  // MARK: What is our own

  /// Whether all that a place touches is this software's own, or the schema's.
  private func isOwn(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start > 0, Self.isWord(bytes[start - 1]), Self.isWord(bytes[start]) { start -= 1 }
    while end < bytes.count, end > 0, Self.isWord(bytes[end]), Self.isWord(bytes[end - 1]) { end += 1 }
    let text = bytes[start..<end]
    if text.allSatisfy(Self.isWord), isSum(text) || isLoneNumber(bytes, start..<end) { return true }
    if isTime(bytes, start..<end) { return true }
    // What is left are words with something between them; digits and bytes beyond ASCII are no words.
    guard text.allSatisfy({ $0 < 0x80 }) else { return false }
    let words = Self.words(text)
    let hasDigits = text.contains { (0x30...0x39).contains($0) }
    if hasDigits, !isKnown(String(decoding: text, as: UTF8.self).lowercased()) {
      // A name such as `ZCAR2` is one word; `12 Main Street` is three.
      guard words.allSatisfy({ $0.contains(where: \.isLetter) }) else { return false }
    }
    return !words.isEmpty && words.allSatisfy(isKnown)
  }

  private func isKnown(_ word: String) -> Bool {
    if names.contains(word) { return true }
    guard word.allSatisfy(\.isLetter) else { return false }
    return word.count < 4 || OwnWords.all.contains(word[...])
  }

  /// Whether it is a SHA-256, a version hash or the like.
  private func isSum(_ text: ArraySlice<UInt8>) -> Bool {
    text.count == 64 && text.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  /// Whether it is a number of JSON: nothing but digits, and no text.
  private func isLoneNumber(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    guard bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
    let before = range.lowerBound > 0 ? bytes[range.lowerBound - 1] : 0x20
    let after = range.upperBound < bytes.count ? bytes[range.upperBound] : 0x20
    return [0x20, 0x3a, 0x5b, 0x2c, 0x0a].contains(before) && [0x20, 0x2c, 0x5d, 0x7d, 0x0a].contains(after)
  }

  /// Whether it is part of a time in RFC 3339, or of the name of a quarantined store or of a backup.
  private func isTime(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    func isPart(_ byte: UInt8) -> Bool {
      (0x30...0x39).contains(byte) || [0x2d, 0x3a, 0x2e, 0x54, 0x5a].contains(byte)
    }
    guard bytes[range].allSatisfy(isPart) else { return false }
    var (start, end) = (range.lowerBound, range.upperBound)
    while start > 0, isPart(bytes[start - 1]), range.lowerBound - start < 40 { start -= 1 }
    while end < bytes.count, isPart(bytes[end]), end - range.upperBound < 40 { end += 1 }
    // The name of a backup has a mark and a hyphen before its time.
    while start < range.lowerBound, bytes[start] == 0x2d { start += 1 }
    let text = String(decoding: bytes[start..<end], as: UTF8.self)
    return Timestamp(text) != nil || Timestamp(String(text.prefix(19))) != nil || Timestamp(text + "T00:00:00Z") != nil
  }

  /// Letters, digits and the underscore.
  private static func isWord(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x5f
      || byte >= 0x80
  }

  /// The words of a text, in lower case.
  private static func words(_ text: ArraySlice<UInt8>) -> [String] {
    text.split { !isWord($0) }.map { String(decoding: $0, as: UTF8.self).lowercased() }
  }
}
