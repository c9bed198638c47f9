import ArgumentParser
import Lazaret
import Platform
import Salvage

struct SalvageCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "salvage", abstract: "Makes a clean store of every row that is still in the bytes of a damaged one.",
    usage: "lazaret salvage <store> [--model <model> … | --schema <sql>] -o <out> [<options>]",
    discussion: """
      Touches nothing of the store: it is only read, byte by byte, and never opened as a database.

      Makes a clean store of the version the store was written with and migrates it to the model's current version. \
      References to lost records are cut, and rows that contradict others or do not fit are set aside into a \
      file beside the result, whose name ends in -set-aside. The result has passed every check before it gets its name. \
      Without a model, and where the store carries none, the tables are made as the store itself lists them.

      With --raw the rows are written as they are found, in the version they were in. Rows that are not live, or not \
      certain, are in tables of their own, whose names begin with lazaret_; lazaret_provenance says where each one is \
      from and why it is doubtful.

      Prints what was recovered, what was lost and what likely happened, and writes it beside the result as JSON: \
      Rescued.salvage.json. Exits with 2 where anything was lost or is doubtful, and with 1 where the model has no \
      entity of the store.
      """, examples: "lazaret salvage Broken.sqlite --model App.xcdatamodeld -o Rescued.sqlite")

  @Argument(help: "The store's main file.") var store: PathArgument

  @Option(
    help:
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, or a store that carries it; of several, or of those in a folder, the one that fits the store is taken. If not given, what LAZARET_MODEL names."
  )
  var model: [PathArgument] = []

  @Option(help: "The schema of a plain SQLite store: a .sql file, what .schema prints, a sound store, or a backup.")
  var schema: PathArgument?

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(name: [.customShort("o"), .customLong("output")], help: "The new store; nothing may have its name.")
  var out: PathArgument

  @Option(
    help: .text(
      "Where the database begins in a file with several; if not given, the one that the model fits, else the first.",
      "byte"))
  var at: Int64?

  @Flag(help: "Look for deleted rows too; they are set aside.") var deleted = false

  @Flag(help: "Write the rows as found: nothing repaired, nothing migrated.") var raw = false

  @Flag(help: "Leave the new store in the version the damaged one was written with.")
  var noMigrate = false

  @Option(
    help: .text(
      "A recovery kit of the store; if not given, the newest in Recovery/ of the home or beside the store.", "file"))
  var kit: PathArgument?

  @Flag(help: "Use no recovery kit.") var noKit = false

  @OptionGroup var backup: DonorOptions

  @OptionGroup var home: HomeOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    try out.requirePlace()
    guard !(raw && noMigrate) else { throw ValidationError("--raw never migrates; leave --no-migrate out.") }
    guard kit == nil || !noKit else { throw ValidationError("Give --kit or --no-kit, not both.") }
    try backup.check()
    guard model.isEmpty || schema == nil else { throw ValidationError("Give a model or a schema, not both.") }
  }

  private func kitSource(_ home: ChosenHome, _ backup: UnpackedBackup?) -> KitSource {
    if noKit { return .none }
    if let kit { return .file(kit.path) }
    let folders = [KitFolder(for: store.path, home: home.path), KitFolder(for: store.path, home: nil)]
    return .any([.folders(folders), backup?.kit ?? .none])
  }

  func perform() throws {
    try refuseNoStore(at: store.path, to: "salvage the store")
    let home = home.of(store: store.path)
    let backup = try backup.unpacked(for: store.path, home: home)
    let kit = kitSource(home, backup)
    let known = try versionOrder.loadAppModel(
      schema.map { [$0.path] } ?? ModelOption.chosen(model), fitting: store.path, json: output.json)
    let line = ProgressLine()
    Interruption.listen()
    var options = Salvager.Options(
      findsDeleted: deleted, migrates: !noMigrate, offset: at, kit: kit, scope: try EvidenceScope(of: store.path),
      donor: backup?.donor
    ) {
      phase, done, total in
      line.show(phase.words, done, of: total, phase.unit)
      return !Interruption.isRequested
    }
    options.writesReport = true
    let model = known.map(SalvageModel.init)
    let mark = PrivateFolder.mark(of: out.path)
    defer { withExtendedLifetime(mark) {} }
    let report =
      raw
      ? try Salvager().salvageRaw(store.path, to: out.path, model: model, options: options)
      : try Salvager().salvage(store.path, to: out.path, model: model, options: options)
    let place = SalvageReport.path(beside: out.path)
    line.clear()
    try output.print(report, SalvageText(report, store: store.path, output: out.path, writtenTo: place).text)
    if !report.isComplete { throw ExitStatus.doubtful }
  }
}

extension SalvagePhase {
  /// The progress unit; a rebuild and a migration have none.
  fileprivate var unit: ProgressUnit {
    switch self {
    case .survey, .rows: .things("pages")
    case .placement, .rebuild, .migration: .shares
    }
  }

  fileprivate var words: String {
    switch self {
    case .survey: "Reading"
    case .placement: "Placing"
    case .rows: "Salvaging"
    case .rebuild: "Rebuilding"
    case .migration: "Migrating"
    }
  }
}
