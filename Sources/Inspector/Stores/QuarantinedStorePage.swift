import HTTPServer
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage

struct QuarantinedStorePage: InspectorPage {
  let store: ListedStore
  let stored: QuarantinedStore
  let summary: StoreSummary
  let look: PagePart<DamageLook>
  let hasPlace: Bool

  /// The history of the store's path, if the receipt names it.
  let history: PagePart<StoreHistory>?

  /// The store now at its original path.
  let successor: ListedStore?

  init(_ store: ListedStore, _ stored: QuarantinedStore, _ parts: InspectorParts, isAsked: Bool = false) {
    self.store = store
    self.stored = stored
    summary = StoreSummary(store, parts)
    look = PagePart { try parts.damage(of: store, isAsked: isAsked) }
    let place = stored.receipt?.originalPath.path
    hasPlace = place != nil
    history = place.map { place in PagePart { try StoreHistory(of: place, parts) } }
    successor = PagePart { try parts.catalogue.live().first { $0.files?.main == place } }.value ?? nil
  }

  var title: String { store.name }
  var mayAge: Bool { true }
  var crumbs: [Crumb] { [.stores] }
  var scripts: [String] { look.value?.isPreparing == true ? ["records.js"] : [] }

  private var receipt: Receipt? { stored.receipt }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": summary, "receipt": receipt,
      "report": store.salvage == nil ? nil : look.map { $0.report.map { SalvageAccount(report: $0, store: store) } },
      "damage": look.map { DamagePayload(look: $0, store: store) }, "comparisons": receipt?.salvage?.comparisons ?? [],
      "timeline": receipt?.history ?? [], "history": history, "successor": successor.map { RequestTarget.store($0.id) },
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    frame.overview(
      of: store, title, "<p>\(summary.tags) <span class=\"soft\">quarantined as</span> <code>\(stored.id)</code></p>",
      actions: actions(frame),
      """
      \(HTML.note(.bad, "<p><strong>Why it is here.</strong> \(summary.why)</p>"))
      \(evidence)\(repairable)\(failure)\(salvagedFiles)
      <div class="columns"><div>\(damage)\(entities)</div>
      <div>\(recovered)\(others(frame))\(timeline(frame))\(facts(frame))</div></div>
      """)
  }

  private func actions(_ frame: PageFrame) -> HTML {
    guard frame.allowsActions else { return .empty }
    let discard = HTML.button("Discard …", .store(store.id, "discard"))
    guard !store.isMissing else { return .actions(discard) }
    let isUsable = receipt?.salvage?.result?.isUsable == true && store.salvage != nil
    // An installed store isn't installed again, since the app has used it.
    let isInstalled = receipt?.salvage?.state == .installed && successor != nil
    let first: HTML =
      if isInstalled, let successor {
        .button("The live store", .store(successor.id), isMain: true)
      } else if isUsable, hasPlace {
        .button("Install …", .store(store.id, "install"), isMain: true)
      } else { .empty }
    let salvage = store.salvage == nil ? "Salvage …" : "Salvage again …"
    return .actions(
      first, .button(salvage, .store(store.id, "salvage"), isMain: first == .empty),
      .button("Export …", .store(store.id, "export")), .button("Release …", .store(store.id, "release")), discard)
  }

  private var hasChanged: Bool { summary.check?.hint(on: stored) != nil }

  private var evidence: HTML {
    if let problem = summary.evidence?.problem { return problem.note }
    guard let check = summary.check, let hint = check.hint(on: stored) else { return .empty }
    let compared: HTML = check.isMissing ? .empty : " Sizes were compared, and no content."
    return .note(
      check.isMissing ? .bad : .warn,
      "<p><strong>\(check.sentence)</strong>\(compared)</p><p class=\"soft\">\(hint)</p>")
  }

  /// The note that the salvage read other contents than quarantined.
  private var salvagedFiles: HTML {
    guard !store.isOnlyReceipt, let words = receipt?.salvage?.result?.evidence?.changeWords else { return .empty }
    return .note(.warn, "<p><strong>What was salvaged.</strong> \(words)</p>")
  }

  /// The actions for a store that only deviated from its model.
  private var repairable: HTML {
    guard receipt?.reason.code == VerdictReason.repairableCode, !hasChanged else { return .empty }
    return .note(
      .plain,
      """
      <p>Every page of it was sound when it was quarantined. Where no other store has its place, it can be released and \
      repaired there, with every record.</p>
      """)
  }

  private var failure: HTML {
    guard let failure = receipt?.salvage?.failure else { return .empty }
    return .note(.warn, "<p><strong>The last salvage.</strong> \(printable(failure.words))</p>")
  }

  private var damage: HTML {
    guard !store.isOnlyReceipt else { return .empty }
    let nothing: HTML =
      store.salvage == nil
      ? .note(
        .plain,
        """
        <p>Nothing was salvaged of it yet. A salvage changes nothing of the store, and makes a clean store of every record that \
        is still there.</p>
        """) : .empty
    return nothing
      + look.html { look in
        if let waiting = look.waiting(.store(store.id)) { return .panel("Pages", waiting) }
        guard let account = look.account(of: store) else { return .empty }
        let causes = HTML.panel("What most likely happened", account.causes)
        return store.isMissing ? causes : account.pages() + causes
      }
  }

  private var entities: HTML {
    if let account = look.value?.account(of: store) { return .panel("Entities", account.entities) }
    guard let entities = receipt?.entities, !entities.isEmpty else { return .empty }
    let rows = entities.map { HTML.row("\(printable($0.name))", .number($0.rows)) }
    return .panel("Entities as it was quarantined", .table("Entities", ["Entity", .number("Records")], rows))
  }

  private var recovered: HTML {
    guard let account = look.value?.account(of: store) else { return .empty }
    return .panel(
      account.isSalvaged ? "Recovered" : "How much is left",
      "\(account.share)<p><a href=\"\(RequestTarget.store(store.id, "losses"))\">What did I lose?</a></p>")
  }

  /// Other salvages, compared with the current one.
  private func others(_ frame: PageFrame) -> HTML {
    guard let salvage = receipt?.salvage, let others = salvage.others, !others.isEmpty else { return .empty }
    let items = zip(others, salvage.comparisons).map { other, comparison -> HTML in
      """
      <li><code>\(printable(other.name.text))</code>, \(Words.time(other.date, now: frame.now)). \
      \(printable(comparison.words))\(differences(comparison))</li>
      """
    }
    return .panel(
      "Other results",
      "<p>The result shown here is the current one, which is installed. These stay beside it.</p><ul>\(items)</ul>")
  }

  private func differences(_ comparison: SalvageComparison) -> HTML {
    let rows = comparison.entities.flatMap { entity in
      [("earlier" as HTML, entity.earlier), ("later", entity.later)].compactMap { word, account -> HTML? in
        guard let account else { return nil }
        let lost: HTML =
          account.lostIsExact ? .number(account.lost) : .cell("\(RecoveryCount(account).lostNumber)", "number")
        return .row(
          "\(printable(entity.name))", .cell(word), .number(account.recovered), .number(account.doubtful), lost)
      }
    }
    guard !rows.isEmpty else { return .empty }
    return .table(
      "Differences", ["Entity", "Result", .number("Recovered"), .number("Doubtful"), .number("Lost")], rows)
  }

  private func facts(_ frame: PageFrame) -> HTML {
    guard let receipt else {
      return .panel("Receipt", "<p>It is missing, or cannot be read. The store itself is not affected.</p>")
    }
    let error = [
      receipt.error.coreData.map { "Core Data \($0)" }, receipt.error.sqlite.map { "SQLite \($0)" },
    ].compactMap(\.self).joined(separator: ", ")
    let rows = receipt.files.map { file -> HTML in
      .row(
        "\(printable(file.name.text))", wraps: true, .size(file.bytes),
        .cell("<code>\(printable(String(file.sha256.prefix(12))))…</code>"))
    }
    let list = HTML.facts([
      ("Quarantined", Words.time(receipt.date, now: frame.now)),
      ("It was at", "<code>\(printable(receipt.originalPath.text))</code>"),
      (store.isMissing ? "Its files were at" : "It is at", "<code>\(printable(stored.files.main.string))</code>"),
      ("Its files now", hasChanged ? nil : summary.check.map { HTML(escaping: $0.sentence) }),
      ("Generation", receipt.lineage.map { "<code>\(printable($0.generation))</code>" }),
      ("Reason", "<code>\(printable(receipt.reason.code))</code>"),
      ("Errors", error.isEmpty ? nil : HTML(escaping: error)), ("Model", summary.model.map { HTML(escaping: $0) }),
      ("App", receipt.versions.app.map { HTML(escaping: printable($0)) }),
      ("Written by", receipt.versions.storeWrittenBySQLite.map { "SQLite \(printable($0))" }),
      ("System", HTML(escaping: printable(receipt.versions.operatingSystem))),
    ])
    let files = HTML.table("Files", ["File", .number("Size"), "SHA-256"], rows)
    return .panel("Receipt", "\(list)<h3>Files</h3>\(files)")
  }

  private func timeline(_ frame: PageFrame) -> HTML {
    if let history, history.value?.events.isEmpty != true { return history.html { $0.html(frame, on: store) } }
    guard let receipt, !receipt.history.isEmpty else { return .empty }
    return .panel("What happened", Timeline(moments: receipt.history).html)
  }
}
