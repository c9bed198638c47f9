import HTTPServer
import RecoveryKit
import StoreCoordination

/// What of a store is lost, in the words of its owner.
struct LossesPage: InspectorPage {
  let store: ListedStore
  let report: PagePart<SalvageReport>
  let backups: PagePart<[ListedStore]>

  init(_ store: ListedStore, _ parts: InspectorParts) {
    self.store = store
    report = PagePart { try store.report(parts.surroundings.fileSystem) }
    let stem = store.quarantined?.receipt?.originalPath.path?.stem
    let scope = store.quarantined?.evidence
    backups = PagePart {
      try parts.catalogue.backups().filter { backup in
        guard let scope, stem != nil, let (kept, place) = backup.backup else { return false }
        return place.path.lastComponent?.string == stem && kept.isWhole && !kept.isApart
          && kept.exclusion(from: scope) == nil
      }
    }
  }

  var title: String { "What did I lose?" }
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "complete": report.value?.isComplete,
      "sentences": report.map { Self.sentences($0) + Self.doubts($0) },
      "backups": backups.map { backups in backups.map(\.id.text) },
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let words = report.html { report in
      """
      \(verdict(report))
      \(list("What is missing", Self.sentences(report), nothing: "Nothing that was in it is missing."))
      \(list("What you should look at", Self.doubts(report), nothing: ""))
      \(ways(report))
      """
    }
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">About <strong>\(store.name)</strong>, in plain words.</p></div></div>
      \(StoreTab.bar(store, .losses))
      \(words)
      """
  }

  private func verdict(_ report: SalvageReport) -> HTML {
    let count = report.count
    if report.isComplete {
      return .note(.good, "<p><strong>You lost nothing.</strong> \(count.words)</p>")
    }
    if count.lost == 0, !count.hasUnknown {
      return .note(
        .good,
        "<p><strong>As far as can be told, no record is lost.</strong> \(count.words) Some details are told below.</p>")
    }
    return .note(.warn, "<p><strong>Some records are lost.</strong> \(count.words)</p>")
  }

  private func list(_ heading: String, _ sentences: [String], nothing: String) -> HTML {
    guard !sentences.isEmpty else { return nothing.isEmpty ? .empty : "<h2>\(heading)</h2><p>\(nothing)</p>" }
    return "<h2>\(heading)</h2><ul class=\"plain-words\">\(sentences.map { words -> HTML in "<li>\(words)</li>" })</ul>"
  }

  /// What is missing, a sentence for each entity, then for links and files.
  static func sentences(_ report: SalvageReport) -> [String] {
    var sentences = report.records.filter(\.hasLosses).map { entity -> String in
      let count = entity.count
      guard entity.lost > 0 else {
        return "\(printable(entity.name)): nothing is left that tells how many it held, or whether it held any."
      }
      var words = "\(printable(entity.name)): \(count.lostNumber) of \(count.roughly)\(grouped(count.total))"
      words += entity.lost == 1 ? " is lost" : " are lost"
      if !entity.lostKeys.isEmpty { words += "; in the store they had the numbers \(entity.lostKeys.words())" }
      return words + "."
    }
    for repair in report.rebuild?.referencesCut ?? [] {
      let place = printable(repair.entity) + (repair.property.map { " (\(printable($0)))" } ?? "")
      sentences.append(
        "\(place): \(Words.counted(repair.count, "link")) to records that are gone \(repair.count == 1 ? "was" : "were") removed."
      )
    }
    return sentences
  }

  /// What was recovered and may not be as it was.
  static func doubts(_ report: SalvageReport) -> [String] {
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
    let apart = report.records.reduce(report.unplacedRows) { $0 + $1.keptApart }
    if apart > 0 {
      sentences.append(
        "\(counted(apart, "row")) did not fit anywhere. They were set aside in a file of their own, for someone who knows the data."
      )
    }
    return sentences
  }

  private func ways(_ report: SalvageReport) -> HTML {
    guard !report.isComplete else { return .empty }
    let found: HTML = backups.html { backups in
      guard let newest = backups.first else {
        return
          "<li>There is no backup of this store here. Another device, or a copy somewhere else, may have what is missing.</li>"
      }
      let day = newest.date.map(Words.date) ?? "an earlier time"
      return """
        <li>There is a <a href="\(RequestTarget.store(newest.id))">backup of \(day)</a>. What is missing can be taken from it \
        when you <a href="\(RequestTarget.store(store.id, "salvage"))">salvage again</a>.</li>
        """
    }
    return """
      <h2>What you can do</h2><ul class="plain-words">\(found)\
      <li>Keep the damaged store until you are sure that nothing is missing; it is whole and unchanged.</li></ul>
      """
  }
}
