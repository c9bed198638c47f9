public import ArgumentParser
internal import Lazaret
internal import Migration
internal import PersistentStore
internal import Platform
public import SupportBundle
import SystemPackage

struct ExportCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "export",
    abstract: "Makes a bundle for support: what is wrong with a store, and as much of it as you agree to.",
    usage: "lazaret export <store or id> -o <bundle> [--level <level>] [--encrypt-to <key>] [<options>]",
    discussion: """
      Shows what the bundle would hold, with the sizes of all levels, and asks before it writes it. The store is only read.

      LEVELS
        facts          what is damaged, in numbers and names of tables; no data
        damaged-pages  the facts, and the damaged pages, which can hold some data
        scrubbed       the facts, and the store with its values replaced
        full           everything, byte for byte

      Pseudonyms follow from a key that is made for each bundle and thrown away. With --same-key it is \
      Keys/scrubbing.key of the home, so that bundles can be compared; it never goes into a bundle, as it can be used \
      to test guesses. Before a scrubbed bundle is written all of it is searched for values of the store; where one is \
      found nothing is written.

      Exits with 1 where it was not confirmed. Ctrl-C ends it in good order and leaves nothing.
      """, examples: "lazaret export 2026-11-21-10-11-12 --home Stores -o .",
    "lazaret export Stores/App.sqlite -o . --encrypt-to support.pub",
    "lazaret export Stores/App.sqlite --level facts --dry-run",
    "lazaret export Stores/App.sqlite -o Report.tar.gz --keep Car.name --yes")

  @Argument(help: "The store's main file, or the name of a quarantined store.")
  var store: PathArgument

  @Option(name: .output, help: .text("A folder, or the path of the new bundle.", "bundle"))
  var out: PathArgument?

  @Option(help: "facts, damaged-pages, scrubbed or full.") var level: BundleLevel = .scrubbed

  @Option(
    help: .text("Encrypt to this key, age1…, or to those in a file, one a line; may be given several times.", "key"))
  var encryptTo: [String] = []

  @Flag(help: "Write an encrypted bundle as text.") var armor = false

  @Option(help: .text("Leave the values of Entity.attribute; may be given several times.", "name"))
  var keep: [String] = []

  @Option(help: .text("Overwrite the values of Entity.attribute with filling.", "name"))
  var drop: [String] = []

  @Flag(help: "Use the scrubbing key of the home, so that bundles can be compared.")
  var sameKey = false

  @OptionGroup var models: FittingModelsOption

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(help: .text("The app's identifier, such as com.example.Garage.", "id")) var app: String?

  @Option(help: .text("The app's own version.", "version")) var appVersion: String?

  @Flag(help: "Do not ask.") var yes = false

  @Flag(help: "Only show what the bundle would hold.") var dryRun = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    try out?.requirePlace()
    guard dryRun || out != nil else { throw ValidationError("Say where the bundle goes with -o, or --dry-run.") }
    guard !(dryRun && yes) else { throw ValidationError("--dry-run writes nothing that --yes could be said to.") }
    guard !armor || !encryptTo.isEmpty else { throw ValidationError("--armor needs --encrypt-to.") }
    guard level == .scrubbed || (keep.isEmpty && drop.isEmpty && !sameKey) else {
      throw ValidationError("--keep, --drop and --same-key belong to --level scrubbed.")
    }
    if let both = Set(keep).intersection(drop).min() {
      throw ValidationError("\(both) cannot be both kept and dropped.")
    }
  }

  /// Finds the main file, also by its name in quarantine.
  private func evidence(_ home: ChosenHome, isNamed: Bool) throws -> FilePath {
    guard isNamed else { return store.path }
    return try home.finding(quarantined: store.path, forBackup: "backup restore ID --to FILE") {
      try Quarantines(home: home.path).store(store.path).files.main
    }
  }

  /// The bundle's folder, else the system's.
  private func workplace() throws -> ExportFolder.Place {
    guard let out = out?.path, !dryRun else { return .temporary }
    let isFolder = try FileSystem().status(of: out)?.kind == .directory
    let folder = isFolder ? out : out.folder
    return try FileSystem().status(of: folder)?.kind == .directory ? .beside(folder) : .temporary
  }

  func perform() throws {
    // The export holds tables of values; its copy uses 1 MiB blocks.
    FreedMemory.goesBack(from: 1 << 20)
    // Report a mistyped key before the work.
    let recipients = try KeyFiles.recipients(encryptTo)
    let isNamed = try FileSystem().status(of: store.path) == nil
    let home = try isNamed ? home.of(quarantined: store.path) : home.of(store: store.path)
    let exports = SupportExports(home: home.path, place: try workplace())
    let evidence = try evidence(home, isNamed: isNamed)
    let options = ExportOptions(
      level: level, app: app, appVersion: appVersion,
      model: try versionOrder.loadAppModel(models.paths, fitting: evidence, json: output.json),
      keeping: Set(keep), dropping: Set(drop), usesSameKey: sameKey)
    Interruption.listen()
    let line = ProgressLine()
    let progress: ExportProgress = { phase, done, total in
      line.show(phase.words, done, of: total, phase.unit)
      return !Interruption.isRequested
    }
    let prepared = try home.writing { try exports.make(store.path, options, progress: progress) }
    line.clear()
    let text = ExportText(content: prepared.preview, recipients: recipients)
    if dryRun { return try output.print(prepared.preview, text.preview) }
    guard let out else { return }
    if !yes {
      // Show the preview where the question is asked.
      if !output.json { Terminal.standardError.write(text.preview + "\n") }
      try Confirmation.require(
        "Write the bundle?", undone: "written", json: output.json,
        or: CommandError(
          .notConfirmed, operation: "export the store", path: store.path,
          detail: "it was not confirmed, and nothing was written",
          hint: "Look at it with --dry-run, then add --yes to write it without being asked."))
    }
    let summary = try exports.write(prepared, to: recipients, armored: armor, at: out.path, progress: progress)
    line.clear()
    try output.print(summary, ExportText.summary(summary))
  }
}

extension BundleLevel: ExpressibleByArgument {}

extension ExportPhase {
  fileprivate var unit: ProgressUnit {
    switch self {
    case .copying, .packing: .bytes
    case .examining: .things("pages")
    case .analysing, .scrubbing, .checking: .shares
    }
  }
}

struct ExportText {
  let content: ExportPreview
  let recipients: [AgeRecipient]

  var preview: String {
    var text = content.scrub.map { Self.consent($0) } ?? ""
    text += "A bundle about \(printable(content.store)), level \(content.level.rawValue): \(content.level.words).\n\n"
    var levels = TextTable(["level", "files", "unpacked", "packed"], numericColumns: [1, 2, 3])
    for level in content.levels {
      levels.append(
        (level.level == content.level ? "* " : "  ") + level.level.rawValue, "\(level.files)",
        (level.isExact ? "" : "about ") + readableSize(level.bytes), "about " + readableSize(level.packedBytes))
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

  /// The content that stays unscrubbed, first.
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
      table.append(
        // The table's own column first, then its copies in indexes.
        printable(told.insert(name).inserted ? name : "\(name) in \(column.table)"),
        grouped(column.counts.replaced), grouped(column.counts.shifted), grouped(column.counts.kept),
        grouped(column.counts.dropped))
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
    for remark in summary.remarks { text += "  \(printable(remark))\n" }
    if let id = summary.quarantineID { text += "  noted in the receipt of \(id)\n" }
    return text
  }
}
