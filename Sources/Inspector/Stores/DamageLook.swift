import HTTPServer
import Lazaret
import ManagedObjectModel
import Platform
import Salvage

/// A store's damage, from its salvage or from an examination of every page.
enum DamageLook: Sendable {
  case salvaged(SalvageReport)

  /// The report of an examination, with its time if the store may change.
  case looked(OpenedSide, SalvageReport)

  case preparing(SideProgress)

  /// The store is too large to examine without request.
  case notLooked

  var report: SalvageReport? {
    switch self {
    case .salvaged(let report), .looked(_, let report): report
    case .preparing, .notLooked: nil
    }
  }

  var isSalvaged: Bool { if case .salvaged = self { true } else { false } }

  var isPreparing: Bool { if case .preparing = self { true } else { false } }

  func account(of store: ListedStore) -> SalvageAccount? {
    report.map { SalvageAccount(report: $0, store: store, isSalvaged: isSalvaged) }
  }
}

extension InspectorParts {
  /// The largest store in bytes examined without request.
  private static let largestLook: Int64 = 1 << 30

  /// Returns a store's damage.
  ///
  /// An unsalvaged store is examined in the background, read-only.
  ///
  /// - Parameter isAsked: whether to examine a store of any size.
  /// - Throws: ``Refusal`` 404 for a backup, `evidence-missing`, ``SalvageError``, `FileError`.
  func damage(of store: ListedStore, isAsked: Bool = false) throws -> DamageLook {
    if let salvage = store.salvage {
      return .salvaged(try SalvageReport.read(salvage.report, in: surroundings.fileSystem))
    }
    let files = try store.files(orRefuse: Refusal(.notFound, "a backup is packed, and has no pages of its own"))
    guard isAsked || store.bytes <= Self.largestLook else { return .notLooked }
    // The store may have changed since the last copy.
    switch try sides.open(.evidence(files, sha256: store.sums), patience: 1_000, isFresh: true) {
    case .preparing(let progress): return .preparing(progress)
    case .ready(let side):
      guard let report = side.report else { throw Refusal(.notFound, "nothing is known of the pages of this store") }
      return .looked(side, report)
    }
  }
}

extension DamageLook {
  /// The placeholder for a missing report.
  ///
  /// - Parameter target: the page that starts the examination.
  func waiting(_ target: RequestTarget) -> HTML? {
    switch self {
    case .salvaged, .looked: return nil
    case .preparing(let progress):
      return """
        <div data-reload="1000"><p role="status">Now \(progress.words). Nothing of the store changes.</p>\
        \(progress.bar)<noscript><p><a href="\(target)">See whether it is done</a></p></noscript></div>
        """
    case .notLooked:
      let asked = target.appending(query: [.init("look", "yes")])
      return """
        <p>The store is large, and looking at every page of it takes a while. Nothing of it changes.</p>\
        <p><a class="button" href="\(asked)" rel="nofollow">Look at every page</a></p>
        """
    }
  }

  /// The examination's time, if the store may have changed since.
  func asOf(_ now: Timestamp) -> HTML {
    guard case .looked(let side, _) = self, let time = side.takenAt else { return .empty }
    return "<p class=\"soft\">As of \(Words.time(time, now: now)).</p>"
  }
}

struct DamagePayload: Sendable, Encodable {
  let look: DamageLook
  let store: ListedStore

  /// Encodes the report plus `salvaged`, or `preparing` with the phase.
  func encode(to encoder: any Encoder) throws {
    switch look {
    case .salvaged(let report), .looked(_, let report):
      try encoder.encode(["salvaged": look.isSalvaged])
      try SalvageAccount(report: report, store: store, isSalvaged: look.isSalvaged).encode(to: encoder)
    case .preparing(let progress): try progress.encode(to: encoder)
    case .notLooked: try encoder.encode(["preparing": false])
    }
  }
}

struct DamageByPage: Sendable {
  let report: SalvageReport
  let store: ListedStore

  /// The most rows shown; the map has all.
  private static let maximumRows = 20

  /// The damaged, unreadable or orphan pages.
  private var runs: [PageStates.Run] {
    report.pages.runs.filter { run in
      switch run.state {
      case .damaged, .unreadable, .unplaced: true
      case .healthy, .orphan, .free, .overflow, .special: false
      }
    }
  }

  var html: HTML {
    let runs = runs
    let orphans = report.pages.counts[.orphan] ?? 0
    guard !runs.isEmpty || orphans > 0 else { return .empty }
    let names = TableNames(report)
    var rows = runs.prefix(Self.maximumRows).map { run -> HTML in
      let owner = run.owner.flatMap { report.pages.owners.indices.contains($0) ? report.pages.owners[$0] : nil }
      return row(pages(run.pages), run.state, owner.map { printable(names.words($0)) } ?? "–")
    }
    if orphans > 0 {
      let first = report.pages.runs.first { $0.state == .orphan }?.pages.lowerBound
      let from: HTML = first.map { " from \(link($0)) on" } ?? .empty
      rows.append(row("\(counted(orphans, "page"))\(from)", .orphan, "various"))
    }
    let rest = HTML.when(
      runs.count > Self.maximumRows,
      "<p class=\"soft\">And \(counted(runs.count - Self.maximumRows, "more place")); the map shows all.</p>")
    return .panel(
      "Damage by page", .table("Damage by page", ["Pages", "State", "Belongs to", "What that means"], rows) + rest)
  }

  private func row(_ pages: HTML, _ state: PageStates.State, _ owner: String) -> HTML {
    let swatch: HTML = "<span class=\"swatch \(state.rawValue)\" aria-hidden=\"true\"></span> \(state.rawValue)"
    return .row(pages, .cell(swatch), .cell("\(owner)"), .cell("\(state.meaning)", "wrap"))
  }

  private func pages(_ pages: ClosedRange<UInt32>) -> HTML {
    pages.count == 1 ? link(pages.lowerBound) : "\(link(pages.lowerBound)) – \(link(pages.upperBound))"
  }

  private func link(_ page: UInt32) -> HTML {
    "<a href=\"\(RequestTarget.store(store.id, "pages", String(page)))\">\(grouped(page))</a>"
  }
}

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
  private var doubt: HTML { report.reservationWords.map { words -> HTML in "<p>\(printable(words))</p>" } ?? .empty }

  var words: String {
    let count = report.count
    guard !isSalvaged else { return count.words }
    guard count.total > 0 else {
      let nothing = report.isComplete ? "It holds no records." : "No record can be read in tables of its own."
      return [nothing, count.unplacedWords].compactMap(\.self).joined(separator: " ")
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
      "complete": report.isComplete, "incompleteBecause": report.isComplete ? nil : report.reservations.map(printable),
      "score": report.score, "recovered": count.recovered, "doubtful": count.doubtful,
      "doubtfulReasons": DoubtReason.codes(count.doubtReasons), "lost": count.lost, "lostIsExact": !count.isEstimate,
      "total": count.total, "percent": report.isComplete || report.unplacedRows == 0 ? count.percent : nil,
      "words": words, "recordsSetAside": count.setAside, "pairs": count.pairs.known,
      "referencesCut": report.referencesCut, "unplacedRows": report.unplacedRows,
      "unplacedEntries": report.unplacedEntries, "entities": report.entities, "causes": report.causes,
      "remarks": report.remarks.map(printable), "rebuild": report.rebuild, "kit": report.kit,
      "map": store.isMissing ? nil : RequestTarget.store(store.id, "map").twin,
    ])
  }

  /// The page map, and the damage by page.
  func pages(_ time: HTML = .empty) -> HTML {
    let link: HTML = "<p><a href=\"\(RequestTarget.store(store.id, "map"))\">The map with its tables</a></p>"
    return .panel("Page map", PageMapDrawing(report: report, store: store.id).html + link + time)
      + DamageByPage(report: report, store: store).html
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
    let rest = HTML.when(
      !others.isEmpty,
      "<details><summary>\(counted(others.count, "table")) that Core Data needs for itself</summary>\(table(others, isLinked: false))</details>"
    )
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
        entity.isLostExact ? .number(entity.lost, tone: .bad) : .cell("\(entity.count.lostNumber)", "number bad")
      return .row(
        name, .cell(.bar(entity.count, setAside: isSalvaged ? entity.rowsSetAside : 0), "only-wide"),
        .number(entity.recovered), .number(entity.doubtful, tone: .warn), lost,
        .when(hasApart, .number(entity.rowsSetAside)), .when(hasBackup, .number(entity.fromBackup)),
        .when(hasDeleted, .number(entity.deleted)))
    }
    let columns: [TableColumn?] = [
      arePairs ? "Relationship" : "Entity",
      TableColumn(head: "<th scope=\"col\" class=\"only-wide\"><span class=\"visually-hidden\">Share</span></th>"),
      .number(isSalvaged ? "Recovered" : "Can be read"), .number("Doubtful"), .number("Lost"),
      hasApart ? .number("Set aside") : nil, hasBackup ? .number("From backup") : nil,
      hasDeleted ? .number("Deleted") : nil,
    ]
    return .table(arePairs ? "Pairs of many-to-many relationships" : "Entities", columns.compactMap(\.self), rows)
  }
}
