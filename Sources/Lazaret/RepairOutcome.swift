package import Migration
package import Platform
package import SystemPackage

/// A repair, or a dry run of one, as `repair --json` prints it and as the inspector shows it.
///
/// Keys may be added, never changed.
package struct RepairOutcome: Sendable, Encodable {
  /// The store; nil where its place is not to be told.
  package var store: PathText?

  /// The version of the model that it is of; nil for a model that only the store carries.
  package var version: String?

  /// Whether it was only said what would be done.
  package var dryRun: Bool

  /// The original, whole, where it was replaced.
  package var backup: PathText?

  /// What a repair of records has taken out; missing where nothing was.
  package var setAside: PathText?

  /// The records of the store.
  package var rows: Int

  /// The records and pairs that were set aside.
  package var setAsideRows: Int

  /// The values that were changed in records.
  package var changedValues: Int

  /// What is added or changed, in the order in which it is done.
  package var changes: [RepairAccount.Change]

  /// What stays as it is, and why.
  package var leftOut: [RepairAccount.Remainder]

  /// What it cost; missing where nothing had to be done.
  package var metrics: MigrationMetrics?

  /// A dry run of a store's repair.
  package init(_ path: FilePath?, dryRun account: RepairAccount) {
    self.init(path, account, dryRun: true)
  }

  /// A repair that was carried out, or that had nothing to do.
  package init(_ path: FilePath, _ result: Migrator.Result) {
    self.init(path, result.repair, dryRun: false)
    store = PathText(result.store)
    backup = result.backup.map { PathText($0) }
    setAside = result.setAside.map { PathText($0) }
    metrics = result.metrics
  }

  private init(_ path: FilePath?, _ account: RepairAccount?, dryRun: Bool) {
    store = path.map { PathText($0) }
    version = account?.version
    self.dryRun = dryRun
    rows = account?.rows ?? 0
    setAsideRows = account?.setAsideRows ?? 0
    changedValues = account?.changedValues ?? 0
    changes = account?.changes ?? []
    leftOut = account?.leftOut ?? []
  }

  /// Whether records were set aside, or the model wants something that could not be added.
  package var leavesSomething: Bool { setAsideRows > 0 || leftOut.contains { $0.kind.isWantedByModel } }
}

extension RepairAccount.Remainder {
  /// What it is, with the primary keys of the first records that stand in the way.
  package var wordsWithKeys: String {
    guard !examples.isEmpty else { return text }
    let more = rows.map { $0 > examples.count } == true
    return "\(text) (\(examples.map { "\($0)" }.joined(separator: ", "))\(more ? " …" : ""))"
  }
}
