internal import Foundation
internal import GRDB
internal import PropertyLists
internal import StoreFiles

extension AttributeValues {
  /// The length from which data goes into a file of its own; Core Data's own limit is thought to be about this.
  static let externalLength = 110_000

  /// How many records have data of such a length, so that many records stay quick to make.
  private static let largeRecords = 12

  /// The data of a binary or transformable attribute, as its column or a file beside the store holds it.
  func data(_ index: Int) -> Value {
    let bytes = attribute.type == .transformable ? archive(index) : binary(index)
    guard isMarked else { return .stored(Data(bytes).databaseValue) }
    if bytes.count >= Self.externalLength, let name = UniversalIdentifier(bytes: numbers.bytes(~index, count: 16)) {
      return .external(fileName: name.description, bytes)
    }
    return .stored(Data([1] + bytes).databaseValue)
  }

  private func binary(_ index: Int) -> [UInt8] {
    guard profile == .edge else {
      let isLarge = isMarked && profile == .typical && index < Self.largeRecords && numbers.number(index, below: 4) == 1
      return numbers.bytes(index, count: isLarge ? Self.externalLength : numbers.number(index &+ 1, below: 200))
    }
    switch index % 8 {
    case 0: return []
    case 1: return [0]
    // Data that looks like the markers of external storage.
    case 2: return [1, 2, 3]
    case 3: return [2] + Array("0F0E0D0C-0B0A-4908-8706-050403020100".utf8) + [0]
    case 4: return index < Self.largeRecords ? numbers.bytes(index, count: 150_000) : [1]
    case 5: return index < Self.largeRecords ? numbers.bytes(index, count: 90_000) : [2]
    case 6: return [UInt8](repeating: 0xFF, count: 4096)
    default: return numbers.bytes(index, count: 37)
    }
  }

  /// What Core Data's usual transformer makes of a list of texts: a keyed archive.
  private func archive(_ index: Int) -> [UInt8] {
    var writer = KeyedArchiveWriter()
    let texts = (0..<(1 + numbers.number(index, below: 3))).map { place in
      writer.string(profile == .edge ? "⛵️ \(place)" : "text \(numbers.number(index &+ place, below: 100))")
    }
    let root = writer.array(texts)
    // The archive is of plain text and always fits; if not, data that no transformer made is still data.
    let bytes = (try? writer.bytes(root: root)) ?? [0x62]
    guard isMarked, profile == .edge, index == 4 else { return bytes }
    return bytes + numbers.bytes(index, count: Self.externalLength)
  }
}
