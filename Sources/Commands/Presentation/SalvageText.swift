import Lazaret
import Platform
import Salvage
import SystemPackage

/// A salvage in words: the result, the accounts, the next step.
struct SalvageText {
  let text: String

  init(_ report: SalvageReport, store: FilePath, output: FilePath, writtenTo place: FilePath) {
    let tint: Tint = report.isComplete ? .good : report.recovered > 0 ? .doubtful : .bad
    var lines = tinted(Self.headline(report), tint) + "\n"
    if let words = report.reservationWords { lines += printable(words) + "\n" }
    lines += Self.causes(report, store)
    lines += "\n" + Self.accounts(report) + "\n"
    lines += Self.doubts(report) + Self.lostKeys(report) + Self.otherLosses(report)
    if report.unplacedRows > 0 {
      lines += "  \(counted(report.unplacedRows, "row")) that fit no table: lazaret_lost_and_found\n"
    }
    if report.unplacedEntries > 0 {
      lines +=
        "  \(counted(report.unplacedEntries, "entry", "entries")) of indexes that no root leads to, which are no rows: "
        + "lazaret_lost_and_found\n"
    }
    for remark in report.remarks { lines += "  Note: \(remark)\n" }
    if let kit = report.kit {
      let written = Self.words(writtenSince: kit.isCurrent ? false : kit.writtenSince)
      lines += "  A recovery kit of \(kit.date) was used; \(written)\n"
    }
    // Overflow pages are as sound as the cells they continue.
    var counts = report.pages.counts
    if let overflow = counts.removeValue(forKey: .overflow) { counts[.healthy, default: 0] += overflow }
    let states = PageStates.State.allCases.compactMap { state in
      counts[state].map { "\(grouped($0)) \(state.rawValue)" }
    }
    lines += "  Pages of \(grouped(report.pages.pageSize)) bytes: \(states.joined(separator: ", "))\n"
    if let rebuild = report.rebuild { lines += Self.words(rebuild, of: report) }
    lines += "\n" + Self.next(report, store, output, place)
    text = lines
  }

  private static func words(writtenSince isWritten: Bool?) -> String {
    switch isWritten {
    case false?: "nothing was written to the store since"
    case true?: "the store was written to since"
    case nil: "whether the store was written to since cannot be known"
    }
  }

  /// Recovered and lost records by entity with remarks, for a restore.
  static func account(of report: SalvageReport) -> String {
    var lines = "\n" + tinted(headline(report), report.recovered > 0 ? .doubtful : .bad) + "\n\n"
    lines += accounts(report) + "\n"
    lines += doubts(report) + lostKeys(report) + otherLosses(report)
    for remark in report.remarks { lines += "  Note: \(remark)\n" }
    if let file = report.rebuild?.setAsideFile { lines += "  In \(printable(file.string)): \(setAside(report))\n" }
    return lines
  }

  private static func headline(_ report: SalvageReport) -> String {
    let cut = report.referencesCut
    guard cut > 0 else { return report.count.words }
    return "\(report.count.words) \(counted(cut, "reference")) to lost records \(cut == 1 ? "was" : "were") cut."
  }

  private static func doubts(_ report: SalvageReport) -> String {
    var lines = ""
    for entity in report.records {
      for reason in entity.count.reasonsByCount {
        lines +=
          "  \(printable(entity.name)): \(grouped(entity.doubts[reason] ?? 0)) doubtful because \(reason.words)\n"
      }
    }
    return lines
  }

  /// The known primary keys of lost rows, and the likely ones.
  private static func lostKeys(_ report: SalvageReport) -> String {
    var lines = ""
    for entity in report.entities where !entity.lostKeys.isEmpty || !entity.lostKeysEstimated.isEmpty {
      lines +=
        "  \(printable(entity.name)): \(entity.count.lostNumber) lost"
        + (entity.isLostExact ? "" : " (or deleted since)")
      if entity.areLostKeysComplete {
        lines += ", primary keys \(entity.lostKeys.words())"
      } else if !entity.lostKeys.isEmpty {
        lines += "; the primary keys of \(grouped(entity.lostKeysKnown)) are known: \(entity.lostKeys.words())"
      }
      if !entity.lostKeysEstimated.isEmpty, entity.recovered > 0 {
        lines += "; the others likely had \(entity.lostKeysEstimated.words()), by the highest that was given"
      }
      lines += "\n"
    }
    return lines
  }

  /// Losses in Core Data's own tables, which hold no records.
  private static func otherLosses(_ report: SalvageReport) -> String {
    var lines = ""
    for table in report.ownTables where table.hasLosses {
      let (what, rows) =
        table.isOfPairs ? ("the pairs of a many-to-many relationship", "pair") : ("a table of Core Data's own", "row")
      let isOne = table.lost == 1 && table.isLostExact
      let number = table.lostBasis == .unknown ? "an unknown number of" : table.count.lostNumber
      lines += "  \(printable(table.name)), \(what): \(number) \(isOne ? rows : rows + "s") lost\n"
    }
    return lines
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
    let records = report.records
    let hasBackup = records.contains { $0.fromBackup > 0 }
    let hasDeleted = records.contains { $0.deleted > 0 }
    var header = ["", "recovered", "doubtful", "lost", "set aside"]
    if hasBackup { header.append("from backup") }
    if hasDeleted { header.append("deleted") }
    var table = TextTable(
      header, numericColumns: Set(1..<header.count), tints: TextTable.accountTints,
      leavingOut: "entities without records")
    for entity in records {
      var row = [
        printable(entity.name), grouped(entity.recovered), grouped(entity.doubtful),
        entity.count.lostNumber, grouped(entity.rowsSetAside),
      ]
      if hasBackup { row.append(grouped(entity.fromBackup)) }
      if hasDeleted { row.append(grouped(entity.deleted)) }
      table.append(row)
    }
    return table.text()
  }

  private static func words(_ rebuild: SalvageReport.Rebuild, of report: SalvageReport) -> String {
    var lines = ""
    for (repairs, words) in [
      (rebuild.referencesCut, "references to lost records were cut"),
      (rebuild.referencesLeft, "references lead to no record"),
      (rebuild.setAside.filter { $0.reason != .conflict }, "rows that do not fit were set aside"),
      (rebuild.conflicts, "rows that contradict others were set aside"),
      (rebuild.defaulted, "missing values were set to the model's default"),
      (rebuild.corrected, "numbers were put right"),
    ] {
      for repair in repairs { lines += "  \(place(repair)): \(grouped(repair.count)) \(words)\n" }
    }
    for repair in rebuild.valuesSetAside {
      lines +=
        "  \(place(repair)): \(counted(repair.count, "value")) without a column \(repair.count == 1 ? "was" : "were") set aside\n"
    }
    if let file = rebuild.setAsideFile { lines += "  In \(printable(file.string)): \(setAside(report))\n" }
    let version = rebuild.version.map { printable($0) }
    switch rebuild.basis {
    case .bestFit: lines += "  Nothing tells the version; \(version ?? "the model") fits best\n"
    case .versionHashes, .modelCache, .recoveryKit, .schema, .asFound:
      if let version { lines += "  Version: \(version)\n" }
    }
    if let destination = rebuild.migratedTo {
      lines += "  Migrated to \(printable(destination)): \(printable(rebuild.steps.joined(separator: ", ")))\n"
    }
    for loss in rebuild.migrationLosses {
      lines +=
        "  Lost in the migration: \(printable(loss.text)) (\(lost(loss.count, ofRecords: loss.property == nil)))\n"
    }
    if let failure = rebuild.migrationFailure {
      lines += "  It could not be migrated and is of its own version still: \(printable(failure))\n"
    }
    return lines
  }

  private static func place(_ repair: SalvageReport.Rebuild.Repair) -> String {
    printable([repair.entity, repair.property].compactMap(\.self).joined(separator: "."))
  }

  fileprivate static func lost(_ count: Int64?, ofRecords isOfRecords: Bool) -> String {
    let noun = isOfRecords ? "record" : "value"
    return count.map { counted($0, noun) } ?? "an unknown number of \(noun)s"
  }

  private static func setAside(_ report: SalvageReport) -> String {
    let rows = report.entities.reduce(report.unplacedRows) { $0 + $1.rowsSetAside }
    let kept = report.entities.reduce(0) { $0 + $1.keptParts }
    let deleted = report.entities.reduce(0) { $0 + $1.deleted }
    var parts: [String] = []
    if rows > 0 { parts.append(counted(rows, "row")) }
    if kept > 0 { parts.append("what was found of \(counted(kept, "doubtful row"))") }
    if deleted > 0 { parts.append(counted(deleted, "deleted row")) }
    if report.unplacedEntries > 0 { parts.append(counted(report.unplacedEntries, "entry", "entries") + " of indexes") }
    if report.referencesCut > 0 { parts.append(counted(report.referencesCut, "cut reference")) }
    // The remarks cover values without a column and those converted by SQLite.
    if parts.isEmpty, !report.hasDoubts { parts.append("values as they were found") }
    return (parts + ["notes on where the rows are from"]).joined(separator: ", ")
  }

  private static func next(
    _ report: SalvageReport, _ store: FilePath, _ output: FilePath, _ place: FilePath
  ) -> String {
    var lines = "The \(report.rebuild == nil ? "rows are" : "store is") in \(printable(output.string))\n"
    // Named like a result in the current folder.
    let isHere = place.folder == "." && output.components.count == 1
    lines += "The report is in \(printable(isHere ? place.lastComponent?.string ?? "" : place.string))\n"
    guard !report.isComplete else { return lines }
    lines += "What to do next:\n"
    if report.mayLackTables, report.rebuild?.basis == .asFound, !report.isCoreData, report.kit == nil {
      let salvage = "    lazaret salvage \(shellQuoted(store)) -o \(shellQuoted(output.sibling(suffix: "-2")))"
      lines += "  Salvage it once more with what tells its tables:\n"
      lines += "\(salvage) --schema App.sql     the app's schema, or another store of the app that is sound\n"
      lines += "\(salvage) --with-backup latest  a backup of the store\n"
      lines += "\(salvage) --kit App.kit         a recovery kit of the store\n"
    }
    if report.lacksRecords {
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
    let old = report.showsDamage ? "damaged store as it is" : "store as it was"
    return lines + "  Keep the \(old) until you are sure that nothing is missing.\n"
  }
}

/// The salvage of a quarantined store, as lines under an event or receipt.
struct SalvageAccountText {
  var text = ""

  /// - Parameters:
  ///   - stored: the quarantined store, as a command names it.
  ///   - words: the text above, which is not repeated.
  init(_ salvage: OpeningSalvage, of stored: String, below words: String) {
    if salvage.state == .pending {
      text += "    its records can be salvaged with: lazaret quarantine salvage \(stored)\n"
      return
    }
    if salvage.store != nil, !words.contains(salvage.count.words) { text += "    \(salvage.count.words)\n" }
    if let words = salvage.reservationWords { text += "    \(printable(words))\n" }
    text += Self.table(salvage.entities)
    for loss in salvage.migrationLosses ?? [] {
      let count = SalvageText.lost(loss.count, ofRecords: loss.property == nil)
      text += "    lost in the migration: \(printable(loss.text)) (\(count))\n"
    }
    if let path = salvage.store { text += "    salvaged store: \(printable(path.text))\n" }
    if let path = salvage.setAside { text += "    set aside: \(printable(path.text))\n" }
    if let path = salvage.report { text += "    report: \(printable(path.text))\n" }
  }

  static func table(_ entities: [Receipt.Salvage.Entity], indent: String = "    ") -> String {
    guard !entities.isEmpty else { return "" }
    let hasBackup = entities.contains { $0.fromBackup ?? 0 > 0 }
    let header = ["", "recovered", "doubtful", "lost"] + (hasBackup ? ["from backup"] : [])
    var table = TextTable(
      header, numericColumns: Set(1..<header.count), tints: TextTable.accountTints,
      leavingOut: "entities without records")
    for entity in entities {
      table.append(
        [printable(entity.name), grouped(entity.recovered), grouped(entity.doubtful), RecoveryCount(entity).lostNumber]
          + (hasBackup ? [grouped(entity.fromBackup ?? 0)] : []))
    }
    return table.text(indent: indent)
  }

  static func table(_ comparison: SalvageComparison, indent: String = "    ") -> String {
    guard !comparison.entities.isEmpty else { return "" }
    var table = TextTable(["", "result", "recovered", "doubtful", "lost"], numericColumns: [2, 3, 4])
    for entity in comparison.entities {
      for (word, account) in [("earlier", entity.earlier), ("later", entity.later)] {
        guard let account else { continue }
        table.append(
          printable(entity.name), word, grouped(account.recovered), grouped(account.doubtful),
          RecoveryCount(account).lostNumber)
      }
    }
    return table.text(indent: indent)
  }
}

extension Receipt.Reason {
  var word: String { code == QuarantineCase.requestCode ? "on request" : printable(code) }
}

extension Receipt.Salvage {
  var word: String {
    let isWaiting = state == .salvaged && failure.map { Self.waitingCodes.contains($0.code) } ?? false
    let results = (isWaiting ? ", waits" : "") + (others.map { ", \($0.count + 1) results" } ?? "")
    switch state {
    case .pending: return "pending"
    case .salvaged, .installed:
      return [state.rawValue, result.map { $0.count.share }].compactMap(\.self).joined(separator: " ") + results
    case .failed: return "failed" + results
    }
  }
}
