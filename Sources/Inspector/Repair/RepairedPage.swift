import Backup
import HTTPServer
import Lazaret
import Migration
import Platform
import SystemPackage

/// The last repair and how to undo it.
struct RepairedPage: InspectorPage {
  let store: ListedStore
  let done: RepairNotes.Done

  /// The kept original, unless removed.
  let original: StoreID?
  private let home: FilePath

  /// - Throws: ``Refusal`` 404 without a repair since startup.
  init(_ store: ListedStore, _ parts: InspectorParts) throws {
    guard let done = parts.repairs.done(for: store.id) else {
      throw Refusal(.notFound, "no repair of this store was carried out since the inspector began")
    }
    self.store = store
    self.done = done
    home = parts.home
    let backup = done.outcome.backup?.path
    let found = PagePart {
      try parts.catalogue.backups().first { listed in
        guard let backup, let (known, place) = listed.backup, known.id.description == backup.stem else { return false }
        return try parts.surroundings.fileSystem.realPath(place.path) == backup.folder
      }
    }
    original = found.value??.id
  }

  private var outcome: RepairOutcome { done.outcome }

  var title: String { "Repair of \(store.name)" }
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "date": done.date, "scope": done.scope, "repair": outcome, "original": original?.text,
      "undo": undo,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let state: HTML =
      outcome.leavesSomething ? .tag("repaired, but for what is below", .warn) : .tag("repaired", .good)
    return """
      <h1>\(title)</h1><p>\(state) <span class="soft">\(Words.time(done.date, now: frame.now))</span></p>\
      \(StoreTab.bar(store, nil))\
      <div class="columns"><div>\(HTML.panel("What was done", RepairLists(outcome: outcome).html))</div>\
      <div>\(facts)\(undoing(frame))</div></div>
      """
  }

  private var facts: HTML {
    let version = outcome.version.map { HTML(escaping: printable($0)) } ?? "one that only the store carries"
    return .panel(
      "Facts",
      .facts([
        ("Model version", version),
        ("Records", HTML(escaping: Words.number(outcome.rows))),
        ("Data too", done.scope == .data ? "yes" : "no"),
        ("The original", outcome.backup.map { "<code>\(printable($0.text))</code>" }),
        ("What was taken out", outcome.setAside.map { "<code>\(printable($0.text))</code>" }),
      ]))
  }

  private var undo: String? {
    guard let backup = outcome.backup?.path, let name = backup.stem, let path = outcome.store?.path else { return nil }
    return "lazaret backup restore \(name) --of \(shellQuoted(path)) --home \(shellQuoted(home))"
  }

  private func undoing(_ frame: PageFrame) -> HTML {
    guard let undo else { return .empty }
    let aside: HTML =
      outcome.setAside == nil
      ? .empty
      : """
      <p>What was taken out of the records lies beside the original, in a database: the rows of a table <code>T</code> in \
      <code>lazaret_set_aside_T</code>, values that changed in <code>lazaret_values_changed</code>.</p>
      """
    let link: HTML =
      original.map { original in
        let action: HTML =
          frame.allowsActions
          ? " <a class=\"button\" href=\"\(RequestTarget.store(original, "restore"))\">Restore it …</a>" : .empty
        let page: HTML = "<a class=\"button\" href=\"\(RequestTarget.store(original))\">The original</a>"
        return "<p class=\"row\">\(page)\(action)</p>"
      } ?? "<p>The original is not among the backups of this home any more.</p>"
    return .panel(
      "How to undo it",
      """
      <p>The store as it was before is kept, whole. Restoring it puts it back; the repaired store is quarantined then.</p>\
      \(link)<pre tabindex="0" class="text">\(printable(undo))</pre>\(aside)
      """)
  }
}
