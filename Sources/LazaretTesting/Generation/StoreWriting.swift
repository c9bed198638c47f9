internal import GRDB

internal import struct SQLiteFormat.LogChecksum

struct StoreWriting {
  private let generator: StoreGenerator
  private let set: StoreFileSet
  private let fileSystem: FileSystem
  private let unfinished: FilePath
  private var externalFiles = 0

  init(_ generator: StoreGenerator, _ set: StoreFileSet, _ fileSystem: FileSystem) {
    self.generator = generator
    self.set = set
    self.fileSystem = fileSystem
    unfinished = set.main.hiddenSibling(suffix: ".generating")
  }

  private var layout: StoreLayout { generator.layout }
  private var plan: GenerationPlan { generator.plan }

  mutating func run() throws -> GeneratedStore {
    removeUnfinished()
    let uuid = UniversalIdentifier(bytes: SeededNumbers(seed: plan.seed, "store").bytes(0, count: 16))
    let creation = StoreCreation(
      layout: layout, metadata: StoreMetadata(model: generator.model, uuid: uuid?.description ?? ""),
      modelCache: try generator.model.modelCache())
    let file = try fileSystem.create(unfinished)
    try file.write(try creation.bytes())
    try file.commit()
    let queue = try open()
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384")
      let isLogged = generator.options.journal == .log
      try transaction(database) { try fill(database, isLast: false, isWhole: !isLogged) }
      // The header says WAL unless changed; this also synchronizes the file.
      let mode = generator.options.journal == .rollback ? "DELETE" : "WAL"
      try database.execute(
        sql: "PRAGMA synchronous = FULL; PRAGMA journal_mode = \(mode); PRAGMA wal_autocheckpoint = 0")
      if isLogged {
        try transaction(database) { try fill(database, isLast: true, isWhole: false) }
        // Copied while the connection is open: closing it checkpoints the log.
        _ = try fileSystem.copy(unfinished, to: set.main)
        try LogCopy(fileSystem, salt: SeededNumbers(seed: plan.seed, "salt")[0])
          .copy(unfinished.sibling(suffix: "-wal"), to: set.path(of: .wal))
      } else if mode == "WAL" {
        try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
      }
    }
    try queue.close()
    if generator.options.journal != .log { try fileSystem.install(unfinished, at: set.main, replacing: false) }
    removeUnfinished()
    return GeneratedStore(
      path: set.main, records: plan.counts.filter { $0.value > 0 }, externalFiles: externalFiles, notes: notes)
  }

  private func open() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    configuration.label = "Lazaret.StoreGenerator"
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { database in
      for function in CoreDataFunctions.all(now: { StoreGenerator.referenceDate }) { database.add(function: function) }
    }
    return try DatabaseQueue(
      path: PersistentStore.address(of: unfinished, isReadOnly: false), configuration: configuration)
  }

  private func transaction(_ database: Database, _ body: () throws -> Void) throws {
    try database.execute(sql: "BEGIN")
    try body()
    try database.execute(sql: "COMMIT")
  }

  // MARK: Records

  private mutating func fill(_ database: Database, isLast: Bool, isWhole: Bool) throws {
    for table in layout.tables {
      try fill(table, database) { count in
        let cut = count - count / 4
        return isWhole ? 0..<count : isLast ? cut..<count : 0..<cut
      }
    }
    guard isWhole || isLast else { return }
    for table in layout.joinTables {
      guard let join = JoinPlan(table, plan) else { continue }
      try fill(join, database)
    }
    for table in layout.tables {
      guard let root = layout.entity(named: table.rootEntityName) else { continue }
      // The last records may have been deleted since.
      try database.execute(
        sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = "
          + "ifnull((SELECT max(Z_PK) + 3 FROM \(SQLText.identifier(table.name))), 0) WHERE Z_ENT = ?",
        arguments: [root.number])
    }
  }

  private mutating func fill(_ table: TableLayout, _ database: Database, _ range: (Int) -> Range<Int>) throws {
    let members = plan.members(of: table)
    let writers = members.map { EntityWriter($0, table, plan) }
    let statements = try writers.map { try database.makeStatement(sql: $0.sql) }
    let ranges = members.map { range($0.count) }
    guard let first = ranges.map(\.lowerBound).min(), let last = ranges.map(\.upperBound).max() else { return }
    for index in first..<max(first, last) {
      for (place, writer) in writers.enumerated() where ranges[place].contains(index) {
        let row = writer.row(index)
        for (name, bytes) in row.files { try writeExternal(bytes, name) }
        statements[place].setUncheckedArguments(StatementArguments(row.values))
        try statements[place].execute()
      }
    }
  }

  private func fill(_ join: JoinPlan, _ database: Database) throws {
    let table = join.table
    let statement = try database.makeStatement(
      sql: "INSERT OR IGNORE INTO \(SQLText.identifier(table.name)) "
        + "(\(table.columns.map(SQLText.identifier).joined(separator: ", "))) "
        + "VALUES (\(table.columns.map { _ in "?" }.joined(separator: ", ")))")
    try join.forEachPair { pair in
      var values = [pair.source, pair.destination]
      if table.sourceOrderColumn != nil { values.append(pair.sourceOrder) }
      if table.destinationOrderColumn != nil { values.append(pair.destinationOrder) }
      statement.setUncheckedArguments(StatementArguments(values))
      try statement.execute()
    }
  }

  /// Writes an external file (format section 3.7).
  private mutating func writeExternal(_ bytes: [UInt8], _ name: String) throws(FileError) {
    let folder = set.path(of: .externalData).appending("_EXTERNAL_DATA")
    if externalFiles == 0 {
      try fileSystem.makeDirectory(set.path(of: .externalData))
      try fileSystem.makeDirectory(folder)
    }
    let file = try fileSystem.create(folder.appending(name), truncating: true)
    try file.write(bytes)
    try file.commit()
    externalFiles += 1
  }

  // MARK: Notes

  private var notes: [GenerationNote] {
    guard plan.counts.values.contains(where: { $0 > 0 }) else { return [] }
    var result = plan.notes
    for entity in layout.entities {
      let properties = layout.model.entities[entity.name]?.properties ?? [:]
      for (name, property) in properties.inCodeUnitOrder() where !property.traits.isTransient {
        let key = PropertyKey(entityName: entity.name, name: name)
        func add(_ kind: GenerationNote.Kind) {
          result.append(GenerationNote(kind: kind, entityName: entity.name, propertyName: name))
        }
        if let attribute = property.attribute, !attribute.isDerived {
          if attribute.regularExpression != nil { add(.pattern) }
          if !attribute.validationPredicates.isEmpty { add(.predicate) }
          if AttributeBounds(attribute).isImpossible { add(.bounds) }
        } else if let relationship = property.relationship, !relationship.isToMany,
          ReferencePlan(key, relationship, plan).isIncomplete
        {
          add(.relationship)
        }
      }
    }
    return result
  }

  // MARK: Tidying

  private func removeUnfinished() {
    for suffix in ["", "-wal", "-shm", "-journal"] {
      // A remaining file shows when it is created.
      try? fileSystem.unlink(unfinished.sibling(suffix: suffix))
    }
  }

  /// Removes a failed run's files; report the first error.
  func removeEverything() {
    removeUnfinished()
    for part in StoreFileSet.Part.allCases where part != .externalData { try? fileSystem.unlink(set.path(of: part)) }
    try? fileSystem.removeTree(set.path(of: .externalData))
  }
}

/// A model's rule that a generated store violates.
///
/// Core Data can read such records, but not save them.
public struct GenerationNote: Sendable, Hashable {
  /// The kinds of violated rules.
  public enum Kind: String, Sendable {
    case pattern

    case predicate

    /// A mandatory attribute's bounds are contradictory or too narrow for uniqueness.
    case bounds

    /// Some mandatory relationships lack destinations, because the model's counts are unsatisfiable.
    case relationship
  }

  /// The kind of rule.
  public let kind: Kind

  /// The declaring entity.
  public let entityName: String

  /// The property.
  public let propertyName: String
}

/// Rewrites a write-ahead log with fixed salts, since SQLite's random ones vary the bytes.
///
/// Recomputes the checksums of header and frames (SQLite's file format, section 4.2).
struct LogCopy {
  private let fileSystem: FileSystem
  private let salts: [UInt8]

  init(_ fileSystem: FileSystem, salt: UInt64) {
    self.fileSystem = fileSystem
    salts = (0..<8).map { UInt8(truncatingIfNeeded: salt >> UInt64(8 * $0)) }
  }

  /// Copies a nonempty log with the memory of one page.
  func copy(_ source: FilePath, to target: FilePath) throws {
    // No writes, no log.
    guard let status = try fileSystem.status(of: source), status.size > 0 else { return }
    let original = try fileSystem.open(source)
    let copy = try fileSystem.create(target)
    var header = [UInt8](repeating: 0, count: 32)
    guard try original.read(at: 0, length: 32, into: &header) == 32 else {
      throw FileError(.other, operation: "copy the log", path: source, detail: "it has no header")
    }
    // The magic number's lowest bit is the checksums' byte order.
    let isBigEndian = header[3] & 1 == 1
    let pageSize = header[8..<12].reduce(0) { $0 << 8 | Int($1) }
    guard (512...65536).contains(pageSize) else {
      throw FileError(.other, operation: "copy the log", path: source, detail: "its page size is not one of SQLite's")
    }
    header.replaceSubrange(16..<24, with: salts)
    var sum = LogChecksum()
    sum.add(header.span.extracting(0..<24), bigEndian: isBigEndian)
    header.replaceSubrange(24..<32, with: sum.first.bigEndianBytes + sum.second.bigEndianBytes)
    try copy.write(header)
    var frame = [UInt8](repeating: 0, count: 24 + pageSize)
    var offset: Int64 = 32
    while try original.read(at: offset, length: frame.count, into: &frame) == frame.count {
      frame.replaceSubrange(8..<16, with: salts)
      sum.add(frame.span.extracting(0..<8), bigEndian: isBigEndian)
      sum.add(frame.span.extracting(24..<frame.count), bigEndian: isBigEndian)
      frame.replaceSubrange(16..<24, with: sum.first.bigEndianBytes + sum.second.bigEndianBytes)
      try copy.write(frame)
      offset += Int64(frame.count)
    }
    try copy.commit()
  }
}

struct JoinPlan: Sendable {
  /// A row; order values are unique for each primary key.
  struct Pair {
    let source: Int64
    let destination: Int64
    var sourceOrder: Int64 { Self.order(source) }
    var destinationOrder: Int64 { Self.order(destination) }
    var reversed: Pair { Pair(source: destination, destination: source) }

    private static func order(_ key: Int64) -> Int64 {
      Int64(bitPattern: UInt64(bitPattern: key) &* 2_654_435_761 & 0x7FFF_FFFF)
    }
  }

  let table: JoinTableLayout
  private let own: RecordPool
  private let other: RecordPool
  private let least: Int
  private let most: (own: Int?, other: Int?)
  private let isMandatory: Bool
  private let numbers: SeededNumbers
  private let profile: StoreProfile

  init?(_ table: JoinTableLayout, _ plan: GenerationPlan) {
    let model = plan.layout.model
    guard
      let relationship = model.entities[table.relationship.entityName]?.properties[table.relationship.name]?
        .relationship,
      let inverse = model.entities[table.inverse.entityName]?.properties[table.inverse.name]?.relationship
    else { return nil }
    self.table = table
    own = plan.pool(of: table.relationship.entityName, and: inverse.destinationEntityName)
    other = plan.pool(of: table.inverse.entityName, and: relationship.destinationEntityName)
    least = max(relationship.leastDestinations, inverse.leastDestinations)
    most = (relationship.mostDestinations, inverse.mostDestinations)
    isMandatory = least > 0
    numbers = SeededNumbers(seed: plan.seed, "join", table.relationship.description)
    profile = plan.profile
  }

  /// Calls a closure for every pair, possibly twice.
  func forEachPair(_ body: (Pair) throws -> Void) throws {
    guard own.total > 0, other.total > 0, isMandatory || profile != .sparse else { return }
    func emit(_ position: Int, _ place: Int) throws {
      guard let source = own.record(at: position), let destination = other.record(at: place) else { return }
      if table.isReflexive {
        guard source.key != destination.key else { return }
        let pair = Pair(source: source.key, destination: destination.key)
        try body(pair)
        try body(pair.reversed)
      } else {
        try body(Pair(source: source.key, destination: destination.key))
      }
    }
    // All get the minimum; then some get more.
    if isMandatory || most.own != nil || most.other != nil {
      for round in 0..<max(1, least).clamped(to: 1...other.total) {
        for step in 0..<max(own.total, other.total) {
          let (position, place) = (step % own.total, (step + round + (table.isReflexive ? 1 : 0)) % other.total)
          guard round + step / own.total < most.own ?? .max, round + step / other.total < most.other ?? .max else {
            continue
          }
          try emit(position, place)
        }
      }
    }
    guard most.own == nil, most.other == nil else { return }
    for position in 0..<own.total {
      let count = profile == .uniform ? min(2, other.total) : numbers.number(position, below: 4)
      for place in 0..<count {
        try emit(
          position, profile == .uniform ? place : numbers.number(position &* 5 &+ place &+ 1, below: other.total))
      }
    }
  }
}
