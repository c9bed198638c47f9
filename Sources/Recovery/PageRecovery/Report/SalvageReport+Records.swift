internal import PersistentStore
package import SQLiteFormat
internal import StoreFiles

extension SalvageReport {
  /// The accounts of what holds records of the app's.
  ///
  /// Core Data's own tables hold none: its lists, the pairs of its relationships, its history, and its notes on what it
  /// mirrors.
  public var records: [Entity] { isCoreData ? entities.filter { !$0.isCoreDatasOwn } : entities }

  /// The accounts of Core Data's own tables.
  public var ownTables: [Entity] { isCoreData ? entities.filter(\.isCoreDatasOwn) : [] }

  /// The accounts of the pairs of many-to-many relationships, by table.
  public var pairs: [Entity] { isCoreData ? entities.filter(\.isOfPairs) : [] }

  /// Counts the rows of virtual tables once, under their own names: what their modules keep besides is no record.
  package mutating func foldShadowTables(of entries: [SchemaEntry]) {
    for entry in entries {
      guard let module = entry.tableDefinition?.module else { continue }
      let shadows = ShadowTables.names(of: entry.name, module: module)
      let rows = ShadowTables.rows(of: entry.name, module: module)
      entities = entities.compactMap { entity in
        guard shadows.contains(entity.table.lowercased()) else { return entity }
        guard entity.table.lowercased() == rows else { return nil }
        var entity = entity
        (entity.name, entity.table) = (entry.name, entry.name)
        return entity
      }
    }
  }

  /// The numbers of the records, which every text, list and page takes from here.
  public var count: RecoveryCount {
    var count = RecoveryCount(records, isComplete: isComplete)
    count.pairs = PairCount(pairs)
    if mayLackTables { count.noteUnknownTables() }
    count.unplaced = max(0, unplacedRows)
    count.valuesSetAside =
      rebuild?.valuesSetAside.reduce(Int64(0)) { $0.addingClamped(max(0, $1.count)) } ?? 0
    for loss in rebuild?.migrationLosses ?? [] { count.leaveOut(loss.count, isValues: loss.property != nil) }
    return count
  }

  /// Whether any row is doubtful, Core Data's own included.
  package var hasDoubts: Bool { entities.contains { $0.doubtful > 0 } }

  /// Whether anything shows that the store is damaged; nothing does of one that only could not be migrated.
  package var showsDamage: Bool {
    !causes.isEmpty || unplacedRows > 0 || entities.contains { $0.hasLosses || $0.doubtful > 0 || $0.keptApart > 0 }
  }

  /// Whether records or references are missing, or may be.
  package var lacksRecords: Bool { count.lost > 0 || count.hasUnknown || !count.pairs.isWhole || referencesCut > 0 }

  private var rowsApart: Int64 {
    max(
      entities.reduce(Int64(0)) { $0.addingClamped($1.rowsSetAside) },
      rebuild?.setAside.reduce(Int64(0)) { $0.addingClamped($1.count) } ?? 0)
  }

  /// Whether what is no record is missing from the result, or is doubtful: references, values, versions of rows, rows of Core
  /// Data's own tables.
  package var lacksDetails: Bool {
    referencesCut > 0 || rowsApart > 0 || rebuild?.defaulted.contains { $0.count > 0 } ?? false
      || ownTables.contains { $0.hasLosses || $0.doubtful > 0 }
  }

  /// Why the result is not complete beyond doubt, besides lost and doubtful records; empty where it is.
  package var reservations: [String] {
    guard !isComplete else { return [] }
    func sum(_ number: (Entity) -> Int64) -> Int64 { entities.reduce(0) { $0.addingClamped(number($1)) } }
    var reasons: [String] = []
    let taken = sum(\.fromBackup)
    if taken > 0 {
      reasons.append(
        "\(counted(taken, "row")) \(taken == 1 ? "is" : "are") from the backup"
          + (backup.map { " of \(printable($0.date))" } ?? ""))
    }
    let apart = rowsApart
    if apart > 0 { reasons.append("\(counted(apart, "row")) \(apart == 1 ? "was" : "were") set aside") }
    if unplacedRows > 0 { reasons.append("\(counted(unplacedRows, "row")) that fit no table") }
    if unplacedEntries > 0 {
      reasons.append("\(counted(unplacedEntries, "entry", "entries")) of indexes that no root leads to")
    }
    if ownTables.contains(where: { $0.hasLosses || $0.doubtful > 0 }) {
      reasons.append("rows of Core Data's own tables are lost or doubtful")
    }
    let cut = referencesCut
    if cut > 0 { reasons.append("\(counted(cut, "reference")) to lost records \(cut == 1 ? "was" : "were") cut") }
    let defaulted = rebuild?.defaulted.reduce(Int64(0)) { $0.addingClamped($1.count) } ?? 0
    if defaulted > 0 {
      reasons.append("\(counted(defaulted, "missing value")) \(defaulted == 1 ? "has" : "have") the model's default")
    }
    let values = count.valuesSetAside
    if values > 0 {
      reasons.append(
        "\(counted(values, "value")) that \(values == 1 ? "has" : "have") no column \(values == 1 ? "was" : "were") set aside"
      )
    }
    if rebuild?.fittedBecause != nil {
      reasons.append("rows were put into another version by the names of columns")
    }
    if rebuild?.migrationFailure != nil { reasons.append("the store could not be migrated") }
    guard reasons.isEmpty, count.lost == 0, !count.hasUnknown, count.doubtful == 0 else { return reasons }
    // Nothing is counted: the state of the files alone leaves a doubt.
    return remarks.isEmpty ? causes.map { $0.words.hasSuffix(".") ? String($0.words.dropLast()) : $0.words } : remarks
  }

  /// `Not beyond doubt: 12 rows were set aside.`; nil where the result is complete, or where lost or doubtful records tell why
  /// it is not.
  package var reservationWords: String? {
    count.words(reserving: reservations)
  }
}

extension SalvageReport.Entity {
  /// The numbers of this entity alone.
  public var count: RecoveryCount { RecoveryCount([self], isComplete: !hasLosses && doubtful == 0 && setAside == 0) }

  /// Whether a table of a Core Data store is Core Data's own; those of entities begin with `Z` and have their names.
  fileprivate var isCoreDatasOwn: Bool {
    guard name == table else { return false }
    let name = table.uppercased()
    return name.hasPrefix("Z_") || name.hasPrefix("ANSCK") || Self.history.contains(name)
  }

  /// Whether a table of a Core Data store has the pairs of a many-to-many relationship: `Z_3TAGS`, by the number of an entity.
  package var isOfPairs: Bool {
    isCoreDatasOwn && table.uppercased().hasPrefix("Z_") && table.dropFirst(2).first?.isWholeNumber == true
  }

  private static let history: Set<String> = ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"]
}
