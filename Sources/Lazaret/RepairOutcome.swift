package import Migration
package import Platform
package import SystemPackage

/// A repair or dry run, as `repair --json` prints it and the inspector shows it.
///
/// Keys may be added, never changed.
package struct RepairOutcome: Sendable, Encodable {
  /// Nil if its path is private.
  package var store: PathText?

  /// Nil for a model that only the store contains.
  package var version: String?

  package var dryRun: Bool

  /// The replaced original.
  package var backup: PathText?

  /// The file of removed records.
  package var setAside: PathText?

  package var rows: Int

  /// Records and pairs.
  package var setAsideRows: Int

  package var changedValues: Int

  package var changes: [RepairAccount.Change]

  /// Unrepaired parts, with reasons.
  package var leftOut: [RepairAccount.Remainder]

  /// Missing if no repair was needed.
  var metrics: MigrationMetrics?

  package init(_ path: FilePath?, dryRun account: RepairAccount) { self.init(path, account, dryRun: true) }

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

  /// Whether records were set aside, or parts wanted by the model are missing.
  package var leavesSomething: Bool { setAsideRows > 0 || leftOut.contains { $0.kind.isWantedByModel } }
}

extension RepairAccount.Remainder {
  /// The remainder, with the primary keys of the first records that prevent its repair.
  package var wordsWithKeys: String {
    guard !examples.isEmpty else { return text }
    let more = rows.map { $0 > examples.count } == true
    return "\(text) (\(examples.map { "\($0)" }.joined(separator: ", "))\(more ? " …" : ""))"
  }
}
