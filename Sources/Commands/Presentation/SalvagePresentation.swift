import Lazaret
import RecoveryKit
import Salvage

/// A salvage in words: first what matters, then the accounts, then what to do.
struct SalvageText {
  let text: String

  init(_ report: SalvageReport, store: FilePath, output: FilePath, writtenTo place: FilePath) {
    var lines = Self.headline(report) + "\n"
    lines += Self.causes(report, store)
    lines += "\n" + Self.accounts(report) + "\n"
    for entity in report.entities where !entity.lostKeys.isEmpty {
      lines +=
        "  \(printable(entity.name)): \(grouped(entity.lost)) lost"
        + (entity.isLostExact ? "" : " (or deleted since)") + ", primary keys \(entity.lostKeys.words())\n"
    }
    if report.unplacedRows > 0 {
      lines += "  \(counted(report.unplacedRows, "row")) that fit no table: lazaret_lost_and_found\n"
    }
    for remark in report.remarks { lines += "  Note: \(remark)\n" }
    if let kit = report.kit {
      lines +=
        "  A recovery kit of \(kit.date) was used"
        + (kit.isCurrent ? "; nothing was written to the store since\n" : "; the store was written to since\n")
    }
    let states = PageStates.State.allCases.compactMap { state in
      report.pages.counts[state].map { "\($0) \(state.rawValue)" }
    }
    lines += "  Pages of \(report.pages.pageSize) bytes: \(states.joined(separator: ", "))\n"
    if let rebuild = report.rebuild { lines += Self.words(rebuild) }
    lines += "\n" + Self.next(report, output, place)
    text = lines
  }

  /// The one line that a tired person reads.
  private static func headline(_ report: SalvageReport) -> String {
    let records = report.isCoreData ? "record" : "row"
    let all = report.recovered + report.lost
    if report.isComplete { return "Everything was recovered: \(grouped(all)) \(records)\(all == 1 ? "" : "s")." }
    var line = "Recovered \(grouped(report.recovered)) of "
    line += "\(report.isLostExact ? "" : "about ")\(grouped(all)) \(records)\(all == 1 ? "" : "s")"
    var parts: [String] = []
    if report.doubtful > 0 { parts.append("\(grouped(report.doubtful)) of them doubtful") }
    if report.referencesCut > 0 {
      parts.append("\(grouped(report.referencesCut)) reference\(report.referencesCut == 1 ? "" : "s") cut")
    }
    if !parts.isEmpty { line += ", " + parts.joined(separator: ", ") }
    return line + ". Score: \(report.score) of 100."
  }

  private static func causes(_ report: SalvageReport, _ store: FilePath) -> String {
    guard !report.causes.isEmpty else { return "" }
    var lines = "\nWhat happened to \(printable(store.string)), as far as its bytes tell:\n"
    for cause in report.causes {
      let sure: String =
        switch cause.confidence {
        case .certain: ""
        case .likely: "Likely: "
        case .possible: "Perhaps: "
        }
      lines += "  \(sure)\(cause.words)\n"
    }
    return lines
  }

  private static func accounts(_ report: SalvageReport) -> String {
    let hasBackup = report.entities.contains { $0.fromBackup > 0 }
    let hasDeleted = report.entities.contains { $0.deleted > 0 }
    var header = ["", "recovered", "doubtful", "lost", "kept apart"]
    if hasBackup { header.append("from backup") }
    if hasDeleted { header.append("deleted") }
    var table = TextTable(header, numericColumns: Set(1..<header.count))
    for entity in report.entities {
      var row = [
        printable(entity.name), grouped(entity.recovered), grouped(entity.doubtful),
        entity.isLostExact ? grouped(entity.lost) : "about \(grouped(entity.lost))", grouped(entity.keptApart),
      ]
      if hasBackup { row.append(grouped(entity.fromBackup)) }
      if hasDeleted { row.append(grouped(entity.deleted)) }
      table.append(row)
    }
    return table.text()
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

  /// Where everything is, and what to do now.
  private static func next(_ report: SalvageReport, _ output: FilePath, _ place: FilePath) -> String {
    var lines = "The \(report.rebuild == nil ? "rows are" : "store is") in \(printable(output.string))\n"
    lines += "The report is in \(printable(place.string))\n"
    guard !report.isComplete else { return lines }
    lines += "What to do next:\n"
    if report.lost > 0 {
      lines += "  Look for a backup or another copy: records that are lost here may be whole there.\n"
    }
    if report.doubtful > 0 || report.entities.contains(where: { $0.keptApart > 0 }) {
      lines +=
        report.rebuild == nil
        ? "  Look at lazaret_provenance in the result: it says of each doubtful row where it is from, and why.\n"
        : "  Look at what was set aside: it says of each doubtful row where it is from, and why.\n"
    }
    if report.causes.contains(where: { [.bitFlips, .zeroedPages, .tornSectors, .randomPages].contains($0.code) }) {
      lines += "  Check the disk and the memory of the device before you trust it with the data again.\n"
    }
    return lines + "  Keep the damaged store as it is until you are sure that nothing is missing.\n"
  }
}
