import HTTPServer
import Lazaret
import ManagedObjectModel
import Platform
import Salvage

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
      let spread = try store.spread(
        of: collection, covering: all, parts: Self.count)
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
      <p class="soft spark-ends"><span>key \(Words.number(parts.first?.keys.lowerBound ?? 0))</span>\
      <span>\(Words.number(parts.last?.keys.upperBound ?? 0))</span></p><p>\(words)</p></li>
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
