import ArgumentParser
import Lazaret
import Platform
import Salvage
import SystemPackage

struct QuarantineShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows the receipt of a quarantined store.",
    usage: "lazaret quarantine show <id> [--home <dir>] [--all] [<options>]",
    discussion: """
      Reads every file, and compares its SHA-256 with that in the receipt.

      EXAMPLE
        lazaret quarantine show 2026-11-21-10-11-12 --home Stores

      \(ExitStatus.help)
      """)

  @Argument(help: "The name of a quarantined store, or the path of its file.")
  var id: PathArgument

  @OptionGroup var home: HomeOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let home = try home.of(quarantined: id.path)
      let quarantines = Quarantines(home: home.path)
      let store = try home.finding(quarantined: id.path, forBackup: "backup verify ID") {
        try quarantines.store(id.path)
      }
      let check = try quarantines.check(evidenceOf: store, .content)
      try output.print(
        store.payload(in: quarantines, check),
        QuarantinedStoreText(store, check, undo: try quarantines.undo(of: store)).text)
    }
  }
}

struct QuarantinedStoreText {
  let text: String

  init(_ store: QuarantinedStore, _ check: EvidenceCheck?, undo: String?) {
    var lines = "\(store.id)\n  lies in    \(printable(store.files.main.string))\n"
    guard let receipt = store.receipt else {
      text = lines + "  Its receipt is missing or cannot be read; the store itself is not affected.\n"
      return
    }
    lines += "  came from  \(printable(receipt.originalPath.text))\n"
    lines += "  when       \(momentText(receipt.date))\n"
    lines += "  why        \(printable(receipt.reason.words)) [\(printable(receipt.reason.code))]\n"
    if let code = receipt.error.coreData { lines += "  Core Data  error \(code)\n" }
    if let code = receipt.error.sqlite { lines += "  SQLite     error \(code)\n" }
    if let lineage = receipt.lineage {
      lines += "  generation \(printable(lineage.generation))"
      if let parent = lineage.parent { lines += ", after \(printable(parent)) was quarantined" }
      lines += "\n"
    }
    if let model = receipt.model {
      lines += "  model      \(model.words)"
      if let checksum = model.checksum { lines += ", checksum \(printable(checksum))" }
      lines += "\n"
    }
    lines += "\n"
    for file in receipt.files {
      lines += "  \(printable(file.name.text)): \(counted(file.bytes, "byte"))\n    SHA-256 \(printable(file.sha256))\n"
    }
    if let check {
      lines += "  \(check.sentence)\n"
      if let hint = check.hint(on: store) { lines += "  \(hint)\n" }
    }
    if let entities = receipt.entities, !entities.isEmpty {
      var table = TextTable(
        ["entity", "table", "records"], numericColumns: [2], leavingOut: "entities without records")
      for entity in entities {
        table.append([printable(entity.name), printable(entity.table), entity.rows.map { grouped($0) } ?? "–"])
      }
      lines += "\n" + table.text()
    }
    if let salvage = receipt.salvage { lines += Self.text(salvage) }
    if receipt.timeline != nil {
      lines += "\n"
      for moment in receipt.history {
        let words = [moment.words, moment.path?.text].compactMap(\.self).map { printable($0) }
        lines +=
          "  \(momentText(moment.date))  \(([printable(moment.kind.rawValue)] + words).joined(separator: " · "))\n"
      }
    }
    let versions = receipt.versions
    lines += "\n  Lazaret \(printable(versions.library))"
    if let app = versions.app { lines += " · app \(printable(app))" }
    if let sqlite = versions.sqlite { lines += " · SQLite \(printable(sqlite))" }
    if let writer = versions.storeWrittenBySQLite { lines += " · store written by SQLite \(printable(writer))" }
    lines += " · \(printable(versions.operatingSystem))\n"
    if let undo { lines += "\n  undo it with: \(undo)\n" }
    text = lines
  }

  /// The evidence of a result; empty for the quarantined store alone.
  private static func evidenceText(_ evidence: Receipt.Salvage.Evidence) -> String {
    var lines = ""
    if let kit = evidence.kit { lines += "  kit        \(printable(kit))\n" }
    if let backup = evidence.backup { lines += "  backup     \(printable(backup))\n" }
    if let words = evidence.changeWords { lines += "  \(words)\n" }
    return lines
  }

  private static func text(_ salvage: Receipt.Salvage) -> String {
    var lines = "\n  salvage    \(salvage.word), \(momentText(salvage.date))\n"
    if let failure = salvage.failure { lines += "  why        \(printable(failure.words))\n" }
    if let result = salvage.result {
      lines += "  result     \(printable(result.name.text))\n  \(result.words)\n"
      if let words = result.reservationWords { lines += "  \(printable(words))\n" }
      lines += "\n"
      lines += SalvageAccountText.table(result.entities, indent: "  ")
      if let evidence = result.evidence { lines += evidenceText(evidence) }
    }
    for (other, comparison) in zip(salvage.others ?? [], salvage.comparisons) {
      lines += "\n  another    \(printable(other.name.text)): \(other.words)\n"
      lines += "             \(printable(comparison.words))\n"
      lines += SalvageAccountText.table(comparison, indent: "  ")
    }
    return lines
  }
}
