internal import SQLiteFormat

/// The quality of a page's fit to a table or index.
struct PageFit {
  /// About 1 for each field of the expected class.
  var score = 0.0

  /// Whether all records lack fields: older than added columns, or another table's.
  var isShort = false

  /// The average number of unexpected storage classes per record.
  var oddness = 0.0

  var isUnusual: Bool { oddness > 0.5 }

  /// The evidence against the table; missing values weigh more than odd ones.
  var tier: Int { (isShort ? 2 : 0) + (isUnusual ? 1 : 0) }

  var rank: Double { score - 1000 * Double(tier) }
}

enum PageScore {
  private static let sample = 16

  /// The fit of a page's records; nil where the page can't belong to the table.
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
    // Rows older than a column lack it; fewer missing fields are likelier.
    let score =
      (Double(usual) - 2 * Double(unusual) - 0.3 * Double(missing)) / number + entity
      + Double(fitting) / Double(readable)
    return PageFit(score: score, isShort: longest < shape.fields.count, oddness: Double(unusual) / number)
  }

  /// Whether all sampled rows are well-formed and have all fields in usual classes.
  ///
  /// - Parameter lacking: the number of fields that may be missing.
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
  /// The shape with any class allowed, except in the key, which is NULL in records.
  var ofAnyClass: RecordShape {
    var shape = self
    for index in shape.fields.indices where shape.fields[index].allowed != .null {
      shape.fields[index] = Field(allowed: .any, usual: .any)
    }
    return shape
  }
}
