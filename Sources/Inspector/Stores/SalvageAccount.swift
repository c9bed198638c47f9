import HTTPServer
import ManagedObjectModel
import Platform
import Salvage

/// A salvage report for pages.
struct SalvageAccount: Sendable, Encodable {
  let report: SalvageReport
  let store: ListedStore

  /// Whether a salvage was made, rather than an examination.
  var isSalvaged = true

  /// The rows set aside, including those fitting no table.
  private var setAside: Int64 { report.records.reduce(report.unplacedRows) { $0 + $1.rowsSetAside } }

  var share: HTML {
    let (count, aside) = (report.count, isSalvaged ? setAside : 0)
    let word = isSalvaged ? "recovered" : "can be read"
    // The total of rows fitting no table is unknown.
    guard count.total > 0, report.isComplete || report.unplacedRows == 0 else { return "<p>\(words)</p>" }
    return """
      <p class="share-number"><b>\(count.share)</b><span class="soft">\(word)</span></p>\
      \(HTML.bar(count, setAside: aside))\(HTML.barKey(count, recovered: word, setAside: aside))<p>\(words)</p>\(doubt)
      """
  }

  /// The reason for incompleteness, without a record count.
  private var doubt: HTML {
    report.reservationWords.map { words -> HTML in "<p>\(printable(words))</p>" } ?? .empty
  }

  var words: String {
    let count = report.count
    guard !isSalvaged else { return count.words }
    guard count.total > 0 else {
      return [
        report.isComplete ? "It holds no records." : "No record can be read in tables of its own.", count.unplacedWords,
      ].compactMap(\.self).joined(
        separator: " ")
    }
    let line =
      "\(grouped(count.recovered)) of \(count.roughly)\(counted(count.total, "record")) can be read (\(count.share))"
    let first = [line, count.doubtWords].compactMap(\.self).joined(separator: ", ") + "."
    return ([first] + count.detailWords).joined(separator: " ")
  }

  private func records(_ entity: String) -> RequestTarget? {
    guard let target = StoreLinks.records(store, entity: entity) else { return nil }
    guard !isSalvaged, target.segments.count > 2 else { return target }
    var found = target
    found.segments[2] = SideName.original.description
    return found
  }

  /// Encodes the report without its maps, which the JSON of the map page has.
  func encode(to encoder: any Encoder) throws {
    let count = report.count
    try encoder.encode([
      "complete": report.isComplete,
      "incompleteBecause": report.isComplete ? nil : report.reservations.map(printable), "score": report.score,
      "recovered": count.recovered, "doubtful": count.doubtful,
      "doubtfulReasons": DoubtReason.codes(count.doubtReasons), "lost": count.lost, "lostIsExact": !count.isEstimate,
      "total": count.total,
      "percent": report.isComplete || report.unplacedRows == 0 ? count.percent : nil, "words": words,
      "recordsSetAside": count.setAside, "pairs": count.pairs.known,
      "referencesCut": report.referencesCut,
      "unplacedRows": report.unplacedRows, "unplacedEntries": report.unplacedEntries, "entities": report.entities,
      "causes": report.causes, "remarks": report.remarks.map(printable), "rebuild": report.rebuild, "kit": report.kit,
      "map": store.isMissing ? nil : RequestTarget.store(store.id, "map").twin,
    ])
  }

  /// The causes, surest first.
  var causes: HTML {
    guard !report.causes.isEmpty else {
      return report.isComplete
        ? "<p>Nothing is wrong with its pages.</p>" : "<p>The bytes do not tell what happened.</p>"
    }
    let items = report.causes.map { cause -> HTML in
      let sure: HTML =
        switch cause.confidence {
        case .certain: .tag("certain", .bad)
        case .likely: .tag("likely", .warn)
        case .possible: .tag("possible")
        }
      let first: HTML =
        cause.pages.first.map { run in
          // Pages beyond a truncated file's end have no page here.
          guard store.files != nil, Int(run.first) <= report.pages.total else { return " page \(run.first)" }
          return " <a href=\"\(RequestTarget.store(store.id, "pages", String(run.first)))\">page \(run.first)</a>"
        } ?? .empty
      return "<li>\(sure) \(printable(cause.words))\(first)</li>"
    }
    let remarks = report.remarks.map { remark -> HTML in "<li class=\"soft\">\(printable(remark))</li>" }
    return "<ul class=\"plain-words\">\(items)\(remarks)</ul>"
  }

  /// The entities with recovered, doubtful and lost records.
  var entities: HTML {
    let records = report.records
    let pairTables = Set(report.pairs.map(\.table))
    let others = report.ownTables.filter { !pairTables.contains($0.table) }
    let pairs: HTML =
      pairTables.isEmpty
      ? .empty : "<h3>Pairs of many-to-many relationships</h3>\(table(report.pairs, isLinked: false, arePairs: true))"
    let rest: HTML =
      others.isEmpty
      ? .empty
      : "<details><summary>\(Words.counted(others.count, "table")) that Core Data needs for itself</summary>\(table(others, isLinked: false))</details>"
    return table(records, isLinked: true) + pairs + rest
  }

  private func table(_ accounts: [SalvageReport.Entity], isLinked: Bool, arePairs: Bool = false) -> HTML {
    let names = TableNames(report)
    let hasBackup = accounts.contains { $0.fromBackup > 0 }
    let hasDeleted = accounts.contains { $0.deleted > 0 }
    let hasApart = accounts.contains { $0.rowsSetAside > 0 }
    let rows = accounts.map { entity -> HTML in
      let target = isLinked ? records(entity.name) : nil
      let own = printable(arePairs ? names.table(entity.name) : entity.name)
      let name: HTML = target.map { "<a href=\"\($0)\">\(own)</a>" } ?? HTML(escaping: own)
      let lost: HTML =
        entity.isLostExact
        ? HTML.number(entity.lost, tone: .bad) : "<td class=\"number bad\">\(entity.count.lostNumber)</td>"
      return """
        <tr><th scope="row">\(name)</th><td class="only-wide">\(HTML.bar(entity.count, setAside: isSalvaged ? entity.rowsSetAside : 0))</td>\
        \(HTML.number(entity.recovered))\(HTML.number(entity.doubtful, tone: .warn))\(lost)\
        \(hasApart ? HTML.number(entity.rowsSetAside) : .empty)\(hasBackup ? HTML.number(entity.fromBackup) : .empty)\
        \(hasDeleted ? HTML.number(entity.deleted) : .empty)</tr>
        """
    }
    let columns: [TableColumn?] = [
      arePairs ? "Relationship" : "Entity",
      TableColumn(head: "<th scope=\"col\" class=\"only-wide\"><span class=\"visually-hidden\">Share</span></th>"),
      .number(isSalvaged ? "Recovered" : "Can be read"), .number("Doubtful"), .number("Lost"),
      hasApart ? .number("Set aside") : nil, hasBackup ? .number("From backup") : nil,
      hasDeleted ? .number("Deleted") : nil,
    ]
    return .table(
      arePairs ? "Pairs of many-to-many relationships" : "Entities", columns.compactMap(\.self), rows)
  }
}
