import Lazaret
import Salvage

/// A salvage as `salvage --json` prints it.
struct SalvageJSON: Encodable {
  struct Entity: Encodable {
    var name: String
    var table: String
    var recovered: Int64
    var doubtful: Int64
    var rebuilt: Int64
    var lost: Int64
    var lostIsExact: Bool
    var keptApart: Int64
    var deleted: Int64
  }

  struct Pages: Encodable {
    var pageSize: Int
    var total: Int
    var healthy: Int
    var orphan: Int
    var damaged: Int
    var free: Int
    var overflow: Int
    var special: Int
    var unplaced: Int
    var unreadable: Int
    var map: String
  }

  var complete: Bool
  var store: PathText
  var output: PathText
  var entities: [Entity]
  var unplacedRows: Int64
  var remarks: [String]
  var pages: Pages

  init(_ report: SalvageReport, store: FilePath, output: FilePath) {
    complete = report.isComplete
    self.store = PathText(store)
    self.output = PathText(output)
    entities = report.entities.map {
      Entity(
        name: $0.name, table: $0.table, recovered: $0.recovered, doubtful: $0.doubtful, rebuilt: $0.rebuilt,
        lost: $0.lost, lostIsExact: $0.isLostExact, keptApart: $0.keptApart, deleted: $0.deleted)
    }
    unplacedRows = report.unplacedRows
    remarks = report.remarks
    let counts = report.pages.counts
    pages = Pages(
      pageSize: report.pages.pageSize, total: report.pages.total, healthy: counts[.healthy] ?? 0,
      orphan: counts[.orphan] ?? 0, damaged: counts[.damaged] ?? 0, free: counts[.free] ?? 0,
      overflow: counts[.overflow] ?? 0, special: counts[.special] ?? 0, unplaced: counts[.unplaced] ?? 0,
      unreadable: counts[.unreadable] ?? 0, map: report.pages.map)
  }
}

/// A salvage in words.
struct SalvageText {
  let text: String

  init(_ report: SalvageReport, store: FilePath, output: FilePath) {
    var lines = "\(printable(store.string)): "
    lines += report.isComplete ? "everything was recovered\n" : "what could be found was recovered\n"
    for remark in report.remarks { lines += "  \(remark)\n" }
    var table = TextTable(
      ["", "recovered", "doubtful", "lost", "kept apart", "deleted"], numericColumns: [1, 2, 3, 4, 5])
    for entity in report.entities {
      table.append([
        printable(entity.name), "\(entity.recovered)", "\(entity.doubtful)",
        entity.isLostExact ? "\(entity.lost)" : "about \(entity.lost)", "\(entity.keptApart)", "\(entity.deleted)",
      ])
    }
    lines += "\n" + table.text() + "\n"
    if report.unplacedRows > 0 {
      lines += "  \(counted(report.unplacedRows, "row")) that fit no table: lazaret_lost_and_found\n"
    }
    let states = PageStates.State.allCases.compactMap { state in
      report.pages.counts[state].map { "\($0) \(state.rawValue)" }
    }
    lines += "  Pages of \(report.pages.pageSize) bytes: \(states.joined(separator: ", "))\n"
    lines += "  The rows are in \(printable(output.string))\n"
    text = lines
  }
}
