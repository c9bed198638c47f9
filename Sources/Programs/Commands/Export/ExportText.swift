import BundleWriting
import ExportCoordination
import StoreCoordination

/// What an export tells on a terminal.
struct ExportText {
  private let content: ExportPreview
  private let recipients: [AgeRecipient]

  init(_ preview: ExportPreview, recipients: [AgeRecipient]) {
    content = preview
    self.recipients = recipients
  }

  /// What the bundle would hold.
  var preview: String {
    var text = content.scrub.map { Self.consent($0) } ?? ""
    text +=
      "A bundle about \(printable(content.store)), level \(content.level.rawValue): \(content.level.words).\n\n"
    var levels = TextTable(["level", "files", "unpacked", "packed"], numericColumns: [1, 2, 3])
    for level in content.levels {
      levels.append([
        (level.level == content.level ? "* " : "  ") + level.level.rawValue, "\(level.files)",
        (level.isExact ? "" : "about ") + readableSize(level.bytes), "about " + readableSize(level.packedBytes),
      ])
    }
    text += levels.text() + "\n"
    var files = TextTable(["file", "size", "what it is"], numericColumns: [1])
    for file in content.files.prefix(60) { files.append([printable(file.name), readableSize(file.bytes), file.words]) }
    text += files.text()
    if content.files.count > 60 { text += "  and \(content.files.count - 60) more\n" }
    if let scrub = content.scrub { text += "\n" + Self.words(scrub) }
    if let seconds = content.checkSeconds {
      text +=
        "  The result was checked against the original in \(Self.words(seconds)): no value that was to go is left.\n"
    }
    for remark in content.remarks { text += "\n  \(printable(remark))\n" }
    text +=
      recipients.isEmpty
      ? "\nIt is not encrypted: everyone who gets the file can read it.\n"
      : "\nOnly the holders of these keys can open it:\n" + recipients.map { "  \($0)\n" }.joined()
    return text
  }

  /// What stays as it is, before all else.
  private static func consent(_ scrub: ScrubReport) -> String {
    let others = scrub.staying.filter { $0.reason != .kept }
    let option = others.isEmpty ? "" : " To overwrite one of them too: --drop \(printable(others[0].name))."
    return "\(scrub.stayingWords).\(option)\n\(scrub.alwaysStaying)\n\n"
  }

  private static func words(_ scrub: ScrubReport) -> String {
    var table = TextTable(["column", "replaced", "shifted", "kept", "dropped"], numericColumns: [1, 2, 3, 4])
    let columns = scrub.columns.filter { $0.counts.replaced + $0.counts.shifted + $0.counts.dropped > 0 }
    var told: Set<String> = []
    for column in columns.prefix(40) {
      let name = column.name.contains(".") ? column.name : "\(column.table).\(column.name)"
      table.append([
        // The table's own comes first, and its copies in indexes after it.
        printable(told.insert(name).inserted ? name : "\(name) in \(column.table)"),
        grouped(column.counts.replaced), grouped(column.counts.shifted), grouped(column.counts.kept),
        grouped(column.counts.dropped),
      ])
    }
    var text = "What was done to the values:\n" + table.text()
    if columns.count > 40 { text += "  and \(columns.count - 40) more columns; scrub.json has all\n" }
    if scrub.gapCount > 0 {
      text +=
        "  \(counted(Int64(scrub.gapCount), "range")) with \(readableSize(scrub.gapBytes)) could not be understood and were overwritten.\n"
    }
    for remark in scrub.remarks { text += "  \(printable(remark))\n" }
    return text
  }

  private static func words(_ seconds: Double) -> String { "\((seconds * 10).rounded() / 10) s" }

  static func summary(_ summary: ExportSummary) -> String {
    let bundle = summary.bundle
    var text = "\(printable(bundle.path.text)): \(readableSize(bundle.bytes)), level \(bundle.level.rawValue)\n"
    text += "  SHA-256   \(bundle.sha256)\n"
    for recipient in bundle.recipients { text += "  for       \(recipient)\n" }
    if let seconds = summary.checkSeconds {
      text += "  checked   against the original in \(words(seconds)): no value that was to go is left\n"
    }
    if let id = summary.quarantineID { text += "  noted in the receipt of \(id)\n" }
    return text
  }
}
