internal import Platform

/// Checksums of table leaves, for finding copies.
struct LeafCopies {
  private struct Leaf {
    let sum: UInt64
    let page: UInt32
    let root: UInt32
  }

  static let limit = 1000

  private var leaves: [Leaf] = []

  mutating func add(_ page: UInt32, _ sum: UInt64, ofTree root: UInt32) {
    leaves.append(Leaf(sum: sum, page: page, root: root))
  }

  /// Returns the sum of two interleaved parts, which a processor computes at once.
  static func sum(_ bytes: Span<UInt8>) -> UInt64 {
    var (even, odd): (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0)
    var offset = 0
    while let word = bytes.uint64(at: offset), let next = bytes.uint64(at: offset &+ 8) {
      even = (even ^ word) &* 0x100_0000_01B3
      odd = (odd ^ next) &* 0x100_0000_01B3
      offset &+= 16
    }
    return even ^ (odd >> 32 | odd << 32)
  }

  /// Returns byte-identical pages of two tables.
  func pairs(in database: Database) throws(FileError) -> [(first: LeafCopy.Place, second: LeafCopy.Place)] {
    let sorted = leaves.sorted { ($0.sum, $0.page) < ($1.sum, $1.page) }
    var pairs: [(first: LeafCopy.Place, second: LeafCopy.Place)] = []
    for (one, other) in zip(sorted, sorted.dropFirst()) where one.sum == other.sum && one.root != other.root {
      guard pairs.count < Self.limit, let first = try database.page(one.page),
        let second = try database.page(other.page), first.bytes == second.bytes
      else { continue }
      pairs.append((.init(page: one.page, root: one.root), .init(page: other.page, root: other.root)))
    }
    return pairs
  }
}

package struct LeafCopy: Sendable, Hashable {
  package struct Place: Sendable, Hashable {
    package var page: UInt32

    package var root: UInt32
  }

  /// The lower-numbered of equal pages.
  package var first: Place

  package var second: Place

  /// The leaf with rows that fit only the other's table; nil if undecided.
  ///
  /// SQLite takes most values in any column.
  package var stranger: Place?
}

/// The values that the record fields of a table can have.
package struct FieldRules {
  private struct Field {
    let isRowid: Bool
    let isNotNull: Bool
    let isTyped: Bool
    let affinity: Affinity

    func allows(_ code: Int64, isStrict: Bool) -> Bool {
      if isRowid { return code == 0 }
      if code == 0 { return !isNotNull }
      let isText = code >= 13 && code & 1 == 1
      let isBlob = code >= 12 && code & 1 == 0
      switch affinity {
      case .text: return isText || isBlob && !isStrict
      case _ where !isStrict: return true
      case .integer: return !isText && !isBlob && code != 7
      case .real: return !isText && !isBlob
      // Columns such as DATETIME are numeric to SQLite, but mostly have text.
      case .numeric: return !isBlob
      case .blob: return !isTyped || isBlob
      }
    }
  }

  private let fields: [Field]

  package init(_ table: TableDefinition) {
    fields = table.storedColumns.map { place in
      let column = table.columns[place]
      return Field(
        isRowid: place == table.rowidAlias, isNotNull: column.isNotNull, isTyped: !column.declaredType.isEmpty,
        affinity: column.affinity)
    }
  }

  /// Whether SQLite can have stored a record with these serial types.
  package func allow(_ codes: [Int64]) -> Bool { allow(codes, count: codes.count, isStrict: false) }

  private func allow(_ codes: [Int64], count: Int, isStrict: Bool) -> Bool {
    count <= fields.count && (0..<count).allSatisfy { fields[$0].allows(codes[$0], isStrict: isStrict) }
  }

  /// Whether all rows of a leaf fit the table, or none does.
  ///
  /// - Parameter isStrict: whether to require declared types, not only those that SQLite lets columns hold.
  func areAll(_ isFitting: Bool, rowsOf page: BTreePage, isStrict: Bool) -> Bool {
    let span = page.bytes.span
    var record = RecordFields()
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index), record.read(span, in: cell.localPayload, upTo: fields.count + 1),
        allow(record.codes, count: record.count, isStrict: isStrict) == isFitting
      else { return false }
    }
    return true
  }
}
