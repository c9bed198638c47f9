import HTTPServer
import Lazaret

/// The report of a salvage as pages show it.
struct SalvageAccount: Sendable {
  let report: SalvageReport
  let store: ListedStore

  /// The account for programs, without the maps, which are the twin of the map's page.
  var json: JSONText {
    .members(
      ("complete", .boolean(report.isComplete)), ("score", .integer(Int64(report.score))),
      ("recovered", .integer(report.recovered)), ("doubtful", .integer(report.doubtful)),
      ("lost", .integer(report.lost)), ("lostIsExact", .boolean(report.isLostExact)),
      ("referencesCut", .integer(report.referencesCut)), ("unplacedRows", .integer(report.unplacedRows)),
      ("entities", .array(report.entities.map { JSONText(encoding: $0) })),
      ("causes", .array(report.causes.map { JSONText(encoding: $0) })),
      ("remarks", .array(report.remarks.map { .string(printable($0)) })),
      ("rebuild", report.rebuild.map { JSONText(encoding: $0) }), ("kit", report.kit.map { JSONText(encoding: $0) }),
      ("map", .string(RequestTarget.store(store.id, "map").twin.path)))
  }

  /// The causes, the surest first.
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
          " <a href=\"\(RequestTarget.store(store.id, "pages", String(run.first)))\">page \(run.first)</a>"
        } ?? .empty
      return "<li>\(sure) \(printable(cause.words))\(first)</li>"
    }
    let remarks = report.remarks.map { remark -> HTML in "<li class=\"soft\">\(printable(remark))</li>" }
    return "<ul class=\"plain-words\">\(items)\(remarks)</ul>"
  }

  /// The entities with what was recovered, is doubtful, and was lost.
  var entities: HTML {
    let records = report.records
    let others = report.entities.filter { !records.contains($0) }
    let rest: HTML =
      others.isEmpty
      ? .empty
      : "<details><summary>\(Words.counted(others.count, "table")) that Core Data needs for itself</summary>\(table(others, isLinked: false))</details>"
    return table(records, isLinked: true) + rest
  }

  private func table(_ accounts: [SalvageReport.Entity], isLinked: Bool) -> HTML {
    let hasBackup = report.entities.contains { $0.fromBackup > 0 }
    let hasDeleted = report.entities.contains { $0.deleted > 0 }
    let hasApart = report.entities.contains { $0.keptApart > 0 }
    let rows = accounts.map { entity -> HTML in
      let target = isLinked ? StoreLinks.records(store, entity: entity.name) : nil
      let name: HTML =
        target.map { "<a href=\"\($0)\">\(printable(entity.name))</a>" } ?? HTML(escaping: printable(entity.name))
      let lost: HTML =
        entity.lost == 0 || entity.isLostExact
        ? HTML.number(entity.lost, tone: .bad) : "<td class=\"number bad\">about \(Words.number(entity.lost))</td>"
      return """
        <tr><th scope="row">\(name)</th><td>\(HTML.bar(recovered: entity.recovered, doubtful: entity.doubtful, lost: entity.lost))</td>\
        \(HTML.number(entity.recovered))\(HTML.number(entity.doubtful, tone: .warn))\(lost)\
        \(hasApart ? HTML.number(entity.keptApart) : .empty)\(hasBackup ? HTML.number(entity.fromBackup) : .empty)\
        \(hasDeleted ? HTML.number(entity.deleted) : .empty)</tr>
        """
    }
    func head(_ name: String) -> HTML { "<th scope=\"col\" class=\"number\">\(name)</th>" }
    return .table(
      "Entities",
      head: """
        <th scope="col">Entity</th><th scope="col"><span class="visually-hidden">Share</span></th>\(head("Recovered"))\
        \(head("Doubtful"))\(head("Lost"))\(hasApart ? head("Kept apart") : .empty)\(hasBackup ? head("From backup") : .empty)\
        \(hasDeleted ? head("Deleted") : .empty)
        """, rows)
  }
}

extension SalvageReport {
  /// The accounts of what holds records of the app's, and not what Core Data itself needs: its lists, pairs, and history.
  var records: [Entity] {
    guard isCoreData else { return entities }
    return entities.filter { entity in
      let name = entity.table.uppercased()
      let isOwn = name.hasPrefix("Z_") || ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains(name)
      return entity.name != entity.table || !isOwn
    }
  }

  /// Records recovered, doubtful and lost, in all; pairs and bookkeeping are no records.
  var recordCounts: (recovered: Int64, doubtful: Int64, lost: Int64) {
    records.reduce(into: (0, 0, 0)) { sum, entity in
      sum.0 += entity.recovered
      sum.1 += entity.doubtful
      sum.2 += entity.lost
    }
  }
}
