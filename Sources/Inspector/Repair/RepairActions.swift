import Backup
import HTTPServer
import Lazaret
import Migration
import PersistentStore
import Platform
import SystemPackage

/// Repairs and checks live stores.
struct RepairActions: Sendable {
  let parts: InspectorParts

  // MARK: Repair

  static let repairFields: [DocumentedRoute.Field] = [
    .init(
      "data",
      "\"yes\" to put records and references right too: what is taken out is set aside in a file beside the original.")
  ]

  @Sendable func repairForm(_ store: ListedStore, isShown: Bool) throws -> ActionForm {
    let subject = try RepairSubject(store, parts)
    let originals = try originals(of: subject.files)
    var form = ActionForm(
      "Repair", of: store, "repair",
      does: [
        "Adds what the store lacks of its own version of the model, on a copy. It stays at its version.",
        "Changes no value that is there, apart from entity numbers that are not the model's, and removes nothing.",
        "Checks the copy before it takes the store's place: every page, and every row and value against the original.",
        "Keeps the original, whole, in \(printable(originals.string)). Restoring it undoes the repair.",
        "Close the app before: a store that is in use stays where it is.",
      ], button: "Repair")
    form.obstacle = try subject.obstacle ?? subject.declarations(in: parts.surroundings.fileSystem)
    guard form.obstacle == nil else {
      if form.obstacle?.code == "store-damaged" { form.instead = ("Salvage …", .store(store.id, "salvage")) }
      return form
    }
    form.choices = [
      .flag(
        name: "data", label: "Put records and references right too",
        about: """
          This takes data out of the store: references that lead to no record are cut, records that break a uniqueness \
          constraint and pairs that lead nowhere are set aside, and mandatory attributes without a value get the model's \
          default. All of it is kept in a file beside the original.
          """)
    ]
    guard isShown else { return form }
    let preview = RepairPreview(store, subject, parts)
    form.preview = (preview.html(offersCheck: parts.options.allowsActions), preview)
    form.obstacle = preview.problem
    return form
  }

  /// The folder of originals kept before repairs.
  private func originals(of files: StoreFileSet) throws -> FilePath { try parts.backups.place(of: files.main).path }

  func repair(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let subject = try RepairSubject(store, parts)
    let (parts, path, migrator) = (parts, subject.files.main, try subject.migrator(parts))
    let isOfApp = subject.modelName != nil
    let scope: RepairScope = form["data"] == "yes" ? .data : .structure
    return try parts.begin(.repair, "Repair", of: store) { observer in
      var options = Migrator.Options()
      options.repair = scope
      options.home = parts.home
      options.isRecorded = true
      options.isCancelled = { observer.isCancelled }
      options.progress = { _, _, _ in
        observer.report("repairing a copy, and checking it", nil)
        return !observer.isCancelled
      }
      var outcome = RepairOutcome(path, try migrator.repair(path, options: options))
      if !isOfApp { outcome.version = nil }
      // The form page explains unrepaired parts.
      guard outcome.backup != nil else { return JobOutcome(Self.words(outcome), .store(store.id, "repair")) }
      parts.repairs.done.keep(.init(outcome: outcome, scope: scope, date: parts.surroundings.now()), for: store.id)
      return JobOutcome(Self.words(outcome), .store(store.id, "repaired"))
    }
  }

  private static func words(_ outcome: RepairOutcome) -> String {
    let rest = outcome.leftOut.count
    let verb = rest == 1 ? "stays as it is" : "stay as they are"
    let stays = rest == 0 ? "" : " \(counted(rest, "thing")) \(verb)."
    guard outcome.backup != nil else { return "There was nothing to repair; the store is as it was.\(stays)" }
    let changes = counted(outcome.changes.count, "change")
    let aside = outcome.setAsideRows == 0 ? "" : ", \(counted(outcome.setAsideRows, "record")) set aside"
    return "The store is repaired: \(changes)\(aside). The original was kept.\(stays)"
  }

  // MARK: Check

  @Sendable func checkForm(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    let subject = try RepairSubject(store, parts)
    var form = ActionForm(
      "Check the records", of: store, "check",
      does: [
        "Compares the records with the store's own model: references that lead to no record, relationships that only one side has, records that break a uniqueness constraint, mandatory attributes without a value, files of large values that are missing.",
        "Changes nothing. What is found is counted; no value of a record is shown.",
        "The result is shown until the store changes, or the inspector ends.",
      ], button: "Check")
    form.obstacle = subject.obstacle
    return form
  }

  func check(_ store: ListedStore) throws -> ActionAnswer {
    let subject = try RepairSubject(store, parts)
    let (parts, files, layout) = (parts, subject.files, try subject.storeLayout())
    return try parts.begin(.check, "Check of the records", of: store) { observer in
      observer.report("comparing records with the model", nil)
      let check = try parts.repairs.check(files, layout, parts.surroundings)
      guard !check.isClean else { return JobOutcome("The records have nothing against the model.") }
      func sum(_ isFile: Bool) -> Int64 {
        check.findings.filter { ($0.kind == .missingFile) == isFile }.reduce(0) { $0 &+ Int64($1.count) }
      }
      let (rows, files) = (sum(false), sum(true))
      let against = "\(counted(rows, "row")) of the store \(rows == 1 ? "is" : "are") against its model."
      let missing =
        "\(counted(files, "file")) of large values \(files == 1 ? "is" : "are") missing that records refer to."
      return JobOutcome(
        [rows > 0 ? against : nil, files > 0 ? missing : nil].compactMap(\.self).joined(separator: " "))
    }
  }
}

/// The last repair and how to undo it.
struct RepairedPage: StoreSubpage {
  let store: ListedStore
  let done: RepairNotes.Done

  /// The kept original, unless removed.
  let original: StoreID?
  private let home: FilePath

  /// - Throws: ``Refusal`` 404 without a repair since startup.
  init(_ store: ListedStore, _ parts: InspectorParts) throws {
    let done = try parts.repairs.done[store.id]
      .orRefuse(.notFound, "no repair of this store was carried out since the inspector began")
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

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "date": done.date, "scope": done.scope, "repair": outcome, "original": original?.text,
      "undo": undo,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let state: HTML = outcome.leavesSomething ? .tag("repaired, but for what is below", .warn) : .tag("repaired", .good)
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
        ("Model version", version), ("Records", HTML(escaping: grouped(outcome.rows))),
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
    let aside = HTML.when(
      outcome.setAside != nil,
      """
      <p>What was taken out of the records lies beside the original, in a database: the rows of a table <code>T</code> in \
      <code>lazaret_set_aside_T</code>, values that changed in <code>lazaret_values_changed</code>.</p>
      """)
    let link: HTML =
      original.map { original in
        let action = HTML.when(frame.allowsActions, " " + .button("Restore it …", .store(original, "restore")))
        return "<p class=\"row\">\(HTML.button("The original", .store(original)))\(action)</p>"
      } ?? "<p>The original is not among the backups of this home any more.</p>"
    return .panel(
      "How to undo it",
      """
      <p>The store as it was before is kept, whole. Restoring it puts it back; the repaired store is quarantined then.</p>\
      \(link)<pre tabindex="0" class="text">\(printable(undo))</pre>\(aside)
      """)
  }
}

/// A store's deviations and a repair's effects on a private copy.
struct RepairPreview: Encodable {
  private let store: ListedStore
  private let drift: StoreDrift?
  private let check: DataCheck?

  /// The default repair; nil if the store is too large.
  private let structure: PagePart<RepairAccount>?

  /// The repair with records, if a check found repairable ones.
  private let data: PagePart<RepairAccount>?

  /// The largest store in bytes repaired as a copy; the command line handles larger ones.
  private static let maximumBytes: Int64 = 256 << 20

  init(_ store: ListedStore, _ subject: RepairSubject, _ parts: InspectorParts) {
    self.store = store
    drift = subject.examination.value?.drift
    // The parts below report an unreadable store.
    check = (try? parts.repairs.check(of: subject.files, in: parts.surroundings.fileSystem)) ?? nil
    func dryRun(_ scope: RepairScope) -> PagePart<RepairAccount>? {
      store.bytes > Self.maximumBytes ? nil : PagePart { try parts.repairs.dryRun(of: subject, scope, parts) }
    }
    structure = dryRun(.structure)
    data = check?.hasContradictions == true ? dryRun(.data) : nil
  }

  var problem: Problem? { structure?.problem }

  func encode(to encoder: any Encoder) throws {
    func account(_ part: PagePart<RepairAccount>?) -> PagePart<RepairOutcome>? {
      part.map { part in part.map { RepairOutcome(nil, dryRun: $0) } }
    }
    try encoder.encode([
      "drift": drift, "structure": JSON.orNull(account(structure)), "findings": JSON.orNull(check),
      "data": account(data),
    ])
  }

  func html(offersCheck: Bool) -> HTML {
    let lacks: HTML =
      drift.map { drift in
        drift.isEmpty ? "<p>Nothing.</p>" + DriftList(drift: drift).html : DriftList(drift: drift).html
      } ?? .empty
    return """
      <h2>What it lacks of its own model</h2>\(lacks)\
      <h2>What the repair would do</h2>\(shown(structure))\
      <h2>Records and references</h2>\(DataFindings(store: store, check: check).html(offersCheck: offersCheck))\(withData)
      """
  }

  private var withData: HTML {
    guard check?.hasContradictions == true else { return .empty }
    return "<h3>What the repair would do, with records and references</h3>\(shown(data))"
  }

  private func shown(_ part: PagePart<RepairAccount>?) -> HTML {
    guard let part else {
      return """
        <p class="soft">The store is too large for a copy of it to be repaired for this page; \
        <code>lazaret repair --dry-run</code> does.</p>
        """
    }
    // The obstacle is shown once, in place of the button.
    guard part.problem == nil else { return "<p>It would be refused, for the reason below.</p>" }
    return part.html { RepairLists(outcome: RepairOutcome(nil, dryRun: $0)).html }
  }
}

struct RepairLists {
  let outcome: RepairOutcome

  var html: HTML {
    let changes: HTML =
      outcome.changes.isEmpty
      ? "<p>Nothing \(outcome.dryRun ? "would be" : "was") added or changed.</p>"
      : DriftList.list(outcome.changes.map(\.text))
    return changes + aside + leftOut
  }

  private var aside: HTML {
    guard outcome.setAsideRows > 0 || outcome.changedValues > 0 else { return .empty }
    let will = outcome.dryRun ? "would be" : "were"
    return """
      <p>In all \(counted(outcome.setAsideRows, "record")) \(will) set aside, and \
      \(counted(outcome.changedValues, "value")) of other records \(will) changed.</p>
      """
  }

  private var leftOut: HTML {
    guard !outcome.leftOut.isEmpty else { return .empty }
    return """
      <h3>\(outcome.dryRun ? "Would stay" : "Stays") as it is, and why</h3>\
      \(DriftList.list(outcome.leftOut.map(\.wordsWithKeys)))
      """
  }
}

/// The records that contradict the model.
struct DataFindings {
  let store: ListedStore

  /// The findings; nil if outdated.
  let check: DataCheck?

  /// - Parameter offersCheck: whether the check can start here.
  func html(offersCheck: Bool) -> HTML {
    guard let check else {
      guard offersCheck else {
        return "<p>They were not compared with the model; <code>lazaret inspect --check data</code> does.</p>"
      }
      return """
        <p>They were not compared with the model yet.</p>\
        <p><a class="button" href="\(RequestTarget.store(store.id, "check"))">Check the records …</a></p>
        """
    }
    guard !check.isClean else { return "<p>No reference, constraint or mandatory value is against the model.</p>" }
    let notChecked: HTML =
      check.notChecked.isEmpty ? "" : "<p>Not everything could be checked:</p>\(DriftList.list(check.notChecked))"
    guard !check.findings.isEmpty else {
      return "<p>What could be checked of the records is not against the model.</p>\(notChecked)"
    }
    let rows = DataCheck.Kind.allCases.compactMap { kind -> HTML? in
      let findings = check.findings.filter { $0.kind == kind }
      guard !findings.isEmpty else { return nil }
      let count = findings.reduce(Int64(0)) { $0 &+ Int64($1.count) }
      return .row("\(Self.words(kind))", wraps: true, .number(count, tone: .warn))
    }
    let table = HTML.table("Rows against the model", ["Kind", .number("Rows")], rows)
    return "\(table)\(DriftList.list(check.findings.map(\.words)))\(notChecked)"
  }

  private static func words(_ kind: DataCheck.Kind) -> String {
    switch kind {
    case .duplicateKey: "Rows without a primary key of their own"
    case .wrongEntityNumber: "References with the number of another entity beside them"
    case .danglingReference: "References that lead to no record"
    case .oneSidedRelationship: "Relationships that only one side has"
    case .danglingJoinRow: "Rows of join tables that lead to no record"
    case .duplicate: "Records that break a uniqueness constraint"
    case .missingValue: "Mandatory attributes without a value"
    case .missingFile: "Large values whose files are missing"
    }
  }
}

/// A store's deviations from its model.
struct DriftList {
  let drift: StoreDrift

  /// The most items on a page; the JSON has all.
  static let maximumShown = 100

  /// The most characters per item, since names can be very long.
  static let maximumLength = 300

  var html: HTML {
    var html = HTML.empty
    if !drift.isEmpty {
      html += "<p>\(Self.counts(drift.differences.map(\.code)))</p>\(Self.list(drift.differences.map(\.words)))"
    }
    if !drift.remarks.isEmpty {
      html += "<h3>Told, and changed by no repair</h3>\(Self.list(drift.remarks.map(\.words)))"
    }
    return html
  }

  static func list(_ sentences: [String]) -> HTML {
    let shown = sentences.prefix(maximumShown).map { words in
      sentence(words.count > maximumLength ? words.prefix(maximumLength - 1) + "…" : words)
    }
    let rest = sentences.count - maximumShown
    let more: HTML =
      rest > 0 ? "<p class=\"soft\">And \(grouped(rest)) more; this page as JSON has all of them.</p>" : .empty
    return .sentences(shown) + more
  }

  /// Counts the differences by kind, in order of first occurrence.
  private static func counts(_ codes: [String]) -> HTML {
    let counts = Dictionary(codes.map { ($0, 1) }, uniquingKeysWith: +)
    var seen: Set<String> = []
    return codes.filter { seen.insert($0).inserted }.reduce(into: .empty) { tags, code in
      let nouns = nouns(code)
      tags += .tag(counted(counts[code] ?? 0, nouns.one, nouns.many), .warn) + " "
    }
  }

  private static func nouns(_ code: String) -> (one: String, many: String) {
    switch code {
    case "missing-table": ("missing table", "missing tables")
    case "missing-join-table": ("missing join table", "missing join tables")
    case "missing-column": ("missing column", "missing columns")
    case "missing-index": ("missing index", "missing indexes")
    case "missing-unique-index": ("missing unique index", "missing unique indexes")
    case "missing-spatial-index": ("missing R-tree index", "missing R-tree indexes")
    case "missing-trigger": ("missing trigger", "missing triggers")
    case "missing-key-row": ("missing row of Z_PRIMARYKEY", "missing rows of Z_PRIMARYKEY")
    case "wrong-key-row": ("wrong row of Z_PRIMARYKEY", "wrong rows of Z_PRIMARYKEY")
    case "other-entity-number": ("other entity number", "other entity numbers")
    case "low-key-maximum": ("highest key that is too low", "highest keys that are too low")
    case "other-model-cached": ("cached model of another version", "cached models of another version")
    default: (code, code)
    }
  }
}
