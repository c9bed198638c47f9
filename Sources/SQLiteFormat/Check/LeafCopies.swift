/// The leaves of tables by what their bytes add up to, so that those are found that are the same in two tables.
struct LeafCopies {
  private struct Leaf {
    let sum: UInt64
    let page: UInt32
    let root: UInt32
  }

  private static let limit = 1000

  private var leaves: [Leaf] = []

  /// Notes a leaf of a table that has rows.
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

  /// The pairs of pages that are the same byte for byte in two tables.
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

/// Two leaves of two tables that are the same byte for byte.
package struct LeafCopy: Sendable, Hashable {
  /// A leaf and the table that has it.
  package struct Place: Sendable, Hashable {
    /// The page.
    package var page: UInt32

    /// The root page of the table.
    package var root: UInt32
  }

  /// The one that comes first among the pages with the same bytes.
  package var first: Place

  /// The other.
  package var second: Place

  /// The one of the two whose table is declared for other values than the rows have; nil where that tells nothing.
  ///
  /// The other's is declared for these. SQLite takes most values in any column.
  package var stranger: Place?
}

extension TableDefinition {
  /// How the rows of a leaf are like those of a table by the classes of their values.
  enum Likeness {
    /// Every value is of the kind that its column is declared for.
    case usual

    /// Each row has a value of another kind than its column, or that this cannot hold, or a field without a column.
    case strange

    case mixed
  }

  /// How the rows of a leaf are like those of this table.
  ///
  /// - Parameter isStrict: whether columns hold what they are declared for; else what SQLite lets them hold.
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

  /// Whether a column may hold a value of a serial type.
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
