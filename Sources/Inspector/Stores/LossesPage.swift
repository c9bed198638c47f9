import Backup
import HTTPServer
import Lazaret
import Platform
import Salvage
import SystemPackage

/// A store's losses in the owner's words.
struct LossesPage: InspectorPage {
  let store: ListedStore
  let look: PagePart<DamageLook>
  let spreads: PagePart<[LossSpread]>
  let backups: PagePart<[ListedStore]>

  init(_ store: ListedStore, _ parts: InspectorParts, isAsked: Bool = false) {
    self.store = store
    let look = PagePart { try parts.damage(of: store, isAsked: isAsked) }
    self.look = look
    spreads = PagePart { try look.value.map { try parts.losses(of: store, $0) } ?? [] }
    let path = store.quarantined?.receipt?.originalPath.path ?? store.files?.main
    let scope = store.quarantined?.evidence
    backups = PagePart {
      try parts.catalogue.backups().filter { backup in
        guard let stem = path?.stem, let (kept, place) = backup.backup else { return false }
        return place.path.lastComponent?.string == stem && kept.isWhole && !kept.isApart
          && scope.map { kept.exclusion(from: $0) == nil } ?? true
      }
    }
  }

  var title: String { "What did I lose?" }
  var mayAge: Bool { true }
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }
  var scripts: [String] { look.value?.isPreparing == true ? ["records.js"] : [] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "complete": look.value?.report?.isComplete, "salvaged": look.value?.isSalvaged,
      "sentences": look.map { look in
        look.report.map { report in
          Self.sentences(report) + Self.doubts(report, isSalvaged: look.isSalvaged)
            + (report.reservationWords.map { [printable($0)] } ?? [])
        }
      },
      "spreads": spreads,
      "backups": backups.map { backups in backups.map(\.id.text) },
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let words = look.html { look in
      if let waiting = look.waiting(.store(store.id, "losses")) { return .panel("Pages", waiting) }
      guard let report = look.report else { return .empty }
      return """
        \(look.isSalvaged ? verdict(report) : outlook(report))
        \(list("What is missing", Self.sentences(report), nothing: report.isComplete ? "Nothing that was in it is missing." : "No single record is known to be missing."))
        \(spread)\
        \(list("What you should look at", Self.doubts(report, isSalvaged: look.isSalvaged), nothing: ""))
        \(ways(report, look.isSalvaged))
        """
    }
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">About <strong>\(store.name)</strong>, in plain words.</p></div></div>
      \(StoreTab.bar(store, .losses, isDamaged: true))
      \(words)
      """
  }

  private func verdict(_ report: SalvageReport) -> HTML {
    let count = report.count
    if report.isComplete {
      return .note(.good, "<p><strong>You lost nothing.</strong> \(count.words)</p>")
    }
    if count.lost == 0, count.setAside == 0, count.pairs.isWhole, !count.hasUnknown, report.unplacedRows == 0 {
      let doubt: HTML = report.reservationWords.map { words -> HTML in "<p>\(printable(words))</p>" } ?? .empty
      return .note(
        .good,
        "<p><strong>As far as can be told, no record is lost.</strong> \(count.words) Some details are told below.</p>\(doubt)"
      )
    }
    let words = count.lost > 0 ? "Some records are lost." : "Something may be lost."
    return .note(.warn, "<p><strong>\(words)</strong> \(count.words)</p>")
  }

  private var spread: HTML {
    spreads.html { spreads in
      guard !spreads.isEmpty else { return .empty }
      return """
        <h2>Where it was lost</h2><p class="soft">The records of an entity from the lowest key to the highest; keys grow with time. \
        <span class="swatch part-good" aria-hidden="true"></span> there <span class="swatch part-bad" aria-hidden="true"></span> lost, \
        as far as it is known by its key, or likely by the highest key that was given.</p><ul class="sparks">\(spreads.map(\.html))</ul>
        """
    }
  }

  /// The expected result of a salvage.
  private func outlook(_ report: SalvageReport) -> HTML {
    let account = SalvageAccount(report: report, store: store, isSalvaged: false)
    let words: HTML = "<p><strong>It was not salvaged yet.</strong> \(account.words)</p>"
    return .note(report.isComplete ? .good : .warn, words)
  }

  private func list(_ heading: String, _ sentences: [String], nothing: String) -> HTML {
    guard !sentences.isEmpty else { return nothing.isEmpty ? .empty : "<h2>\(heading)</h2><p>\(nothing)</p>" }
    return "<h2>\(heading)</h2><ul class=\"plain-words\">\(sentences.map { words -> HTML in "<li>\(words)</li>" })</ul>"
  }

  /// The losses: a sentence per entity, then links and files.
  static func sentences(_ report: SalvageReport) -> [String] {
    var sentences = report.records.filter(\.hasLosses).map { entity -> String in
      let count = entity.count
      guard entity.lost > 0 else {
        return "\(printable(entity.name)): nothing tells how many it held, or how many of them are missing."
      }
      var words = "\(printable(entity.name)): \(count.lostNumber) of \(count.roughly)\(grouped(count.total))"
      words += entity.lost == 1 ? " is lost" : " are lost"
      if entity.areLostKeysComplete, !entity.lostKeys.isEmpty {
        words += "; in the store they had the numbers \(entity.lostKeys.words())"
      } else if !entity.lostKeys.isEmpty {
        words += "; the numbers that \(grouped(entity.lostKeysKnown)) of them had are known: \(entity.lostKeys.words())"
      }
      if !entity.lostKeysEstimated.isEmpty {
        words += "; the others likely had \(entity.lostKeysEstimated.words()), by the highest number that was given"
      }
      return words + "."
    }
    if let words = report.count.pairs.words { sentences.append(words) }
    for repair in report.rebuild?.referencesCut ?? [] where repair.reason != .halfPair {
      let place = printable(repair.entity) + (repair.property.map { " (\(printable($0)))" } ?? "")
      sentences.append(
        "\(place): \(Words.counted(repair.count, "link")) to lost records \(repair.count == 1 ? "was" : "were") removed."
      )
    }
    return sentences
  }

  static func doubts(_ report: SalvageReport, isSalvaged: Bool = true) -> [String] {
    var sentences: [String] = []
    for entity in report.records {
      for reason in entity.count.reasonsByCount {
        let number = "\(grouped(entity.doubts[reason] ?? 0)) of \(grouped(entity.recovered))"
        sentences.append("\(printable(entity.name)): \(number) may have a wrong value, because \(reason.words).")
      }
    }
    for repair in report.rebuild?.defaulted ?? [] {
      sentences.append(
        "\(printable(repair.entity)): \(Words.counted(repair.count, "value")) that could not be read got the usual value instead."
      )
    }
    let apart = report.records.reduce(report.unplacedRows) { $0 + $1.rowsSetAside }
    if apart > 0 {
      sentences.append(
        isSalvaged
          ? "\(counted(apart, "row")) \(apart == 1 ? "was" : "were") set aside, in a file beside the salvaged store: rows that do not fit into it, other versions of records, and parts of records."
          : "\(counted(apart, "row")) \(apart == 1 ? "is" : "are") no live record of a table: an older version, or of a table that is not known."
      )
    }
    return sentences
  }

  private func ways(_ report: SalvageReport, _ isSalvaged: Bool) -> HTML {
    guard !report.isComplete else { return .empty }
    let first: HTML =
      isSalvaged
      ? .empty
      : """
      <li><a href="\(RequestTarget.store(store.id, "salvage"))">Salvage it</a>: what can be read is then in a clean store, and \
      the damaged one stays as it is, in quarantine.</li>
      """
    let found: HTML = backups.html { backups in
      guard report.lacksRecords else { return .empty }
      // That backup's records are in the salvaged store.
      guard let newest = backups.first(where: { !isUsed($0, report) }) else {
        guard backups.isEmpty else {
          return
            "<li>The backup that is here was used. Another device, or a copy somewhere else, may have more.</li>"
        }
        return
          "<li>There is no backup of this store here. Another device, or a copy somewhere else, may have what is missing.</li>"
      }
      let day = newest.date.map(Words.date) ?? "an earlier time"
      let backup: HTML = "<a href=\"\(RequestTarget.store(newest.id))\">backup of \(day)</a>"
      guard !store.isMissing else { return "<li>There is a \(backup), which may have what is missing.</li>" }
      return """
        <li>There is a \(backup). What is missing can be taken from it \
        when you <a href="\(RequestTarget.store(store.id, "salvage"))">salvage\(isSalvaged ? " again" : " it")</a>.</li>
        """
    }
    let kept: HTML =
      store.isMissing
      ? .empty
      : """
      <li>Keep the \(report.showsDamage ? "damaged store" : "store as it was") until you are sure that nothing is missing.</li>
      """
    guard found != .empty || kept != .empty || first != .empty else { return .empty }
    return "<h2>What you can do</h2><ul class=\"plain-words\">\(first)\(found)\(kept)</ul>"
  }

  /// Whether the salvage took lost records from this backup.
  private func isUsed(_ backup: ListedStore, _ report: SalvageReport) -> Bool {
    guard let used = report.backup?.id, let id = backup.backup?.0.id else { return false }
    return id.description == used
  }
}
