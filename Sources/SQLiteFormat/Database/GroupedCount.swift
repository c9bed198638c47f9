/// Counts rows by the integer in one column, such as `Z_ENT`.
struct GroupedCount {
  /// Further integers count under nil.
  static let limit = 65536

  let column: Int

  private var counted: [Int64?: Int] = [:]
  private var current: Int64?
  private var run = 0

  private(set) var hasTooMany = false

  init(column: Int) { self.column = column }

  /// The rows per integer; nil for other values or overflow.
  var counts: [Int64?: Int] {
    guard run > 0 else { return counted }
    return counted.merging([current: run], uniquingKeysWith: +)
  }

  @inline(__always)
  mutating func add(_ cell: Cell, on page: BTreePage) {
    let value = LeafScan.integer(inColumn: column, of: page.bytes.span, payload: cell.localPayload)
    if value != current { begin(value) }
    run += 1
  }

  private mutating func begin(_ value: Int64?) {
    if run > 0 { counted[current, default: 0] += run }
    run = 0
    current = value
    guard value != nil, counted.count >= Self.limit, counted[value] == nil else { return }
    current = nil
    hasTooMany = true
  }
}
