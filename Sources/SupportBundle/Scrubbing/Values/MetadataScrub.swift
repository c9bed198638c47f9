internal import Platform
import SQLiteFormat

/// Replaces an app's entries and the store identifier in a store's metadata; Core Data's other entries stay.
///
/// Only binary property lists are parsed. Other forms become noise if unreadable or with an app's entries; otherwise
/// only identifiers are replaced.
enum MetadataScrub {
  private static let limit = 1 << 20

  struct Place {
    var kind: Kind

    var range: Range<Int>
  }

  /// The kinds, by the high half of their marker.
  enum Kind: UInt8 {
    case integer = 0x10
    case real = 0x20
    case date = 0x30
    case data = 0x40
    case ascii = 0x50
    case wide = 0x60

    /// An identifier in ASCII; not a property list type.
    case identifier = 0
  }

  static func note(_ bytes: Span<UInt8>, _ range: Range<Int>, _ pseudonyms: Pseudonyms) {
    for place in places(bytes, range) {
      switch place.kind {
      case .ascii, .identifier: pseudonyms.watch(utf8: bytes, place.range)
      case .wide:
        var text: [UInt8] = []
        TextCoding.appendUTF8(bytes, place.range, .utf16BigEndian, to: &text)
        pseudonyms.watch(utf8: text.span, 0..<text.count)
      case .data: pseudonyms.note(12 + 2 * Int64(place.range.count), bytes, place.range, FieldRule())
      case .integer:
        // SQLite's widths; shorter integers have fewer than seven digits.
        if place.range.count >= 4 { pseudonyms.note(place.range.count == 4 ? 4 : 6, bytes, place.range, FieldRule()) }
      case .real, .date: if place.range.count == 8 { pseudonyms.note(7, bytes, place.range, FieldRule()) }
      }
    }
  }

  /// Replaces an app's values, and returns their ranges.
  static func replace(_ bytes: inout [UInt8], _ range: Range<Int>, _ pseudonyms: Pseudonyms) -> [Range<Int>] {
    let places = places(bytes.span, range)
    for place in places {
      switch place.kind {
      case .ascii: pseudonyms.replaceAscii(&bytes, place.range)
      case .identifier: pseudonyms.replaceIdentifier(&bytes, at: place.range.lowerBound)
      case .wide: pseudonyms.replaceWide(&bytes, place.range)
      case .data: pseudonyms.replaceNoise(&bytes, place.range, seededBy: place.range, tweak: 3)
      case .integer where place.range.count <= 2: break
      case .integer where [4, 8].contains(place.range.count):
        _ = pseudonyms.replaceInteger(&bytes, place.range, FieldRule())
      case .real where place.range.count == 8, .date where place.range.count == 8:
        _ = pseudonyms.replaceReal(&bytes, place.range, FieldRule())
      case .integer, .real, .date:
        // For rare widths, sign and magnitude stay.
        pseudonyms.replaceNoise(&bytes, place.range.dropFirst(2), seededBy: place.range, tweak: 6)
      }
    }
    return places.map(\.range)
  }

  /// Finds an app's values, or the whole if unreadable.
  private static func places(_ bytes: Span<UInt8>, _ range: Range<Int>) -> [Place] {
    if let list = BinaryList(bytes, range) {
      var places: [Place] = []
      return list.collect(bytes, &places) ? places : [Place(kind: .data, range: range)]
    }
    let content = range.map { bytes[$0] }
    // Unreadable lists may hold an app's values.
    if let list = try? PropertyList(content), case .dictionary(let entries) = list,
      entries.keys.allSatisfy(coreDataNames.contains)
    {
      return identifiers(content.span).map {
        Place(kind: .identifier, range: (range.lowerBound + $0)..<(range.lowerBound + $0 + 36))
      }
    }
    return [Place(kind: .data, range: range)]
  }

  private static func identifiers(_ bytes: Span<UInt8>) -> [Int] {
    var places: [Int] = []
    for index in 0..<max(0, bytes.count - 35)
    where index >= (places.last ?? -36) + 36 && BlobForm.isIdentifierText(bytes, index..<(index + 36)) {
      places.append(index)
    }
    return places
  }

  private static let coreDataNames: Set<String> = [
    "NSStoreType", "NSStoreUUID", "NSStoreModelVersionHashes", "NSStoreModelVersionHashesVersion",
    "NSStoreModelVersionHashesDigest", "NSStoreModelVersionChecksumKey", "NSStoreModelVersionIdentifiers",
    "NSPersistenceFrameworkVersion", "NSPersistenceMaximumFrameworkVersion", "_NSAutoVacuumLevel",
    "_NSStoreAncillaryModelVersionHashesMetadataKey", "NSPersistentStoreRebuildIndicies",
    "NSPersistentStoreDeferredLightweightMigrationOptionKey",
  ]

  private struct BinaryList {
    let range: Range<Int>
    let offsetSize: Int
    let referenceSize: Int
    let count: Int
    let top: Int
    let table: Int

    init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
      guard range.count >= 40, bytes[range.lowerBound] == 0x62, bytes[range.lowerBound + 6] == 0x30 else { return nil }
      let trailer = range.upperBound - 32
      self.range = range
      offsetSize = Int(bytes[trailer + 6])
      referenceSize = Int(bytes[trailer + 7])
      guard (1...4).contains(offsetSize), (1...4).contains(referenceSize),
        let count = bytes.signedInteger(at: trailer + 8, length: 8),
        let top = bytes.signedInteger(at: trailer + 16, length: 8),
        let table = bytes.signedInteger(at: trailer + 24, length: 8), count > 0, count < Int64(range.count), top >= 0,
        top < count, table >= 8, table < Int64(range.count)
      else { return nil }
      self.count = Int(count)
      self.top = Int(top)
      self.table = range.lowerBound + Int(table)
    }

    func number(_ bytes: Span<UInt8>, _ offset: Int, _ size: Int) -> Int? {
      guard offset >= range.lowerBound, offset + size <= range.upperBound else { return nil }
      var value = 0
      for index in offset..<(offset + size) { value = value << 8 | Int(bytes[index]) }
      return value
    }

    func object(_ bytes: Span<UInt8>, _ index: Int) -> (kind: UInt8, count: Int, content: Int)? {
      guard index < count, let place = number(bytes, table + index * offsetSize, offsetSize) else { return nil }
      let offset = range.lowerBound + place
      guard offset < range.upperBound else { return nil }
      let kind = bytes[offset] & 0xf0
      var length = Int(bytes[offset] & 0x0f)
      var content = offset + 1
      if length == 15, kind >= 0x40 {
        guard content < range.upperBound, bytes[content] & 0xf0 == 0x10 else { return nil }
        let size = 1 << Int(bytes[content] & 3)
        guard let long = number(bytes, content + 1, size) else { return nil }
        length = long
        content += 1 + size
      }
      guard length >= 0, length <= range.count else { return nil }
      return (kind, length, content)
    }

    /// Returns an object's end, possibly after the list's.
    private func end(of object: (kind: UInt8, count: Int, content: Int)) -> Int {
      let length =
        switch object.kind {
        case 0x10, 0x20, 0x30: 1 << min(object.count, 8)
        case 0x40, 0x50: object.count
        case 0x60: 2 * object.count
        case 0x80: object.count + 1
        case 0xa0, 0xc0: object.count * referenceSize
        case 0xd0: 2 * object.count * referenceSize
        default: 0
        }
      return object.content + length
    }

    func text(_ bytes: Span<UInt8>, _ index: Int) -> String? {
      guard let object = object(bytes, index), object.kind == 0x50, object.content + object.count <= range.upperBound
      else { return nil }
      var text = ""
      for place in object.content..<(object.content + object.count) {
        text.unicodeScalars.append(Unicode.Scalar(bytes[place]))
      }
      return text
    }

    func collect(_ bytes: Span<UInt8>, _ places: inout [Place]) -> Bool {
      guard let root = object(bytes, top), root.kind == 0xd0 else { return false }
      var visited: Set<Int> = []
      // Values shared with Core Data's entries stay.
      for isOwn in [true, false] {
        for entry in 0..<root.count {
          guard let key = number(bytes, root.content + entry * referenceSize, referenceSize),
            let value = number(bytes, root.content + (root.count + entry) * referenceSize, referenceSize)
          else { return false }
          visited.insert(key)
          let isCoreData = MetadataScrub.coreDataNames.contains(text(bytes, key) ?? "")
          guard isCoreData == isOwn else { continue }
          var waiting = [value]
          while let next = waiting.popLast() {
            guard visited.count < MetadataScrub.limit, visited.insert(next).inserted else { continue }
            guard let object = object(bytes, next) else { return false }
            switch object.kind {
            case 0xa0, 0xc0, 0xd0:
              guard end(of: object) <= range.upperBound else { return false }
              for offset in stride(from: object.content, to: end(of: object), by: referenceSize) {
                if let reference = number(bytes, offset, referenceSize) { waiting.append(reference) }
              }
            case 0x10, 0x20, 0x30, 0x40, 0x50, 0x60:
              guard let kind = Kind(rawValue: object.kind), end(of: object) <= range.upperBound else { return false }
              let content = object.content..<end(of: object)
              if kind == .ascii, BlobForm.isIdentifierText(bytes, content) {
                places.append(Place(kind: .identifier, range: content))
              } else if !isCoreData || kind == .ascii && content.count == 36 {
                // A damaged identifier goes too.
                places.append(Place(kind: kind, range: content))
              }
            default: break
            }
          }
        }
      }
      // An orphan object makes the ownership of others uncertain.
      guard visited.union([top]).count == count else { return false }
      places += gaps(bytes).map { Place(kind: .data, range: $0) }
      return true
    }

    /// Returns uncovered ranges, as damaged objects may be too short.
    private func gaps(_ bytes: Span<UInt8>) -> [Range<Int>] {
      var covered: [Range<Int>] = []
      for index in 0..<count {
        guard let place = number(bytes, table + index * offsetSize, offsetSize), let object = object(bytes, index)
        else { continue }
        covered.append((range.lowerBound + place)..<end(of: object))
      }
      covered.sort { $0.lowerBound < $1.lowerBound }
      var gaps: [Range<Int>] = []
      var end = range.lowerBound + 8
      for one in covered {
        if one.lowerBound > end, end < table { gaps.append(end..<min(one.lowerBound, table)) }
        end = max(end, one.upperBound)
      }
      if end < table { gaps.append(end..<table) }
      return gaps
    }
  }
}

extension Pseudonyms {
  /// Replaces ASCII, whatever the database's encoding.
  func replaceAscii(_ bytes: inout [UInt8], _ range: Range<Int>) {
    var stream = KeyStream(function, seed: function(bytes.span, range, tweak: 4))
    for index in range {
      switch bytes[index] {
      case 0x30...0x39: bytes[index] = 0x30 + UInt8(stream.below(10))
      case 0x41...0x5a: bytes[index] = 0x41 + UInt8(stream.below(26))
      case 0x61...0x7a: bytes[index] = 0x61 + UInt8(stream.below(26))
      default: break
      }
    }
  }

  /// Replaces big-endian UTF-16, whatever the database's encoding.
  func replaceWide(_ bytes: inout [UInt8], _ range: Range<Int>) {
    var stream = KeyStream(function, seed: function(bytes.span, range, tweak: 5))
    var index = range.lowerBound
    while index + 2 <= range.upperBound {
      let character = TextCoding.read(bytes.span, at: index, before: range.upperBound, .utf16BigEndian)
      if let scalar = character.scalar,
        let block = scalar < 0x80
          ? (scalar >= 0x61 && scalar <= 0x7a ? 0x61...0x7a : scalar >= 0x41 && scalar <= 0x5a ? 0x41...0x5a : nil)
          : CharacterBlock.block(of: scalar)
      {
        let other = block.lowerBound + UInt32(stream.below(Int(block.upperBound - block.lowerBound) + 1))
        TextCoding.write(other, length: character.length, into: &bytes, at: index, .utf16BigEndian)
      }
      index += max(2, character.length)
    }
  }
}
