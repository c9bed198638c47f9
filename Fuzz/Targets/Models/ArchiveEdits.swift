internal import Platform

/// Changes to a keyed archive that bytes dictate: each takes the next bytes for where and what.
struct ArchiveEdits {
  private let bytes: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private var isAtEnd: Bool { place >= bytes.count }

  private mutating func next(below limit: Int) -> Int {
    guard limit > 1 else { return 0 }
    var value = 0
    for _ in 0..<(limit > 256 ? 2 : 1) {
      value = value << 8 | (isAtEnd ? 0 : Int(bytes[place]))
      place += 1
    }
    return value % limit
  }

  /// The archive with up to a hundred objects changed.
  mutating func apply(to archive: PropertyList) -> PropertyList {
    guard var fields = archive.dictionary, var objects = fields["$objects"]?.array, objects.count > 2 else {
      return archive
    }
    var count = 0
    while !isAtEnd, count < 100 {
      let index = next(below: objects.count)
      objects[index] = changed(objects[index], objects)
      count += 1
    }
    fields["$objects"] = .array(objects)
    return .dictionary(fields)
  }

  private static let numbers: [Int64] = [
    .min, -1, 0, 1, 2, 3, 4, 14, 20, 50, 100, 300, 700, 800, 1000, 1800, 2000, 2100, 1 << 31, 1 << 32, .max,
  ]

  private static let texts = [
    "", "$null", "name", "Car", "owner", "vehicles", "Z_PK", "\u{0}", "NSEntityDescription", "NSAttributeDescription",
    "NSRelationshipDescription", "NSFetchIndexDescription", "SELF", "1", "\u{1F6A2}",
  ]

  private mutating func changed(_ object: PropertyList, _ objects: [PropertyList]) -> PropertyList {
    switch object {
    case .dictionary(var entries):
      let keys = entries.keys.sorted()
      guard !keys.isEmpty else { return .array([]) }
      let key = keys[next(below: keys.count)]
      switch next(below: 5) {
      case 0: entries[key] = nil
      case 1: entries[key] = .uid(UInt64(next(below: objects.count)))
      case 2: entries[key] = .integer(Self.numbers[next(below: Self.numbers.count)])
      case 3: entries[key] = .string(Self.texts[next(below: Self.texts.count)])
      default: entries[key] = entries[key].map { changed($0, objects) }
      }
      return .dictionary(entries)
    case .array(let elements):
      guard !elements.isEmpty, next(below: 2) == 1 else { return .array(elements + elements.prefix(2)) }
      return .array(Array(elements.dropFirst(next(below: elements.count))))
    case .uid: return .uid(UInt64(next(below: objects.count)))
    case .string: return .string(Self.texts[next(below: Self.texts.count)])
    case .integer, .unsigned: return .integer(Self.numbers[next(below: Self.numbers.count)])
    case .data(let bytes): return .data(Array(bytes.dropLast(next(below: 40))))
    default: return objects[next(below: objects.count)]
    }
  }
}
