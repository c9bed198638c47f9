internal import SQLiteFormat

/// How well the records of a page fit a table or index.
struct PageFit {
  /// About 1 for each field that holds what it should.
  var score = 0.0

  /// Whether no record of the page has all fields of the table: it was written before columns were added, or is another table's.
  var isShort = false

  /// How many values of another class than their columns are declared for a record has, on average.
  var oddness = 0.0

  /// Whether most records have such a value.
  var isUnusual: Bool { oddness > 0.5 }

  /// How much the number of values and their classes speak against the table: 0 for nothing; few values more than odd ones.
  var tier: Int { (isShort ? 2 : 0) + (isUnusual ? 1 : 0) }

  /// The score, behind the tier.
  var rank: Double { score - 1000 * Double(tier) }
}

/// Compares the records of a page with a table or index.
enum PageScore {
  /// How many cells of a page are compared at most.
  private static let sample = 16

  /// How the records of a page fit; nil where the page cannot be one of the table.
  static func fit(
    _ bytes: Span<UInt8>, start: Int, _ shape: RecordShape, geometry: PayloadGeometry
  ) -> PageFit? {
    guard start + 8 < bytes.count, let kind = PageKind(rawValue: bytes[start]), kind != .tableInterior,
      let count = bytes.uint16(at: start + 3), count > 0
    else { return nil }
    let pointers = start + kind.headerLength
    let step = max(1, count / sample)
    var readable = 0
    var fitting = 0
    var usual = 0
    var unusual = 0
    var missing = 0
    var longest = 0
    for index in stride(from: 0, to: count, by: step) {
      guard let offset = bytes.uint16(at: pointers + 2 * index), offset >= pointers,
        let cell = LeafCell(bytes, kind: kind, at: offset, index: index, geometry: geometry)
      else { continue }
      readable += 1
      guard let fit = shape.fit(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length) else {
        continue
      }
      fitting += 1
      usual += fit.usual
      unusual += fit.unusual
      missing += shape.fields.count - fit.fields
      longest = max(longest, fit.fields)
    }
    guard fitting > 0, fitting * 5 >= readable * 4 else { return nil }
    let number = Double(fitting)
    let entity = shape.entityNumbers == nil ? 0.0 : 1.0
    // Fields are missing in rows that are older than their columns; the fewer the likelier.
    let score =
      (Double(usual) - 2 * Double(unusual) - 0.3 * Double(missing)) / number + entity
      + Double(fitting) / Double(readable)
    return PageFit(score: score, isShort: longest < shape.fields.count, oddness: Double(unusual) / number)
  }

  /// Whether every row of a page is wholly like those of a table: each cell is one, no field is missing, and none holds a
  /// value of another class.
  ///
  /// - Parameter lacking: how many fields may be missing all the same.
  static func isFull(
    _ bytes: Span<UInt8>, start: Int, _ shape: RecordShape, geometry: PayloadGeometry, lacking: Int = 0
  ) -> Bool {
    guard start + 8 < bytes.count, let kind = PageKind(rawValue: bytes[start]), kind != .tableInterior,
      let count = bytes.uint16(at: start + 3), count > 0
    else { return false }
    for index in stride(from: 0, to: count, by: max(1, count / sample)) {
      guard let offset = bytes.uint16(at: start + kind.headerLength + 2 * index),
        let cell = LeafCell(bytes, kind: kind, at: offset, index: index, geometry: geometry),
        let fit = shape.fit(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length),
        fit.unusual == 0, fit.fields >= shape.fields.count - lacking
      else { return false }
    }
    return true
  }
}

extension RecordShape {
  /// The same with fields of any class, but for the key, which is NULL in the record.
  var ofAnyClass: RecordShape {
    var shape = self
    for index in shape.fields.indices where shape.fields[index].allowed != .null {
      shape.fields[index] = Field(allowed: .any, usual: .any)
    }
    return shape
  }
}
