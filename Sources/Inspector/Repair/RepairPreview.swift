import HTTPServer
import Lazaret
import Migration
import PersistentStore
import Platform

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
      <p>In all \(Words.counted(outcome.setAsideRows, "record")) \(will) set aside, and \
      \(Words.counted(outcome.changedValues, "value")) of other records \(will) changed.</p>
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
    guard !check.isClean else {
      return "<p>No reference, constraint or mandatory value is against the model.</p>"
    }
    let notChecked: HTML =
      check.notChecked.isEmpty
      ? "" : "<p>Not everything could be checked:</p>\(DriftList.list(check.notChecked))"
    guard !check.findings.isEmpty else {
      return "<p>What could be checked of the records is not against the model.</p>\(notChecked)"
    }
    let rows = DataCheck.Kind.allCases.compactMap { kind -> HTML? in
      let findings = check.findings.filter { $0.kind == kind }
      guard !findings.isEmpty else { return nil }
      let count = findings.reduce(Int64(0)) { $0 &+ Int64($1.count) }
      return "<tr><th scope=\"row\" class=\"wrap\">\(Self.words(kind))</th>\(HTML.number(count, tone: .warn))</tr>"
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
      rest > 0 ? "<p class=\"soft\">And \(Words.number(rest)) more; this page as JSON has all of them.</p>" : .empty
    return .sentences(shown) + more
  }

  /// Counts the differences by kind, in order of first occurrence.
  private static func counts(_ codes: [String]) -> HTML {
    var order: [String] = []
    var counts: [String: Int] = [:]
    for code in codes {
      if counts[code] == nil { order.append(code) }
      counts[code, default: 0] += 1
    }
    let tags = order.map { code -> HTML in
      let nouns = nouns(code)
      return HTML.tag(Words.counted(counts[code] ?? 0, nouns.one, nouns.many), .warn) + " "
    }
    return tags.reduce(.empty, +)
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
