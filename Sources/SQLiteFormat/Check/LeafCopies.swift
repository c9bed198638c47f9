/// Checksums of table leaves, for finding copies.
struct LeafCopies {
  private struct Leaf {
    let sum: UInt64
    let page: UInt32
    let root: UInt32
  }

  private static let limit = 1000

  private var leaves: [Leaf] = []

  mutating func add(_ page: BTreePage, ofTree root: UInt32) {
    leaves.append(Leaf(sum: Self.sum(page.bytes.span), page: page.number, root: root))
  }

  private static func sum(_ bytes: Span<UInt8>) -> UInt64 {
    var sum: UInt64 = 0xCBF2_9CE4_8422_2325
    var offset = 0
    while let word = bytes.uint32(at: offset) {
      sum = (sum ^ UInt64(word)) &* 0x100_0000_01B3
      offset &+= 4
    }
    return sum
  }

  /// Returns byte-identical pages of two tables.
  func pairs(in database: Database) throws(FormatError) -> [(first: LeafCopy.Place, second: LeafCopy.Place)] {
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

extension TableDefinition {
  /// How well rows fit a table's declared types.
  enum Likeness {
    case usual

    case strange

    case mixed
  }

  /// Compares a leaf's rows with this table.
  ///
  /// - Parameter isStrict: whether to require declared types, not only those that SQLite lets columns hold.
  func likeness(of page: BTreePage, isStrict: Bool) -> Likeness {
    let stored = storedColumns
    let span = page.bytes.span
    var fields = RecordFields()
    var strange = 0
    var count = 0
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index), fields.read(span, in: cell.localPayload, upTo: stored.count + 1) else {
        return .mixed
      }
      count += 1
      let isStrange =
        fields.count > stored.count
        || (0..<fields.count).contains { !allows(fields.codes[$0], in: stored[$0], isStrict: isStrict) }
      if isStrange { strange += 1 }
    }
    return strange == 0 ? .usual : strange == count ? .strange : .mixed
  }

  private func allows(_ code: Int64, in column: Int, isStrict: Bool) -> Bool {
    if column == rowidAlias { return code == 0 }
    if code == 0 { return !columns[column].isNotNull }
    let isText = code >= 13 && code & 1 == 1
    let isBlob = code >= 12 && code & 1 == 0
    switch columns[column].affinity {
    case .text: return isText || isBlob && !isStrict
    case _ where !isStrict: return true
    case .integer: return !isText && !isBlob && code != 7
    case .real, .numeric: return !isText && !isBlob
    case .blob: return columns[column].declaredType.isEmpty || isBlob
    }
  }
}
