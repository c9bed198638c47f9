import HTTPServer
import Platform
import SupportBundle

/// The prepared exports that await consent.
///
/// Their files are removed when forgotten, at the latest with this value.
final class PreparedExports: Sendable {
  struct Entry: Sendable {
    let id: String

    let store: StoreID

    let name: String

    let prepared: PreparedExport

    /// The only possible readers; unencrypted if empty.
    let recipients: [AgeRecipient]

    var target: RequestTarget { .to("exports", id) }
  }

  struct Choices: Sendable, Hashable {
    var level = BundleLevel.scrubbed
    var model: String?
    var recipients = ""
    var keeping: Set<String> = []
    var dropping: Set<String> = []
  }

  private struct State {
    var number = 0
    var entries: [Entry] = []
  }

  private let state = Mutex(State())

  /// What was chosen last for a store.
  let choices = RecentValues<StoreID, Choices>(capacity: 64)

  /// The most kept exports, since each may hold a copy of a whole store.
  private static let maximum = 4

  func keep(
    _ prepared: PreparedExport, of store: StoreID, named name: String, for recipients: [AgeRecipient]
  ) -> Entry {
    state.withLock { state in
      state.number += 1
      let entry = Entry(
        id: "export-\(state.number)", store: store, name: name, prepared: prepared, recipients: recipients)
      state.entries.append(entry)
      if state.entries.count > Self.maximum { state.entries.removeFirst() }
      return entry
    }
  }

  func latest(of store: StoreID) -> Entry? { state.withLock { state in state.entries.last { $0.store == store } } }

  /// - Throws: ``Refusal`` 404 if it is written, forgotten or unknown.
  func entry(_ id: String) throws(Refusal) -> Entry {
    try state.withLock({ state in state.entries.first { $0.id == id } })
      .orRefuse(.notFound, "there is no such export any more; ask for it again")
  }

  func forget(_ id: String) { state.withLock { state in state.entries.removeAll { $0.id == id } } }
}

/// A prepared export, shown before consent.
struct PreparedExportPage: InspectorPage {
  let entry: PreparedExports.Entry

  private var preview: ExportPreview { entry.prepared.preview }

  private static let maximumRows = 200

  var title: String { "What the bundle would hold" }
  var crumbs: [Crumb] { [.stores, Crumb(entry.name, .store(entry.store))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": entry.id, "store": entry.store.text, "preview": preview, "recipients": entry.recipients.map { "\($0)" },
      "action": entry.target.appending("write"),
    ])
  }

  func content(_ frame: PageFrame) -> HTML { "<h1>\(title)</h1>\(preview(frame))" }

  func preview(_ frame: PageFrame) -> HTML {
    """
    <p class="soft">\(entry.name) · level <b>\(preview.level.rawValue)</b>: \(preview.level.words)</p>
    \(staying)\(consent(frame))\(levels)\(remarks)\(files)\(scrub)
    """
  }

  /// The unchanged values.
  private var staying: HTML {
    guard let scrub = preview.scrub else { return .empty }
    let drop = scrub.staying.contains { $0.reason != .kept } ? " To overwrite one of them too, name it below." : ""
    return .note(
      scrub.staying.isEmpty ? .good : .warn,
      "<p><strong>\(scrub.stayingWords).</strong>\(drop) \(scrub.alwaysStaying)</p>")
  }

  private func consent(_ frame: PageFrame) -> HTML {
    let readers: HTML
    if entry.recipients.isEmpty {
      readers = .note(
        .warn, "<p><strong>It is not encrypted.</strong> Everyone who gets the file can read what is in it.</p>")
    } else {
      let keys = entry.recipients.map { key -> HTML in "<li><code>\("\(key)")</code></li>" }
      readers = "<p>Only the holders of these keys can open it:</p><ul class=\"wrap\">\(keys)</ul>"
    }
    let buttons = frame.whereAllowed(
      """
      <div class="row">\(frame.button("Write the bundle", entry.target.appending("write"), style: "main"))\
      \(frame.button("Cancel", entry.target.appending("forget")))</div>
      """)
    return .panel("Do you agree?", "\(readers)\(buttons)")
  }

  private var levels: HTML {
    let rows = preview.levels.map { level -> HTML in
      let isAsked = level.level == preview.level
      let name: HTML = isAsked ? "<b>\(level.level.rawValue)</b>, this one" : "\(level.level.rawValue)"
      let size = (level.isExact ? "" : "about ") + readableSize(level.bytes)
      return .row(
        name, .number(Int64(level.files)), .cell("\(size)", "number"),
        .cell("about \(readableSize(level.packedBytes))", "number"))
    }
    return .panel(
      "All levels", .table("All levels", ["Level", .number("Files"), .number("Unpacked"), .number("Packed")], rows))
  }

  private var files: HTML {
    let rows = preview.files.prefix(Self.maximumRows).map { file in
      HTML.row("\(printable(file.name))", wraps: true, .size(file.bytes), .cell("\(file.words)"))
    }
    let rest: HTML =
      preview.files.count > Self.maximumRows
      ? "<p class=\"soft\">And \(preview.files.count - Self.maximumRows) more.</p>" : .empty
    return .panel("What is in it", .table("Files of the bundle", ["File", .number("Size"), "What it is"], rows) + rest)
  }

  private var scrub: HTML {
    guard let report = preview.scrub else { return .empty }
    let rows = report.columns.prefix(Self.maximumRows).map { column -> HTML in
      .row(
        "\(printable(column.name))", wraps: true, .cell("\(printable(column.table))", "wrap"),
        .number(column.counts.replaced), .number(column.counts.shifted), .number(column.counts.kept),
        .number(column.counts.dropped))
    }
    let columns: [TableColumn] = [
      "Column", "Table or index", .number("Replaced"), .number("Shifted"), .number("Kept"), .number("Overwritten"),
    ]
    let gaps: HTML =
      report.gapCount > 0
      ? """
      <p>\(counted(report.gapCount, "range")) with \(readableSize(report.gapBytes)) could not be understood, and \
      \(report.gapCount == 1 ? "was" : "were") overwritten.</p>
      """ : .empty
    let check = preview.checkSeconds.map { seconds -> HTML in
      """
      <p>The result was checked against the original in \("\((seconds * 10).rounded() / 10)") s: no value that was to go is left.</p>
      """
    }
    let notes = report.remarks.map { remark -> HTML in "<p class=\"soft\">\(sentence(printable(remark)))</p>" }
    return .panel(
      "What was done to the values",
      "\(HTML.table("What was done to the values", columns, Array(rows)))\(check ?? .empty)\(gaps)\(notes)")
  }

  private var remarks: HTML {
    guard !preview.remarks.isEmpty else { return .empty }
    return .panel("To be said", .sentences(preview.remarks.map { sentence(printable($0)) }))
  }
}
