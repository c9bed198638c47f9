internal import PersistentStore
public import Platform
internal import SQLiteFormat
public import SystemPackage

/// Takes lost rows from a donor.
///
/// Only rows with a lost place return: a row missing from a sound page was deleted, unless a recovery kit lists it.
/// They are doubtful, as they may have changed since the backup, unless the donor is the store's last state.
struct DonorRows {
  private let donor: SalvageDonor
  private let database: Database
  private let schema: Schema
  private let kit: KitEvidence?

  /// Whether the donor is the store's last state, so that its rows are certain.
  private var isAsLast = false

  private(set) var remarks: [String] = []

  private static let payloadLimit = 256 << 20

  /// Opens the donor.
  ///
  /// - Throws: `FileError` if it is unreadable; ``SalvageError`` if it is damaged or another store.
  init(_ donor: SalvageDonor, uuid: String?, kit: KitEvidence?, in fileSystem: FileSystem) throws {
    self.donor = donor
    self.kit = kit
    (database, schema) = try Self.open(donor, in: fileSystem)
    guard donor.trust != .anyStore else { return }
    if let uuid, let theirs = try storeUUID() {
      guard theirs.uppercased() != uuid.uppercased() else { return }
      throw Self.strange(donor, "it is of another store")
    }
    guard donor.trust == .sameStore else { return }
    throw Self.strange(donor, "nothing says whether it is of this store: one of the two has no identifier")
  }

  private static func open(_ donor: SalvageDonor, in fileSystem: FileSystem) throws -> (Database, Schema) {
    let evidence = try Evidence(donor.path, opened: donor.files, in: fileSystem)
    do throws(FileError) {
      let database = try Database.withOwnParts(
        main: evidence.main, writeAheadLog: evidence.log, rollbackJournal: evidence.journal)
      let schema = try database.schema()
      if !schema.findings.hasDamage, !database.findings.hasDamage { return (database, schema) }
    } catch {
      throw unusable(donor, error)
    }
    throw unusable(donor, nil)
  }

  static func schema(of donor: SalvageDonor, in fileSystem: FileSystem) throws -> ExpectedSchema? {
    let (database, schema) = try open(donor, in: fileSystem)
    guard !schema.entries.isEmpty, schema.table(named: "Z_METADATA") == nil else { return nil }
    let script = try SchemaScript(of: schema, database.encoding)
    var expected = try ExpectedSchema(script)
    expected.isOfDonor = true
    return expected
  }

  private static func strange(_ donor: SalvageDonor, _ detail: String) -> SalvageError {
    SalvageError(
      .donor, operation: "take rows from the backup", path: donor.path, detail: detail,
      hint: SalvageErrorKind.knownDonor)
  }

  private static func unusable(_ donor: SalvageDonor, _ error: FileError?) -> SalvageError {
    if let fileError = error?.fileError { return SalvageError(fileError) }
    return SalvageError(
      .donor, operation: "take rows from the backup", path: donor.path,
      detail: error?.detail ?? "it is damaged itself")
  }

  private func storeUUID() throws -> String? {
    guard let entry = schema.table(named: "Z_METADATA"), entry.rootPage > 0, let definition = entry.tableDefinition,
      let column = definition.column(named: "Z_UUID")
    else { return nil }
    var rows = try cursor(entry.rootPage)
    guard let row = try next(&rows) else { return nil }
    let values = definition.values(of: row)
    return values.indices.contains(column) ? values[column].string : nil
  }

  private func cursor(_ root: UInt32) throws -> TableCursor {
    do throws(FileError) {
      return try database.rows(root: root, payloadLimit: Self.payloadLimit)
    } catch {
      throw Self.unusable(donor, error)
    }
  }

  private func next(_ rows: inout TableCursor) throws -> Row? {
    do throws(FileError) { return try rows.next() } catch { throw Self.unusable(donor, error) }
  }

  mutating func run(_ outcome: RowOutcome, _ list: TreeList) throws {
    guard database.encoding == outcome.reader.layout.encoding else {
      remarks.append("no rows were taken from the backup: its text is of another encoding")
      return
    }
    let estimate = try LossEstimate(outcome, isCoreData: list.isCoreData)
    isAsLast = try isStoreAsLast()
    for index in outcome.crawl.trees.indices where outcome.live[index] != nil {
      let tree = outcome.crawl.trees[index]
      // Core Data's bookkeeping is rebuilt, never taken from an older store.
      guard tree.hasRowids, !tree.isComplete || outcome.tallies[index].destroyed > 0,
        !StoreLayout.bookkeepingTableNames.contains(tree.name.uppercased())
      else { continue }
      let numbers = list.entityNames(ofTable: tree.name).map { Int64($0.number) }
      try take(index, outcome, estimate, numbers: numbers)
    }
  }

  /// Whether the donor is the store's last state: a current recovery kit was made of it.
  ///
  /// Compares header counters in rollback journal mode, page checksums in WAL mode.
  private func isStoreAsLast() throws -> Bool {
    guard let kit, kit.use.isCurrent else { return false }
    guard let header = database.header, header.changeCounter == kit.kit.file.changeCounter,
      header.schemaCookie == kit.kit.file.schemaCookie
    else { return false }
    guard kit.kit.hasSums else { return !header.usesWriteAheadLog && !kit.kit.file.usesWriteAheadLog }
    for table in kit.kit.tables {
      for (page, sum) in zip(table.leaves, table.sums) where try !hasPage(page, sum) { return false }
    }
    return true
  }

  private func hasPage(_ page: UInt32, _ sum: UInt32) throws -> Bool {
    do throws(FileError) {
      guard let found = try database.page(page) else { return false }
      return RecoveryKit.sum(of: found.bytes) == sum
    } catch {
      throw Self.unusable(donor, error)
    }
  }

  private mutating func take(_ index: Int, _ outcome: RowOutcome, _ estimate: LossEstimate, numbers: [Int64]) throws {
    let tree = outcome.crawl.trees[index]
    guard let entry = schema.table(named: tree.name), entry.rootPage > 0, let theirs = entry.tableDefinition,
      let own = tree.definition, let live = outcome.live[index]
    else { return }
    guard theirs.columns.map({ $0.name.uppercased() }) == own.columns.map({ $0.name.uppercased() }),
      theirs.rowidAlias == own.rowidAlias
    else {
      remarks.append("no rows of \(printable(tree.name)) were taken from the backup: its columns are others there")
      return
    }
    let holes = try estimate.holeKeys(of: index, numbers: numbers)
    let listed = kit?.keys(ofTable: tree.name)
    let isCurrent = kit?.use.isCurrent == true
    let isAsNoted = kit?.isAsNoted == true
    var places = try estimate.places(of: index, numbers: numbers)
    // If the files are as the kit noted, every listed row that is missing is lost.
    if isAsNoted, let listed {
      places = listed
    } else if let missing = try estimate.countedKeys(of: index) {
      // A whole index has exactly the rows that existed.
      places = missing
    }
    var taken: Int64 = 0
    var inPages: Int64 = 0
    var rows = try cursor(entry.rootPage)
    while let row = try next(&rows) {
      guard row.record.isComplete, places.contains(row.rowid), listed?.contains(row.rowid) != false,
        try !live.hasRow(row.rowid)
      else { continue }
      let payload = Array(row.record.payload)
      guard try live.insert(payload.span, rowid: row.rowid) else { continue }
      taken += 1
      if !holes.contains(row.rowid) { inPages += 1 }
      let words = "lost in the store; taken from the backup of \(donor.date.rfc3339)"
      let origin = EvidenceNotes.Origin(page: row.page, cell: row.cell, source: "backup")
      if !isAsLast {
        let fate = isCurrent && listed != nil ? "changed" : "changed or deleted"
        try outcome.tables.noteDoubt(
          .fromBackup, row: row.rowid, of: index, origin, words: words + ", and possibly \(fate) since")
      } else {
        try outcome.tables.notes.noteRow(
          row.rowid, of: outcome.tables.name(of: index), key: row.rowid, origin, .probable, reason: words)
      }
    }
    outcome.tables.tallies[index].noteFromBackup(taken, inPages: inPages)
  }
}

/// A healthy store, such as a restored backup, that supplies lost rows; read-only, never opened as a database.
public struct SalvageDonor: Sendable, Hashable {
  /// The required proof of a donor's origin.
  public enum Trust: String, Sendable, Hashable {
    /// It has the identifier of the damaged store.
    case sameStore = "same-store"

    /// It lacks another store's identifier, and other evidence, such as its folder, ties it to this store.
    case noOtherStore = "no-other-store"

    /// No proof: the caller vouches for it.
    case anyStore = "any-store"
  }

  /// The main file.
  public var path: FilePath

  /// Its files, if they have no names.
  package var files: OpenedFiles?

  /// The time of the backup, noted with its rows.
  public var date: Timestamp

  /// The required proof of its origin.
  public var trust: Trust

  /// The backup's identifier, for the report; nil for a foreign file.
  public var id: String?

  /// Creates a donor with the date of its content.
  public init(path: FilePath, date: Timestamp, trust: Trust = .sameStore, id: String? = nil) {
    self.path = path
    self.id = id
    self.date = date
    self.trust = trust
  }

  /// Creates a donor dated by its main file's modification time.
  ///
  /// - Throws: `FileError` if the file's status is unavailable.
  public init(path: FilePath, in fileSystem: FileSystem = FileSystem()) throws {
    guard let status = try fileSystem.status(of: path) else {
      throw FileError(.notFound, operation: "read the backup", path: path)
    }
    self.init(path: path, date: status.modified)
  }
}
