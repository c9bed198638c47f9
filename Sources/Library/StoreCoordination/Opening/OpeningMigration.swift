import StoreFiles

/// What a migration did with a store on its way to being open.
package struct OpeningMigration: Sendable, Hashable, Codable {
  /// One step of it.
  package struct Step: Sendable, Hashable, Codable {
    /// Such as `V1 → V2`.
    package var step: String

    /// How it was carried out.
    package var way: MigrationWay

    /// The records that it left.
    package var rows: Int
  }

  /// The steps, in order.
  package var steps: [Step]

  /// How many of the steps an earlier run had finished.
  package var resumedSteps: Int

  /// What records lost in it; empty where nothing was lost.
  package var losses: [MigrationPlan.Finding]

  /// The records that were left out because the app's version lacks their entity, by entity; they are in the original, which
  /// is kept until it is released.
  package var removedRows: [String: Int]

  /// What it cost; nil where an earlier run did it and could not tell any more.
  package var metrics: MigrationMetrics?

  init(_ result: Migrator.Result) {
    steps = result.steps.map { Step(step: $0.step, way: $0.way, rows: $0.rows) }
    resumedSteps = result.resumedSteps
    losses = result.steps.flatMap(\.losses)
    removedRows = result.steps.map(\.removedRows).reduce(into: [:]) { $0.merge($1) { $0 + $1 } }
    metrics = result.metrics
  }

  /// In one plain sentence.
  package var words: String {
    let first = steps.first?.step.split(separator: " → ").first ?? ""
    let last = steps.last?.step.split(separator: " → ").last ?? ""
    let count = steps.count == 1 ? "one step" : "\(steps.count) steps"
    let records = losses.filter { $0.property == nil }.reduce(0) { $0 + ($1.rows ?? 0) }
    let values = losses.filter { $0.property != nil }.reduce(0) { $0 + ($1.rows ?? 0) }
    var lost: [String] = []
    if records > 0 { lost.append(counted(records, "record")) }
    if values > 0 { lost.append(counted(values, "value")) }
    let loss = lost.isEmpty ? "" : "; it left out \(lost.joined(separator: " and "))"
    return "The store was migrated, \(printable("\(first) → \(last)")) in \(count)\(loss)."
  }
}
