import HTTPServer
import StoreCoordination

/// A store in its place: what it is, how it is, and how much is in it.
struct LiveStorePage: InspectorPage {
  let store: ListedStore
  let files: StoreFileSet
  let examination: PagePart<Examination>

  /// What was found in the records; nil where they were not checked since the store changed last.
  private let check: PagePart<DataCheck?>

  /// The last repair of it that was carried out here; nil for none.
  private let repair: RepairNotes.Done?

  init(_ store: ListedStore, _ files: StoreFileSet, _ parts: InspectorParts) {
    self.store = store
    self.files = files
    examination = parts.examined(files, countsRecords: true).examination
    check = PagePart { try parts.repairs.check(of: files, in: parts.surroundings.fileSystem) }
    repair = parts.repairs.done(for: store.id)
  }

  var title: String { store.name }
  var crumbs: [Crumb] { [.stores] }

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
      "repaired": repair.map { _ in RequestTarget.store(store.id, "repaired") },
    ])
  }

  /// Whether it can be told what it lacks of its own model, and what its records contradict of it.
  private func isComparable(_ examination: Examination) -> Bool {
    examination.drift != nil && examination.verdict != .damaged && examination.verdict != .unavailable
  }

  func content(_ frame: PageFrame) -> HTML {
    let job = frame.running.first { $0.store == store.id }
    let events: HTML = job?.isRunning == true ? " data-events=\"\(frame.events)\"" : ""
    let isRepairable = examination.value?.verdict == .repairable
    let repair: HTML =
      isRepairable
      ? "<a class=\"button main\" href=\"\(RequestTarget.store(store.id, "repair"))\">Repair …</a>" : .empty
    let actions: HTML =
      frame.allowsActions
      ? """
      <nav class="row no-print" aria-label="Actions">\(repair)\
      <a class="button\(isRepairable ? "" : " main")" href="\(RequestTarget.store(store.id, "backup"))">Back up …</a>\
      <a class="button" href="\(RequestTarget.store(store.id, "export"))">Export …</a>\
      <a class="button" href="\(RequestTarget.store(store.id, "quarantine"))">Quarantine …</a></nav>
      """ : .empty
    return """
      <div\(events)>
      <div class="head"><div><h1>\(title)</h1><p class="soft"><code>\(printable(files.main.string))</code></p></div>\(actions)</div>
      \(StoreTab.bar(store, .overview))
      \(job?.html(frame, isLinked: false) ?? .empty)
      \(lastRepair(frame))\(examination.html { shown($0, frame) })
      </div>
      """
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

  /// What it lacks of its own model, and what its records contradict of it.
  private func repairs(_ examination: Examination, _ frame: PageFrame) -> HTML {
    guard let drift = examination.drift else { return .empty }
    let list = DriftList(drift: drift).html
    guard isComparable(examination) else {
      return list == .empty ? .empty : .panel("What it lacks of its own model", list)
    }
    let hasFindings = check.value??.isClean == false
    let would: HTML =
      drift.isEmpty && !hasFindings
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
      case .compatible: .good
      case .damaged: .bad
      case .repairable, .outdated, .incompatible, .unavailable, .missing: .warn
      }
    let health = examination.health
    let facts = HTML.facts(facts(examination, frame))
    let notes = health.notes.map { note -> HTML in
      let tone: HTML.Tone = note.severity == .damage ? .bad : note.severity == .warning ? .warn : .plain
      return "<li>\(HTML.tag("\(note.severity)", tone)) \(sentence(note.words))</li>"
    }
    let rows = examination.entities.map { entity -> HTML in
      let target = StoreLinks.records(store, entity: entity.name)
      let name: HTML =
        target.map { "<a href=\"\($0)\">\(printable(entity.name))</a>" } ?? HTML(escaping: printable(entity.name))
      return "<tr><th scope=\"row\">\(name)</th><td>\(printable(entity.table))</td>\(HTML.number(entity.rows))</tr>"
    }
    let list: HTML =
      notes.isEmpty ? "<p>Nothing out of the ordinary.</p>" : "<ul class=\"plain-words\">\(notes)</ul>"
    return """
      \(HTML.note(tone, "<p><strong>\(examination.reason.words)</strong></p><p>\(examination.reason.hint)</p>"))
      <div class="columns"><div>\(repairs(examination, frame))\(HTML.panel("Entities", .table("Entities", head: "<th scope=\"col\">Entity</th><th scope=\"col\">Table</th><th scope=\"col\" class=\"number\">Records</th>", rows)))</div>
      <div>\(HTML.panel("Facts", facts))\(HTML.panel("Health", list))</div></div>
      """
  }

  private func facts(_ examination: Examination, _ frame: PageFrame) -> [(String, HTML?)] {
    let health = examination.health
    let pages: HTML? = health.pageCount.map { count in
      "\(Words.number(count)) of \(Words.number(health.pageSize ?? 0)) bytes"
    }
    let log: HTML? = health.log.map { log in
      "\(Words.counted(log.committedFrames, "committed frame")) of \(Words.number(log.frames))"
    }
    var facts: [(String, HTML?)] = [("Kind", HTML(escaping: Self.words(examination.kind)))]
    facts.append(("Model version", examination.modelVersion.map { HTML(escaping: printable($0)) }))
    facts.append(("Size", HTML(escaping: Words.size(store.bytes))))
    facts.append(("Changed", store.date.map { Words.time($0, now: frame.now) }))
    facts.append(("Pages", pages))
    facts.append(("Encoding", health.encoding.map { HTML(escaping: Self.words($0)) }))
    facts.append(("Written by", health.writtenBySQLite.map { "SQLite \($0)" }))
    facts.append(("Log", log))
    let uuid: HTML? = examination.metadata.map { "<code>\(printable($0.uuid))</code>" }
    facts.append(("Store UUID", uuid))
    return facts
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
