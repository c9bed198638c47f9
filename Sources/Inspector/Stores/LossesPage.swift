import Backup
import HTTPServer
import Lazaret
import ManagedObjectModel
import Platform
import Salvage
import SystemPackage

/// A store's losses in the owner's words.
struct LossesPage: StoreSubpage {
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
    backups = PagePart { try parts.catalogue.backups(named: path?.stem, sayingSomethingOf: scope) }
  }

  var title: String { "What did I lose?" }
  var mayAge: Bool { true }
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
    if report.isComplete { return .note(.good, "<p><strong>You lost nothing.</strong> \(count.words)</p>") }
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
    return "<h2>\(heading)</h2>\(HTML.sentences(sentences))"
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
        "\(place): \(counted(repair.count, "link")) to lost records \(repair.count == 1 ? "was" : "were") removed.")
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
        "\(printable(repair.entity)): \(counted(repair.count, "value")) that could not be read got the usual value instead."
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
    let first = HTML.when(
      !isSalvaged,
      """
      <li><a href="\(RequestTarget.store(store.id, "salvage"))">Salvage it</a>: what can be read is then in a clean store, and \
      the damaged one stays as it is, in quarantine.</li>
      """)
    let found: HTML = backups.html { backups in
      guard report.lacksRecords else { return .empty }
      // That backup's records are in the salvaged store.
      guard let newest = backups.first(where: { !isUsed($0, report) }) else {
        guard backups.isEmpty else {
          return "<li>The backup that is here was used. Another device, or a copy somewhere else, may have more.</li>"
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
    let kept = HTML.when(
      !store.isMissing,
      """
      <li>Keep the \(report.showsDamage ? "damaged store" : "store as it was") until you are sure that nothing is missing.</li>
      """)
    guard found != .empty || kept != .empty || first != .empty else { return .empty }
    return "<h2>What you can do</h2><ul class=\"plain-words\">\(first)\(found)\(kept)</ul>"
  }

  /// Whether the salvage took lost records from this backup.
  private func isUsed(_ backup: ListedStore, _ report: SalvageReport) -> Bool {
    guard let used = report.backup?.id, let id = backup.backup?.0.id else { return false }
    return id.description == used
  }
}

/// A drawing of where among an entity's keys, and when, records were lost.
struct LossSpread: Sendable, Encodable {
  let name: String

  /// The present, lost (known by key) and likely lost records by key range.
  let parts: [(keys: ClosedRange<Int64>, records: Int64, lost: Int64, likely: Int64)]

  /// The range of the lost keys that are known.
  let keys: ClosedRange<Int64>?

  /// The range of the keys that other lost records likely had.
  let likelyKeys: ClosedRange<Int64>?

  /// The lost records, with or without known keys.
  private let allLost: String

  /// The date of the records before the lost ones, if any.
  let from: Timestamp?

  /// The date of the records after the lost ones, if any.
  let to: Timestamp?

  let dateProperty: String?

  private static let count = 60

  static let maximumEntities = 30

  /// The time for drawing the entities of one page.
  static let patience = Duration.seconds(2)

  /// Returns nil without known lost keys, or on timeout.
  init?(_ entity: SalvageReport.Entity, in store: BrowsedStore) throws {
    guard entity.lost > 0, let all = Self.ends(of: entity.lostKeys.union(entity.lostKeysEstimated)),
      let collection = store.collections.first(where: { $0.name == entity.name }),
      let spread = try store.spread(of: collection, covering: all, parts: Self.count)
    else { return nil }
    name = entity.name
    keys = Self.ends(of: entity.lostKeys)
    likelyKeys = Self.ends(of: entity.lostKeysEstimated)
    allLost = entity.count.lostNumber
    dateProperty = spread.dateProperty
    let candidates = entity.lostKeysEstimated.count
    let others = min(candidates, max(0, entity.lost - entity.lostKeysKnown))
    parts = spread.parts.map { part in
      let range = KeyRanges(ranges: [part.keys])
      let share = Double(entity.lostKeysEstimated.intersection(range).count) / Double(max(1, candidates))
      return (
        keys: part.keys, records: part.records, lost: entity.lostKeys.intersection(range).count,
        likely: Int64((share * Double(others)).rounded())
      )
    }
    (from, to) = Self.span(spread, parts.map { $0.lost + $0.likely }, all)
  }

  private static func ends(of keys: KeyRanges) -> ClosedRange<Int64>? {
    guard let first = keys.ranges.first, let last = keys.ranges.last else { return nil }
    return first.lowerBound...last.upperBound
  }

  /// The dates of ranges with losses, and of neighbours of empty ones.
  ///
  /// An end without neighbouring records is unknown.
  private static func span(
    _ spread: KeySpread, _ lost: [Int64], _ keys: ClosedRange<Int64>
  ) -> (from: Timestamp?, to: Timestamp?) {
    guard let first = lost.firstIndex(where: { $0 > 0 }), let last = lost.lastIndex(where: { $0 > 0 }),
      let records = spread.keys
    else { return (nil, nil) }
    let dated: [(place: Int, dates: ClosedRange<Double>)] = spread.parts.enumerated().compactMap { place, part in
      part.dates.map { (place, $0) }
    }
    var (from, to): (Timestamp?, Timestamp?) = (nil, nil)
    if records.lowerBound < keys.lowerBound, let before = dated.last(where: { $0.place <= first })?.dates {
      from = timestamp(records.upperBound < keys.lowerBound ? before.upperBound : before.lowerBound)
    }
    if records.upperBound > keys.upperBound, let behind = dated.first(where: { $0.place >= last })?.dates {
      to = timestamp(records.lowerBound > keys.upperBound ? behind.lowerBound : behind.upperBound)
    }
    if let start = from, let end = to, start > end { return (nil, nil) }
    return (from, to)
  }

  /// Converts Core Data's seconds since 2001; nil outside the calendar.
  private static func timestamp(_ seconds: Double) -> Timestamp? {
    guard seconds.isFinite, abs(seconds) < 1e10 else { return nil }
    return Timestamp(secondsSince1970: Int64(seconds) + 978_307_200)
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "entity": printable(name), "dateProperty": dateProperty.map(printable), "from": from, "to": to,
      "parts": parts.map { part -> JSON.Object in
        [
          "firstKey": part.keys.lowerBound, "lastKey": part.keys.upperBound, "records": part.records, "lost": part.lost,
          "lostEstimated": part.likely,
        ]
      },
    ])
  }

  var html: HTML {
    let highest = max(1, parts.map { $0.records + $0.lost + $0.likely }.max() ?? 1)
    var shapes = HTML.empty
    for (place, part) in parts.enumerated() {
      let there = height(part.records, highest)
      let gone = height(part.lost + part.likely, highest)
      if there > 0 {
        shapes += "<rect class=\"good\" x=\"\(place * 10)\" y=\"\(60 - there)\" width=\"9\" height=\"\(there)\"/>"
      }
      if gone > 0 {
        shapes += "<rect class=\"bad\" x=\"\(place * 10)\" y=\"\(60 - there - gone)\" width=\"9\" height=\"\(gone)\"/>"
      }
    }
    return """
      <li><h3>\(printable(name))</h3><svg class="spark" viewBox="0 0 \(parts.count * 10) 60" preserveAspectRatio="none" role="img" \
      aria-label="\(words)">\(shapes)</svg>\
      <p class="soft spark-ends"><span>key \(grouped(parts.first?.keys.lowerBound ?? 0))</span>\
      <span>\(grouped(parts.last?.keys.upperBound ?? 0))</span></p><p>\(words)</p></li>
      """
  }

  private func height(_ count: Int64, _ highest: Int64) -> Int {
    count <= 0 ? 0 : max(3, Int(Double(count) / Double(highest) * 58))
  }

  private var words: String {
    let known = parts.reduce(Int64(0)) { $0 + $1.lost }
    var sentences: [String] = []
    if let keys {
      sentences.append(
        "the keys of \(grouped(known)) are known, from \(grouped(keys.lowerBound)) to \(grouped(keys.upperBound))")
    }
    if let likelyKeys {
      sentences.append(
        "the others likely had keys from \(grouped(likelyKeys.lowerBound)) to \(grouped(likelyKeys.upperBound))")
    }
    var text = "Lost: \(allLost); \(sentences.joined(separator: "; "))"
    if let dateProperty { text += span(printable(dateProperty)) }
    return text + "."
  }

  /// The time span, by a property of neighbouring records.
  private func span(_ property: String) -> String {
    switch (from, to) {
    case (let from?, let to?):
      "; the records beside them have dates (\(property)) from \(Words.date(from)) to \(Words.date(to))"
    case (let from?, nil):
      "; after \(Words.date(from)), by the dates (\(property)) of the records before them; until when is not known"
    case (nil, let to?):
      "; before \(Words.date(to)), by the dates (\(property)) of the records behind them; since when is not known"
    case (nil, nil): ""
    }
  }
}

extension InspectorParts {
  /// Returns losses by entity; empty if the remaining records aren't ready.
  func losses(of store: ListedStore, _ look: DamageLook) throws -> [LossSpread] {
    let records: BrowsedStore
    let report: SalvageReport
    switch look {
    case .looked(let side, let account): (records, report) = (side.store, account)
    case .salvaged(let account):
      guard let salvage = store.salvage, case .ready(let side) = try sides.open(.file(salvage.store), patience: 1_000)
      else { return [] }
      (records, report) = (side.store, account)
    case .preparing, .notLooked: return []
    }
    let end = ContinuousClock.now + LossSpread.patience
    return try report.records.filter { $0.lost > 0 }.prefix(LossSpread.maximumEntities).compactMap {
      // Words above cover entities that time out.
      .now < end ? try LossSpread($0, in: records) : nil
    }
  }
}
