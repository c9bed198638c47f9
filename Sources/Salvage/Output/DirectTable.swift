internal import SQLiteFormat

/// A table of the new store that copies records byte for byte, bypassing SQLite.
///
/// It takes ascending rows with values that SQLite would store unchanged; SQLite inserts all others. Statistics
/// gathered meanwhile save a second reading.
final class DirectTable {
  struct Column {
    /// The source field; nil if the found table lacks the column.
    var field: Int?

    /// The classes that SQLite would keep unchanged.
    var classes: StorageClasses

    var role = Role.other
  }

  enum Role: Equatable {
    case key
    case entityNumber
    case saveCount

    /// Another record's primary key, with the reference's number.
    case reference(Int)
    case other
  }

  var rows: DirectRows

  init(_ tree: TableTree, columns: [Column], fieldCount: Int, budget: KeySet.Budget) {
    rows = DirectRows(tree, columns: columns, fieldCount: fieldCount, budget: budget)
  }
}

extension StorageClasses {
  /// The storage classes that an affinity leaves unchanged.
  init(keptBy affinity: Affinity) {
    switch affinity {
    case .text: self = [.null, .text, .blob]
    case .integer: self = [.null, .integer, .blob]
    case .numeric, .real: self = [.null, .integer, .real, .blob]
    case .blob: self = .any
    }
  }
}

/// The rows of a ``DirectTable`` while written.
struct DirectRows {
  private var tree: TableTree
  private let columns: [DirectTable.Column]
  private let roles: [DirectTable.Role]
  private let classes: [StorageClasses]
  private let fieldCount: Int
  private let isIdentity: Bool

  private(set) var count: Int64 = 0

  private(set) var entityCounts: [Int64: Int64] = [:]
  private var recentEntity: Int64 = .min
  private var recentCount: Int64 = 0

  /// Whether a row lacks a valid save count.
  private(set) var hasUnsaved: Bool

  private(set) var keys: KeySet

  private(set) var references: [KeySet]

  private struct Index {
    let name: String
    let isUnique: Bool
    var sorter: EntrySorter

    let fields: [Int]
  }

  private var indexes: [Index] = []
  private var isWatched: [Bool]
  private var watchedCodes: [Int64]
  private var watchedStarts: [Int]

  /// The largest rowid offered; later rows must exceed it.
  private var fence: Int64?

  private var scratch: [UInt8] = []
  private var starts: [Int] = []
  private var codes: [Int64] = []

  init(_ tree: TableTree, columns: [DirectTable.Column], fieldCount: Int, budget: KeySet.Budget) {
    self.tree = tree
    self.columns = columns
    self.fieldCount = fieldCount
    isIdentity = columns.count == fieldCount && columns.enumerated().allSatisfy { $0.element.field == $0.offset }
    var roles = [DirectTable.Role](repeating: .other, count: fieldCount)
    var classes = [StorageClasses](repeating: .any, count: fieldCount)
    var referenceCount = 0
    for column in columns {
      if let field = column.field {
        roles[field] = column.role
        classes[field] = column.classes
      }
      if case .reference(let number) = column.role { referenceCount = max(referenceCount, number + 1) }
    }
    self.roles = roles
    hasUnsaved = columns.contains { $0.role == .saveCount && $0.field == nil }
    isWatched = [Bool](repeating: false, count: fieldCount)
    watchedCodes = [Int64](repeating: 0, count: fieldCount)
    watchedStarts = [Int](repeating: 0, count: fieldCount)
    self.classes = classes
    keys = KeySet(budget)
    references = (0..<referenceCount).map { _ in KeySet(budget) }
  }

  /// Adds an index over the rows that follow, or leaves it to SQLite if the found table lacks a column.
  mutating func add(_ name: String, isUnique: Bool, columns places: [Int], _ sorter: EntrySorter) {
    let fields = places.compactMap { columns[$0].field }
    guard fields.count == places.count else { return }
    for field in fields { isWatched[field] = true }
    indexes.append(Index(name: name, isUnique: isUnique, sorter: sorter, fields: fields))
  }

  /// Writes the indexes; returns the names of those built.
  mutating func writeIndexes(_ tree: (String) -> IndexTree?) throws -> [String] {
    var made: [String] = []
    for index in indexes where index.sorter.isUsable {
      guard let tree = tree(index.name), try index.sorter.write(to: tree, isUnique: index.isUnique) else { continue }
      made.append(index.name)
    }
    indexes = []
    return made
  }

  var last: Int64? { tree.last }

  /// Writes a row; returns false if SQLite must insert it.
  @inline(__always)
  mutating func insert(_ bytes: Span<UInt8>, rowid: Int64) throws -> Bool {
    if let fence, rowid <= fence { return false }
    fence = rowid
    let end = bytes.count
    var offset = 0
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end) else {
      return false
    }
    let headerEnd = Int(header)
    var body = headerEnd
    var field = 0
    var needsRewriting = !isIdentity
    var entity: Int64?
    var isUnsaved = false
    while offset < headerEnd {
      guard field < fieldCount, let code = Varint.read(bytes, at: &offset, before: headerEnd),
        let width = SerialType.length(of: code), width <= end &- body,
        classes[field].contains(StorageClasses(serialType: code))
      else { return false }
      if isWatched[field] {
        watchedCodes[field] = code
        watchedStarts[field] = body
      }
      switch roles[field] {
      case .other: break
      case .key: if code != 0 { needsRewriting = true }
      case .entityNumber: entity = Self.integer(code, bytes, at: body, width)
      case .saveCount: isUnsaved = code == 0 || code == 7 || code >= 10
      case .reference(let number):
        if code != 0, let key = Self.integer(code, bytes, at: body, width) { references[number].insert(key) }
      }
      body &+= width
      field &+= 1
    }
    guard body == end, offset == headerEnd else { return false }
    if field < fieldCount { needsRewriting = true }
    if needsRewriting {
      guard rewrite(bytes) else { return false }
      let record = scratch
      try tree.add(record.span, rowid: rowid)
    } else {
      try tree.add(bytes, rowid: rowid)
    }
    for index in indexes.indices { try enter(index, bytes, fields: field, rowid) }
    keys.insert(rowid)
    note(entity)
    if isUnsaved || field < 3 { hasUnsaved = true }
    count &+= 1
    return true
  }

  @inline(__always)
  private mutating func enter(_ number: Int, _ bytes: Span<UInt8>, fields: Int, _ rowid: Int64) throws {
    guard indexes[number].sorter.isUsable else { return }
    let one = key(number, 0, bytes, fields)
    let two = indexes[number].fields.count > 1 ? key(number, 1, bytes, fields) : nil
    try indexes[number].sorter.add(one, two, rowid: rowid)
  }

  @inline(__always)
  private func key(_ number: Int, _ place: Int, _ bytes: Span<UInt8>, _ fields: Int) -> UInt64? {
    let field = indexes[number].fields[place]
    guard field < fields else { return 0 }
    let code = watchedCodes[field]
    return indexes[number].sorter.key(code, bytes, at: watchedStarts[field], SerialType.length(of: code) ?? 0)
  }

  @inline(__always)
  private static func integer(_ code: Int64, _ bytes: Span<UInt8>, at offset: Int, _ width: Int) -> Int64? {
    switch code {
    case 8: 0
    case 9: 1
    case 1...6: bytes.signedInteger(at: offset, length: width)
    default: nil
    }
  }

  @inline(__always)
  private mutating func note(_ entity: Int64?) {
    // A non-integer counts as the unused number -1.
    let entity = entity ?? -1
    if entity != recentEntity {
      if recentCount > 0 { entityCounts[recentEntity, default: 0] += recentCount }
      recentEntity = entity
      recentCount = 0
      // Limits memory against hostile stores.
      if entityCounts.count > 4096 { recentEntity = -1 }
    }
    recentCount &+= 1
  }

  /// Reorders a record's fields for the new table; returns false if malformed.
  private mutating func rewrite(_ bytes: Span<UInt8>) -> Bool {
    starts.removeAll(keepingCapacity: true)
    codes.removeAll(keepingCapacity: true)
    let end = bytes.count
    var offset = 0
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end) else {
      return false
    }
    let headerEnd = Int(header)
    var body = headerEnd
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= end - body
      else { return false }
      codes.append(code)
      starts.append(body)
      body += width
    }
    scratch.removeAll(keepingCapacity: true)
    var headerLength = 0
    for column in columns { headerLength += Varint.length(of: code(of: column)) }
    let own = headerLength + 1 < 128 ? 1 : headerLength + 2 < 16384 ? 2 : 3
    RecordBytes.appendVarint(Int64(headerLength + own), &scratch)
    for column in columns { RecordBytes.appendVarint(code(of: column), &scratch) }
    for column in columns {
      let code = code(of: column)
      guard code != 0, let field = column.field, let width = SerialType.length(of: code) else { continue }
      for index in starts[field]..<(starts[field] + width) { scratch.append(bytes[index]) }
    }
    return true
  }

  private func code(of column: DirectTable.Column) -> Int64 {
    guard column.role != .key, let field = column.field, field < codes.count else { return 0 }
    return codes[field]
  }

  mutating func hasRow(_ rowid: Int64) throws -> Bool {
    guard keys.mayContain(rowid) else { return false }
    return try keys.isExact || tree.record(rowid) != nil
  }

  mutating func holds(_ bytes: Span<UInt8>, rowid: Int64) throws -> Bool {
    guard keys.mayContain(rowid), let there = try tree.record(rowid), rewrite(bytes) else { return false }
    if there == scratch { return true }
    let one = Record(payload: there[...], encoding: .utf8)
    let other = Record(payload: scratch[...], encoding: .utf8)
    guard let one, let other else { return false }
    func padded(_ values: [Value]) -> [Value] {
      values + [Value](repeating: .null, count: max(0, columns.count - values.count))
    }
    return padded(one.values) == padded(other.values)
  }

  mutating func writeInteriorPages() throws {
    if recentCount > 0 { entityCounts[recentEntity, default: 0] += recentCount }
    recentCount = 0
    try tree.writeInteriorPages()
  }

  func count(ofEntity number: Int64) -> Int64 {
    entityCounts[number, default: 0] + (recentEntity == number ? recentCount : 0)
  }
}
