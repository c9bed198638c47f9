import HTTPServer
import Lazaret
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
    let files = try store.files(
      orRefuse: Refusal(.notFound, "a backup is packed, and has no pages of its own"))
    guard isAsked || store.bytes <= Self.largestLook else { return .notLooked }
    let sums = store.quarantined?.receipt?.files.map(\.sha256) ?? []
    // The store may have changed since the last copy.
    switch try sides.open(.evidence(files, sha256: sums), patience: 1_000, isFresh: true) {
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
    case .preparing(let progress):
      try progress.encode(to: encoder)
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
      return """
        <tr><th scope="row">\(pages(run.pages))</th><td><span class="swatch \(run.state.rawValue)" aria-hidden="true"></span> \
        \(run.state.rawValue)</td><td>\(owner.map { printable(names.words($0)) } ?? "–")</td><td class="wrap">\(run.state.meaning)</td></tr>
        """
    }
    if orphans > 0 {
      let first = report.pages.runs.first { $0.state == .orphan }?.pages.lowerBound
      rows.append(
        """
        <tr><th scope="row">\(Words.counted(orphans, "page"))\(first.map { " from \(link($0)) on" } ?? HTML.empty)</th>\
        <td><span class="swatch orphan" aria-hidden="true"></span> orphan</td><td>various</td>\
        <td class="wrap">\(PageStates.State.orphan.meaning)</td></tr>
        """)
    }
    let rest: HTML =
      runs.count > Self.maximumRows
      ? "<p class=\"soft\">And \(Words.counted(runs.count - Self.maximumRows, "more place")); the map shows all.</p>"
      : .empty
    return .panel(
      "Damage by page",
      .table("Damage by page", ["Pages", "State", "Belongs to", "What that means"], rows) + rest)
  }

  private func pages(_ pages: ClosedRange<UInt32>) -> HTML {
    pages.count == 1 ? link(pages.lowerBound) : "\(link(pages.lowerBound)) – \(link(pages.upperBound))"
  }

  private func link(_ page: UInt32) -> HTML {
    "<a href=\"\(RequestTarget.store(store.id, "pages", String(page)))\">\(Words.number(page))</a>"
  }
}
