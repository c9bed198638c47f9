/// Finds the bytes that an app added to Core Data's metadata plist.
struct MetadataReading {
  /// The text, data, dates and reals of an app's entries.
  private(set) var appValues: [Range<Int>] = []

  private static let own: Set<String> = [
    "NSStoreType", "NSStoreUUID", "NSStoreModelVersionHashes", "NSStoreModelVersionHashesVersion",
    "NSStoreModelVersionHashesDigest", "NSStoreModelVersionChecksumKey", "NSStoreModelVersionIdentifiers",
    "NSPersistenceFrameworkVersion", "NSPersistenceMaximumFrameworkVersion", "_NSAutoVacuumLevel",
    "_NSStoreAncillaryModelVersionHashesMetadataKey", "NSPersistentStoreRebuildIndicies",
    "NSPersistentStoreDeferredLightweightMigrationOptionKey",
  ]

  private static let telling: Set<String> = [
    "NSStoreType", "NSStoreUUID", "NSStoreModelVersionHashes", "NSPersistenceFrameworkVersion",
  ]

  private static let mostObjects = 1 << 16

  private let range: Range<Int>
  private let offsetSize: Int
  private let referenceSize: Int
  private let count: Int
  private let table: Int

  /// Fails unless it is Core Data's binary list.
  init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    let magic = Array("bplist00".utf8)
    guard range.count >= 48, (0..<8).allSatisfy({ bytes[range.lowerBound + $0] == magic[$0] }) else { return nil }
    self.range = range
    let end = range.upperBound
    offsetSize = Int(bytes[end - 26])
    referenceSize = Int(bytes[end - 25])
    guard (1...4).contains(offsetSize), (1...4).contains(referenceSize) else { return nil }
    count = Self.number(bytes, (end - 20)..<(end - 16))
    let top = Self.number(bytes, (end - 12)..<(end - 8))
    table = range.lowerBound + Self.number(bytes, (end - 4)..<end)
    guard count > 0, count <= min(Self.mostObjects, range.count), top < count, table < end,
      table + count * offsetSize <= end, let root = object(top, bytes), root.kind == 0xd
    else { return nil }
    var shared: Set<Int> = []
    var others: [Int] = []
    var isTelling = false
    for entry in 0..<root.count {
      guard let key = reference(entry, of: root, bytes), let value = reference(root.count + entry, of: root, bytes)
      else { return nil }
      shared.insert(key)
      let name = object(key, bytes).flatMap { $0.kind == 5 ? text($0, bytes) : nil } ?? ""
      if Self.telling.contains(name) { isTelling = true }
      if Self.own.contains(name) { _ = objects(below: value, bytes, &shared) } else { others.append(value) }
    }
    guard isTelling else { return nil }
    for object in others.flatMap({ objects(below: $0, bytes, &shared) }) {
      let length =
        switch object.kind {
        case 2, 3: 1 << min(object.count, 4)
        case 4, 5: object.count
        case 6: 2 * object.count
        default: 0
        }
      guard length >= 4, object.content + length <= table else { continue }
      appValues.append(object.content..<(object.content + length))
    }
  }

  private struct Object {
    var kind: UInt8
    var count: Int
    var content: Int
  }

  private static func number(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
    range.reduce(0) { $0 << 8 | Int(bytes[$1]) }
  }

  private func object(_ index: Int, _ bytes: Span<UInt8>) -> Object? {
    guard index < count else { return nil }
    let place = table + index * offsetSize
    let start = range.lowerBound + Self.number(bytes, place..<(place + offsetSize))
    guard start < table else { return nil }
    var object = Object(kind: bytes[start] >> 4, count: Int(bytes[start] & 15), content: start + 1)
    if object.kind >= 4, object.count == 15 {
      guard start + 2 < table, bytes[start + 1] >> 4 == 1 else { return nil }
      let size = 1 << Int(bytes[start + 1] & 3)
      guard size <= 4, start + 2 + size <= table else { return nil }
      object.count = Self.number(bytes, (start + 2)..<(start + 2 + size))
      object.content = start + 2 + size
    }
    return object
  }

  private func reference(_ place: Int, of object: Object, _ bytes: Span<UInt8>) -> Int? {
    let start = object.content + place * referenceSize
    guard start + referenceSize <= table else { return nil }
    return Self.number(bytes, start..<(start + referenceSize))
  }

  private func text(_ object: Object, _ bytes: Span<UInt8>) -> String? {
    guard object.content + object.count <= table else { return nil }
    return String(decoding: (object.content..<(object.content + object.count)).map { bytes[$0] }, as: UTF8.self)
  }

  private func children(_ object: Object, _ bytes: Span<UInt8>) -> [Int] {
    guard object.kind == 0xa || object.kind == 0xc || object.kind == 0xd else { return [] }
    let places = object.kind == 0xd ? 2 * object.count : object.count
    guard places <= (table - object.content) / referenceSize else { return [] }
    return (0..<places).compactMap { reference($0, of: object, bytes) }
  }

  /// Returns an object with those below it, without the ones seen.
  private func objects(below index: Int, _ bytes: Span<UInt8>, _ seen: inout Set<Int>) -> [Object] {
    var (waiting, objects) = ([index], [Object]())
    while let next = waiting.popLast() {
      guard seen.insert(next).inserted, let object = object(next, bytes) else { continue }
      waiting += children(object, bytes)
      objects.append(object)
    }
    return objects
  }
}
