import Lazaret
import ManagedObjectModel
import Platform
import Salvage

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
      let noun = loss.property == nil ? "record" : "value"
      let count = loss.count.map { counted($0, noun) } ?? "an unknown number of \(noun)s"
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
        table.append([
          printable(entity.name), word, grouped(account.recovered), grouped(account.doubtful),
          RecoveryCount(account).lostNumber,
        ])
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
