import HTTPServer
import StoreCoordination

/// What a repair does or has done, and what stays as it is, as two lists.
struct RepairLists {
  let outcome: RepairOutcome

  var html: HTML {
    let changes: HTML =
      outcome.changes.isEmpty
      ? "<p>Nothing \(outcome.dryRun ? "would be" : "was") added or changed.</p>"
      : DriftList.list(outcome.changes.map(\.text))
    return changes + aside + leftOut
  }

  private var aside: HTML {
    guard outcome.setAsideRows > 0 || outcome.changedValues > 0 else { return .empty }
    let will = outcome.dryRun ? "would be" : "were"
    return """
      <p>In all \(Words.counted(outcome.setAsideRows, "record")) \(will) set aside, and \
      \(Words.counted(outcome.changedValues, "value")) of other records \(will) changed.</p>
      """
  }

  private var leftOut: HTML {
    guard !outcome.leftOut.isEmpty else { return .empty }
    return """
      <h3>\(outcome.dryRun ? "Would stay" : "Stays") as it is, and why</h3>\
      \(DriftList.list(outcome.leftOut.map(\.wordsWithKeys)))
      """
  }
}
