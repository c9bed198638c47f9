import Backup
import Lazaret
import Platform
import SystemPackage

extension RestoreReport {
  func payload(
    quarantined: QuarantinedStore?, before: StoredBackup?, _ choice: BackupChoice, in home: ChosenHome
  ) -> JSON.Object {
    JSON.Object(
      self,
      [
        "quarantined": quarantined.map { $0.payload(undo: $0.undo(home: home.pathBesidesStore, replacing: true)) },
        "backupBefore": before?.id, "passedOver": choice.passedOver,
        "damage": damage(choice.backup).map {
          ["code": $0.code, "words": $0.words, "hint": "Salvage it with: \(salvageCommand)"] as JSON.Object
        },
      ])
  }

  private var salvageCommand: String { "lazaret salvage \(shellQuoted(path)) -o OUT" }

  func text(quarantined: QuarantinedStore?, before: StoredBackup?, _ backup: StoredBackup) -> String {
    var lines = "Backup \(id) is restored at \(printable(path.string)): \(readableSize(bytes))"
    lines += values > 0 ? ", \(counted(Int64(values), "large value"))\n" : "\n"
    if let damage = damage(backup) {
      lines +=
        "  It is as it was when it was backed up, not sound: \(printable(damage.words)) [\(printable(damage.code))]\n"
      lines += "  Salvage it with: \(salvageCommand)\n"
    }
    if let quarantined { lines += "  What was there is in quarantine as \(quarantined.id).\n" }
    if let before { lines += "  It was backed up before as \(before.id).\n" }
    lines += lostText(blocks: lostBlocks, isSalvaged: !isContentRight, values: lostValues)
    if let salvage { lines += SalvageText.account(of: salvage) }
    if lacksMetadata {
      lines += "  It has no metadata, and the backup's manifest does not say what they were. "
      lines += "Give the app's model with --model\n"
    }
    return lines
  }
}

private func lostText(blocks: [RestoreReport.LostBlock], isSalvaged: Bool, values: [String]) -> String {
  var lines = ""
  if !blocks.isEmpty { lines += "  \(counted(Int64(blocks.count), "block")) of the backup lost\n" }
  if isSalvaged { lines += "  What is left was salvaged; look at it with: lazaret inspect\n" }
  for name in values.prefix(shownValues) { lines += "  The large value \(printable(name)) is lost\n" }
  let rest = values.count - shownValues
  if rest > 0 { lines += "  \(counted(Int64(rest), "more large value")) \(rest == 1 ? "is" : "are") lost\n" }
  return lines
}

/// The most external data shown; JSON lists all.
private let shownValues = 20

extension BackupChoice {
  var text: String { passedOver.map { "  Passed over \($0.id): it \(printable($0.words)).\n" }.joined() }
}

extension RestorePreview {
  func text(_ id: BackupIdentifier, _ path: FilePath) -> String {
    var lines = "Restoring \(id) over \(printable(path.string)) would change:\n"
    switch present {
    case .sound: break
    case .damaged: lines += "  The store is damaged; compared is what could be salvaged of it\n"
    case .missing: lines += "  There is no store now\n"
    }
    var table = TextTable(
      ["", "added", "changed", "lost", "unchanged"], numericColumns: [1, 2, 3, 4], tints: [2: .doubtful, 3: .bad],
      leavingOut: "entities without records")
    for entity in entities {
      table.append([
        printable(entity.name), grouped(entity.added), grouped(entity.changed), grouped(entity.lost),
        grouped(entity.unchanged),
      ])
    }
    for pairs in pairs {
      table.append([
        "pairs of \(pairs.words)", grouped(pairs.added), grouped(pairs.changed), grouped(pairs.lost), "",
      ])
    }
    lines += table.text()
    for words in schemaWords + valueWords + remarks { lines += "  \(words)\n" }
    return lines
  }
}

extension ExtractionReport {
  var text: String {
    var lines = "Records of backup \(id) are in \(printable(path.string)):\n"
    for entity in entities { lines += "  \(printable(entity.name)): \(counted(entity.records, "record"))\n" }
    for cut in cut {
      lines += "  \(printable(cut.entity)).\(printable(cut.relationship)): "
      lines += "\(counted(cut.count, "reference")) to records that were left out cut\n"
    }
    if !missing.isEmpty { lines += "  Not there: \(missing.map(String.init).joined(separator: ", "))\n" }
    return lines + lostText(blocks: lostBlocks, isSalvaged: !isContentRight, values: lostValues)
  }
}
