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

  struct Repair: Encodable {
    var entity: String
    var property: String?
    var reason: String?
    var count: Int64
    var primaryKeys: [Int64]

    init(_ repair: SalvageReport.Rebuild.Repair) {
      entity = repair.entity
      property = repair.property
      reason = repair.reason?.rawValue
      count = repair.count
      primaryKeys = repair.primaryKeys
    }
  }

  struct Rebuild: Encodable {
    var version: String?
    var basis: String
    var referencesCut: [Repair]
    var setAside: [Repair]
    var defaulted: [Repair]
    var conflicts: [Repair]
    var corrected: [Repair]
    var setAsideFile: PathText?
    var migratedTo: String?
    var steps: [String]
    var migrationFailure: String?

    init(_ rebuild: SalvageReport.Rebuild) {
      version = rebuild.version
      basis = rebuild.basis.rawValue
      referencesCut = rebuild.referencesCut.map(Repair.init)
      setAside = rebuild.setAside.map(Repair.init)
      defaulted = rebuild.defaulted.map(Repair.init)
      conflicts = rebuild.conflicts.map(Repair.init)
      corrected = rebuild.corrected.map(Repair.init)
      setAsideFile = rebuild.setAsideFile.map { PathText($0) }
      migratedTo = rebuild.migratedTo
      steps = rebuild.steps
      migrationFailure = rebuild.migrationFailure
    }
  }

  var complete: Bool
  var store: PathText
  var output: PathText
  var entities: [Entity]
  var unplacedRows: Int64
  var remarks: [String]
  var pages: Pages
  var rebuild: Rebuild?

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
    rebuild = report.rebuild.map(Rebuild.init)
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
    if let rebuild = report.rebuild { lines += Self.words(rebuild) }
    lines += "  The \(report.rebuild == nil ? "rows are" : "store is") in \(printable(output.string))\n"
    text = lines
  }

  private static func words(_ rebuild: SalvageReport.Rebuild) -> String {
    var lines = ""
    for (repairs, words) in [
      (rebuild.referencesCut, "references to records that are gone were cut"),
      (rebuild.setAside.filter { $0.reason != .conflict }, "rows that do not fit were set aside"),
      (rebuild.conflicts, "rows that contradict others were set aside"),
      (rebuild.defaulted, "missing values were set to the model's default"),
      (rebuild.corrected, "numbers were put right"),
    ] {
      for repair in repairs {
        let place = ([repair.entity] + (repair.property.map { [$0] } ?? [])).joined(separator: ".")
        lines += "  \(printable(place)): \(repair.count) \(words)\n"
      }
    }
    if let file = rebuild.setAsideFile {
      lines += "  What is not in the store is in \(printable(file.string))\n"
    }
    let version = rebuild.version.map { printable($0) }
    switch rebuild.basis {
    case .bestFit: lines += "  Nothing tells the version; \(version ?? "the model") fits best\n"
    default: if let version { lines += "  Version: \(version)\n" }
    }
    if let destination = rebuild.migratedTo {
      lines += "  Migrated to \(printable(destination)): \(printable(rebuild.steps.joined(separator: ", ")))\n"
    }
    if let failure = rebuild.migrationFailure {
      lines += "  It could not be migrated and is of its own version still: \(printable(failure))\n"
    }
    return lines
  }
}
