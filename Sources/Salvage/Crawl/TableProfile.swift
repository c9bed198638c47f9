internal import SQLiteFormat

/// Value ranges of a table, to distinguish tables with the same columns.
struct TableProfile {
  private struct Column {
    var numbers: ClosedRange<Double>?
    var lengths: ClosedRange<Int>?
    var canBeNull = false
  }

  private var columns: [Column]

  /// The rows learned; 0 if only foreign keys are known.
  private(set) var rowCount = 0

  private static let sample = 32

  init(fieldCount: Int) { columns = [Column](repeating: Column(), count: fieldCount) }

  var isTelling: Bool { columns.contains { $0.numbers != nil || $0.lengths != nil } }

  mutating func learn(_ bytes: Span<UInt8>, start: Int, _ geometry: PayloadGeometry, _ encoding: TextEncoding) {
    Self.forEachRow(bytes, start: start, geometry, encoding) { values in
      rowCount += 1
      for (index, value) in values.enumerated() where index < columns.count {
        switch value {
        case .null: columns[index].canBeNull = true
        case .integer(let number): columns[index].numbers = Self.widened(columns[index].numbers, Double(number))
        case .real(let number) where number.isFinite:
          columns[index].numbers = Self.widened(columns[index].numbers, number)
        case .real: break
        case .text(let text): columns[index].lengths = Self.widened(columns[index].lengths, text.bytes.count)
        case .blob(let blob): columns[index].lengths = Self.widened(columns[index].lengths, blob.count)
        }
      }
    }
  }

  /// Sets a foreign key column's range.
  mutating func refer(_ column: Int, to keys: ClosedRange<Int64>) {
    guard columns.indices.contains(column), rowCount == 0 else { return }
    columns[column].numbers = Double(keys.lowerBound)...Double(keys.upperBound)
    columns[column].canBeNull = true
  }

  /// The share of a page's values within the profile, if comparable.
  func share(
    _ bytes: Span<UInt8>, start: Int, _ geometry: PayloadGeometry, _ encoding: TextEncoding
  ) -> Double? {
    var alike = 0
    var total = 0
    Self.forEachRow(bytes, start: start, geometry, encoding) { values in
      for (index, value) in values.enumerated() where index < columns.count {
        let column = columns[index]
        switch value {
        case .null:
          guard rowCount > 0 else { continue }
          alike += column.canBeNull ? 1 : 0
        case .integer(let number):
          guard rowCount > 0 || column.numbers != nil else { continue }
          alike += Self.contains(column.numbers, Double(number)) ? 1 : 0
        case .real(let number):
          guard rowCount > 0 || column.numbers != nil else { continue }
          alike += Self.contains(column.numbers, number) ? 1 : 0
        case .text(let text):
          guard rowCount > 0 else { continue }
          alike += Self.contains(column.lengths, text.bytes.count) ? 1 : 0
        case .blob(let blob):
          guard rowCount > 0 else { continue }
          alike += Self.contains(column.lengths, blob.count) ? 1 : 0
        }
        total += 1
      }
    }
    return total > 0 ? Double(alike) / Double(total) : nil
  }

  // MARK: Ranges

  private static func widened<Number>(_ range: ClosedRange<Number>?, _ value: Number) -> ClosedRange<Number> {
    guard let range else { return value...value }
    return min(range.lowerBound, value)...max(range.upperBound, value)
  }

  /// Whether a number is near a range, as lost pages may have held its ends.
  private static func contains(_ range: ClosedRange<Double>?, _ value: Double) -> Bool {
    guard let range else { return false }
    let slack = (range.upperBound - range.lowerBound) / 8
    return value >= range.lowerBound - slack && value <= range.upperBound + slack
  }

  /// Whether a length is near a range; fixed lengths, such as of UUIDs, must match.
  private static func contains(_ range: ClosedRange<Int>?, _ value: Int) -> Bool {
    guard let range else { return false }
    let slack = (range.upperBound - range.lowerBound) / 8
    return value >= range.lowerBound - slack && value <= range.upperBound + slack
  }

  private static func forEachRow(
    _ bytes: Span<UInt8>, start: Int, _ geometry: PayloadGeometry, _ encoding: TextEncoding,
    _ body: ([Value]) -> Void
  ) {
    guard let count = bytes.uint16(at: start + 3), count > 0 else { return }
    for index in stride(from: 0, to: count, by: max(1, count / sample)) {
      guard let offset = bytes.uint16(at: start + 8 + 2 * index),
        let cell = LeafCell(bytes, kind: .tableLeaf, at: offset, index: index, geometry: geometry), cell.overflow == 0
      else { continue }
      let payload = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
      guard let record = Record(payload: payload[...], encoding: encoding), record.isWellFormed else { continue }
      body(record.values)
    }
  }
}
