import HTTPServer
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage

struct LiveStorePage: InspectorPage {
  let store: ListedStore
  let files: StoreFileSet
  let examination: PagePart<Examination>

  let damage: PagePart<DamageLook>?

  let history: PagePart<StoreHistory>

  /// The findings in records; nil if outdated.
  private let check: PagePart<DataCheck?>

  /// The pages named by health notes that have bytes.
  private let readable: Set<UInt32>

  private let repair: RepairNotes.Done?

  init(_ store: ListedStore, _ files: StoreFileSet, _ parts: InspectorParts, isAsked: Bool = false) {
    self.store = store
    self.files = files
    let check = PagePart { try parts.repairs.check(of: files, in: parts.surroundings.fileSystem) }
    let found = check.value.flatMap(\.self)
    let examination = parts.examined(files, countsRecords: true).examination.map { examination -> Examination in
      var examination = examination
      if found?.lacksFiles == true { examination.tellMissingFiles() }
      if found?.hasContradictions == true { examination.tellContradictions() }
      if found?.isClean == true { examination.tellCleanRecords() }
      return examination
    }
    self.check = check
    self.examination = examination
    damage = examination.value?.verdict == .damaged ? PagePart { try parts.damage(of: store, isAsked: isAsked) } : nil
    history = PagePart { try StoreHistory(of: files.main, parts) }
    repair = parts.repairs.done[store.id]
    let noted = Set(examination.value?.health.notes.flatMap(\.pages) ?? [])
    readable = Self.readable(noted, files, parts.surroundings.fileSystem)
  }

  /// Filters the pages with bytes.
  private static func readable(_ pages: Set<UInt32>, _ files: StoreFileSet, _ fileSystem: FileSystem) -> Set<UInt32> {
    guard !pages.isEmpty, let all = try? EvidencePages(files.main, in: fileSystem) else { return [] }
    return pages.filter { number in (try? all.page(number)) != nil }
  }

  var title: String { store.name }
  var mayAge: Bool { true }
  var crumbs: [Crumb] { [.stores] }
  var scripts: [String] { damage?.value?.isPreparing == true ? ["records.js"] : [] }

  func encode(to encoder: any Encoder) throws {
    let examination = examination.map { found -> JSON.Object in
      [
        "verdict": found.verdict, "code": found.reason.code, "words": found.reason.words, "hint": found.reason.hint,
        "kind": found.kind, "modelVersion": found.modelVersion, "entities": found.entities, "drift": found.drift,
        "notes": found.health.notes,
      ]
    }
    try encoder.encode([
      "store": ["id": store.id.text, "kind": "live", "name": store.name], "path": printable(files.main.string),
      "bytes": store.bytes, "examination": examination, "data": check,
      "history": history, "damage": damage.map { $0.map { DamagePayload(look: $0, store: store) } },
      "repaired": repair.map { _ in RequestTarget.store(store.id, "repaired") },
    ])
  }

  private func isComparable(_ examination: Examination) -> Bool {
    examination.drift != nil && examination.verdict != .damaged && examination.verdict != .unavailable
  }

  func content(_ frame: PageFrame) -> HTML {
    frame.overview(
      of: store, title, "<p class=\"soft\"><code>\(printable(files.main.string))</code></p>", actions: actions(frame),
      isDamaged: damage != nil, "\(lastRepair(frame))\(examination.html { shown($0, frame) })")
  }

  /// Whether records contradict the model or refer to missing files.
  private var hasFindings: Bool { check.value.flatMap(\.self)?.isClean == false }

  /// Whether records contradict the model, which a repair fixes.
  private var hasContradictions: Bool { check.value.flatMap(\.self)?.hasContradictions == true }

  /// The actions, most helpful first.
  private func actions(_ frame: PageFrame) -> HTML {
    guard frame.allowsActions else { return .empty }
    let usual = (hasContradictions ? ["repair"] : []) + ["backup", "export", "quarantine"]
    // No action helps a missing or unavailable store.
    let (names, helps): ([String], Bool) =
      switch examination.value?.verdict {
      case .damaged: (["salvage", "quarantine", "export", "backup"], true)
      case .repairable: (["repair", "backup", "export", "quarantine"], true)
      case .incompatible: (["salvage", "backup", "export", "quarantine"], true)
      case .compatible, .outdated: (usual, true)
      case .unavailable, .missing, nil: (usual, false)
      }
    let links = names.enumerated().map { place, name -> HTML in
      let words = name == "backup" ? "Back up" : name.capitalizedFirst
      return .button("\(words) …", .store(store.id, name), isMain: place == 0 && helps)
    }
    return .actions("\(links)")
  }

  /// The readable share, the map, and damage by page.
  private func found(_ look: DamageLook, _ frame: PageFrame) -> HTML {
    if let waiting = look.waiting(.store(store.id)) { return .panel("Pages", waiting) }
    guard let account = look.account(of: store) else { return .empty }
    return account.pages(look.asOf(frame.now)) + .panel("What most likely happened", account.causes)
      + .panel("Entities", account.entities)
  }

  private func lastRepair(_ frame: PageFrame) -> HTML {
    guard let repair else { return .empty }
    return .note(
      .good,
      """
      <p>It was repaired \(Words.time(repair.date, now: frame.now)). \
      <a href="\(RequestTarget.store(store.id, "repaired"))">What was done, and how it is undone</a></p>
      """)
  }

  private func repairs(_ examination: Examination, _ frame: PageFrame) -> HTML {
    guard let drift = examination.drift else { return .empty }
    let list = DriftList(drift: drift).html
    guard isComparable(examination) else {
      return list == .empty ? .empty : .panel("What it lacks of its own model", list)
    }
    let would: HTML =
      drift.isEmpty && !hasContradictions
      ? .empty
      : """
      <p><a href="\(RequestTarget.store(store.id, "repair"))">What a repair would do, and what it would not</a></p>
      """
    let lacks: HTML = list == .empty ? .empty : .panel("What it lacks of its own model", list + would)
    let findings = check.html { DataFindings(store: store, check: $0).html(offersCheck: frame.allowsActions) }
    return lacks + .panel("Records and references", findings + (list == .empty ? would : .empty))
  }

  private func shown(_ examination: Examination, _ frame: PageFrame) -> HTML {
    let tone: HTML.Tone =
      switch examination.verdict {
      case .compatible: hasFindings ? .warn : .good
      case .damaged: .bad
      case .repairable, .outdated, .incompatible, .unavailable, .missing: .warn
      }
    let health = examination.health
    let facts = HTML.facts(facts(examination, frame))
    let notes = health.notes.map(note)
    let nothing: HTML =
      examination.verdict == .damaged
      ? "<p>Nothing besides what is said above.</p>"
      : health.isRead ? "<p>Nothing out of the ordinary.</p>" : "<p>No page of it could be looked at.</p>"
    let list: HTML = notes.isEmpty ? nothing : "<ul class=\"plain-words\">\(notes)</ul>"
    let look = damage.map { part in part.html { found($0, frame) } }
    let share = damage?.value?.account(of: store)?.share
    return """
      \(HTML.note(tone, "<p><strong>\(examination.reason.words)</strong></p><p>\(hint(examination))</p>"))
      <div class="columns"><div>\(repairs(examination, frame))\(look ?? entities(examination))</div>
      <div>\(share.map { HTML.panel("How much is left", $0) } ?? .empty)\(HTML.panel("Health", list))\
      \(history.html { $0.html(frame, on: store) })\(HTML.panel("Facts", facts))</div></div>
      """
  }

  /// The possible actions; for damaged stores the examination's hint is about the app.
  private func hint(_ examination: Examination) -> HTML {
    guard examination.verdict == .damaged else { return HTML(escaping: examination.reason.hint) }
    return """
      A salvage moves the store into quarantine, whole, makes a clean store of every record that is left, and installs \
      it at the app's path if you want.
      """
  }

  private func note(_ note: HealthNote) -> HTML {
    let tone: HTML.Tone = note.severity == .damage ? .bad : note.severity == .warning ? .warn : .plain
    let pages = note.pages.map { page -> HTML in
      // A truncated file lacks pages that trees refer to.
      readable.contains(page)
        ? " <a href=\"\(RequestTarget.store(store.id, "pages", String(page)))\">\(grouped(page))</a>"
        : " \(grouped(page))"
    }
    let more: HTML = note.count > note.pages.count && !pages.isEmpty ? " …" : .empty
    let places: HTML =
      pages.isEmpty ? .empty : " <span class=\"soft\">Page\(note.pages.count == 1 ? "" : "s")</span>\(pages)\(more)"
    return "<li>\(HTML.tag("\(note.severity)", tone)) \(sentence(note.words))\(places)</li>"
  }

  private func entities(_ examination: Examination) -> HTML {
    let hasTables = examination.kind != .coreData
    let rows = examination.entities.map { entity -> HTML in
      let target = StoreLinks.records(store, entity: entity.name)
      let name: HTML =
        target.map { "<a href=\"\($0)\">\(printable(entity.name))</a>" } ?? HTML(escaping: printable(entity.name))
      return .row(name, .number(entity.rows))
    }
    let title = hasTables ? "Tables" : "Entities"
    guard !rows.isEmpty else { return .panel(title, "<p>None can be told.</p>") }
    return .panel(title, .table(title, [hasTables ? "Table" : "Entity", .number("Records")], rows))
  }

  private func facts(_ examination: Examination, _ frame: PageFrame) -> [(String, HTML?)] {
    let health = examination.health
    return [
      ("Kind", "\(Self.words(examination.kind))"),
      ("Model version", examination.modelVersion.map { "\(printable($0))" }), ("Size", "\(readableSize(store.bytes))"),
      ("Changed", store.date.map { Words.time($0, now: frame.now) }),
      ("Pages", health.pageCount.map { "\(grouped($0)) of \(grouped(health.pageSize ?? 0)) bytes" }),
      ("Encoding", health.encoding.map { "\(Self.words($0))" }),
      ("Written by", health.writtenBySQLite.map { "SQLite \($0)" }),
      ("Log", health.log.map { "\(counted($0.committedFrames, "committed frame")) of \(grouped($0.frames))" }),
      ("Store UUID", examination.metadata.map { "<code>\(printable($0.uuid))</code>" }),
    ]
  }

  private static func words(_ encoding: TextEncoding) -> String {
    switch "\(encoding)" {
    case "utf8": "UTF-8"
    case "utf16LittleEndian": "UTF-16, little-endian"
    case "utf16BigEndian": "UTF-16, big-endian"
    default: "\(encoding)"
    }
  }

  private static func words(_ kind: ExaminedKind) -> String {
    switch kind {
    case .coreData: "Core Data store"
    case .sqlite: "SQLite database"
    case .unknown: "could not be told"
    }
  }
}
