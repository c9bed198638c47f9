public import ArgumentParser
import Backup
public import Lazaret
import ManagedObjectModel
import Migration
public import PersistentStore
import Platform
import SystemPackage

struct OpenCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "open", abstract: "Opens a store as an app would: creates, opens, migrates, or quarantines and salvages it.",
    usage: "lazaret open <store> --model <model> [<options>]",
    discussion: """
      A sound store is opened; a log or journal of it that was not read to its end is kept in Backups/ of the home first. One that lacks something of its own model (columns, tables, indexes, bookkeeping) is \
      repaired on a copy first. One of an earlier version of the model is migrated on a copy, in one step where that can be \
      inferred; the original is kept in Backups/ of the home. A damaged or incompatible one is moved, whole and unchanged, into Incompatible/ beside it, \
      with a receipt, and salvaged there: a clean store of every record that is still in its bytes is made beside it, verified, \
      and a copy of it takes the store's place. Where no record is recovered, an empty store does. A store that is \
      unavailable (locked, forbidden, newer than the app) stays where it is, and so does an encrypted one. What is nothing of \
      the app's (a sound store that has nothing in common with the model, a text, a picture, an archive, a program) stays too, \
      unless a store of that path was opened, quarantined or backed up before, or --replace-foreign is given.

      Ctrl-C ends it in good order: a store whose salvage had begun lies whole in quarantine, and opening it again goes on.

      A migration that fails for a reason in the store or in the models leaves the store as it was, unless \
      --on-migration-failure says otherwise, and a report in Reports/ of the home. One that would delete what the model \
      still has a name for is refused unless --on-migration-loss accepts it. A damaged store whose records cannot be \
      migrated stays too, or waits in quarantine with what was salvaged of it.

      Exits with 2 where records are lost or doubtful, where a log or journal was not read to its end, where an empty store took a store's place, where a repair leaves \
      references that lead to no record, or where records lost something in a migration besides the properties that the \
      model's versions drop.
      """, examples: "lazaret open Stores/App.sqlite --model App.xcdatamodeld")

  @Argument(help: "The store's main file.") var store: PathArgument

  @OptionGroup var model: ModelOption

  @Option(help: .text("The version to open it as; the model's current one if not given.", "version"))
  var to: String?

  @OptionGroup var versionOrder: VersionOrderOptions
  @OptionGroup var home: HomeOptions

  @Option(
    help: .text(
      "What to do with a damaged or incompatible store: salvage it at once, salvage it later, replace it by an empty one, or refuse.",
      "remedy"))
  var onDamage: OpeningPolicy.Remedy = .salvage

  @Option(
    help: .text(
      "What to do with a sound store whose migration failed: refuse (it stays as it is), salvage, later, or replace.",
      "remedy"))
  var onMigrationFailure: OpeningPolicy.Remedy = .refuse

  @Option(
    help: .text(
      "What to do with a sound store that lacks something of its own model: repair it, keep it as it is, quarantine and salvage it, or refuse.",
      "rule"))
  var onRepairable: OpeningPolicy.RepairRule = .repair

  @Option(
    help: .text(
      "How closely to look first: at every page (full), or at some (quick), and at all where these are damaged.",
      "depth"))
  var check: Examination.Depth = .full

  @Option(help: .text("The app's version, for the receipt.", "version")) var appVersion: String?

  @OptionGroup var foreign: ForeignFileOptions
  @OptionGroup var way: MigrationWayOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func perform() throws {
    let model = try versionOrder.loadAppModel(model.path, to: to, json: output.json)
    var migration = Migrator.Options()
    if case .coreData(let bundle) = model { migration = try way.options(for: bundle) }
    var policy = OpeningPolicy(
      whenDamaged: onDamage, whenIncompatible: onDamage, whenMigrationFails: onMigrationFailure,
      whenMigrationLoses: way.onMigrationLoss == .refuse ? .refuse : .migrate, depth: check == .quick ? .quick : .full)
    policy.whenRepairable = onRepairable
    policy.whenForeign = foreign.replaceForeign ? .replace : .refuse
    let home = home.of(store: store.path)
    let coordinator = StoreCoordinator(
      model: model, policy: policy,
      home: home.path, appVersion: appVersion, migration: migration, logger: log.logger(json: output.json))
    let line = OpeningLine(store.path)
    Interruption.listen()
    let observer = OpeningObserver {
      line.show($0)
    } isCancelled: {
      line.look()
      return Interruption.isRequested
    }
    let opening: Opening
    do {
      opening = try coordinator.open(store.path, observer: observer)
    } catch var error as LazaretError {
      error.hint += NextStep(for: store.path, model: try self.model.path).advice(after: error.kind, in: home)
      throw error
    }
    line.clear()
    let kit = opening.backgroundPass?.wait().kit
    try opening.store.close()
    let advice = output.json ? nil : try backupAdvice(opening, home)
    try output.print(
      opening.payload(kit, in: home),
      opening.text(kit, path: store.path, home: home) + (advice.map { "\n\($0)" } ?? ""))
    var bundle: ModelBundle?
    if case .coreData(let versions) = model { bundle = versions }
    let planned = PlannedRemovals(bundle, target: to, way)
    let isWithLosses = opening.isWithLosses(besides: planned.contains)
    if TextStyle.current.isQuiet, !output.json, isWithLosses || opening.quarantinedPath != nil {
      // The exit code shows neither the quarantine nor the extent of loss.
      let examination = opening.examination
      var words =
        "lazaret: \(printable(store.path.string)): \(examination.verdict.rawValue). \(examination.reason.words)\n"
      for event in opening.events { words += "  \(event.words)\n" }
      if let doubt = opening.salvage?.reservationWords { words += "  \(printable(doubt))\n" }
      Terminal.standardError.write(words)
    }
    if isWithLosses { throw ExitStatus.doubtful }
  }

  /// Suggests a backup that has lost records.
  private func backupAdvice(_ opening: Opening, _ home: ChosenHome) throws -> String? {
    guard let salvage = opening.salvage, salvage.state != .pending, !salvage.isComplete,
      let path = opening.quarantinedPath
    else { return nil }
    do {
      let scope = try Quarantines(home: home.path).store(path).evidence
      let backups = try Backups(home: home.path).catalogs(of: store.path).flatMap(\.backups)
      let usable = backups.filter { $0.isProvenGood && $0.exclusion(from: scope) == nil }
      guard let newest = usable.max(by: { $0.id < $1.id }) else { return nil }
      // Verified means restored and checked.
      let words =
        newest.proof?.lastRestored == nil
        ? "  There is a backup of this store from before, \(newest.id), which was read back and not verified yet."
        : "  There is a verified backup of this store from before, \(newest.id)."
      guard salvage.isInstalled else {
        return
          "\(words) To have it instead of what is open now:\n"
          + "    lazaret backup restore \(newest.id) --of \(shellQuoted(store.path))\(home.optionBesidesStore)\n"
      }
      let stored = shellQuoted(path) + home.optionBesidesStore
      let model = shellQuoted(try self.model.path)
      return "\(words) To take from it what is lost:\n"
        + "    lazaret quarantine salvage \(stored) --model \(model) --with-backup \(newest.id) --install\n"
    } catch let error as any ReportableError {
      // The store is open regardless.
      return "  Whether a backup has what is lost could not be looked up: \(error.detail).\n"
    }
  }
}

extension Opening {
  func payload(_ kit: RecoveryKitNote.Outcome?, in home: ChosenHome) -> JSON.Object {
    var kitPath: PathText?
    if case .noted(let event) = kit { kitPath = event.path }
    let undo = events.compactMap { $0.undo(in: home) }.last
    return [
      "verdict": examination.verdict, "reason": examination.reason, "modelVersion": examination.modelVersion,
      "store": PathText(store.path), "events": events.map { JSON.Object($0, ["undo": $0.undo(in: home)]) },
      "notice": notice.map { JSON.Object($0, ["undo": undo]) }, "recoveryKit": kitPath,
    ]
  }

  fileprivate func text(_ kit: RecoveryKitNote.Outcome?, path: FilePath, home: ChosenHome) -> String {
    var lines = "\(printable(path.string)): \(examination.verdict.rawValue)\n"
    lines += "  \(examination.reason.words)\n"
    if examination.verdict == .compatible { lines += "  \(examination.reason.hint)\n" }
    let last = events.lastIndex { $0.salvage != nil }
    for (index, event) in events.enumerated() {
      lines += "\n  \(event.words)\n"
      // The salvage's account has the path under its own name.
      let isInAccount = index == last && event.salvage?.store?.text == event.path.text
      if !isInAccount { lines += "    \(printable(event.path.text))\n" }
      if let receipt = event.receipt { lines += "    receipt: \(printable(receipt.text))\n" }
      if let report = event.report { lines += "    report: \(printable(report.text))\n" }
      if let undo = event.undo(in: home) { lines += "    undo it with: \(undo)\n" }
      if let repair = event.repair { lines += Self.text(repair) }
      if let migration = event.migration { lines += Self.text(migration) }
      if index == last, let salvage = event.salvage {
        let stored = quarantinedPath.map { shellQuoted($0) } ?? "ID"
        lines += SalvageAccountText(salvage, of: stored + home.optionBesidesStore, below: event.words).text
      }
    }
    switch kit {
    case .noted(let event): lines += "\n  \(event.words)\n    \(printable(event.path.text))\n"
    case .failed(let error): lines += "\n  No recovery kit could be noted: \(error.detail).\n"
    case .notDue, nil: break
    }
    if let notice { lines += "\n  For the app's user:\n    \(notice.title)\n    \(notice.message)\n" }
    lines += "\n  The store is open: \(printable(store.path.string))\n"
    return lines
  }

  private static func text(_ repair: RepairAccount) -> String {
    (repair.changes.map(\.text) + repair.leftOut.map(\.text)).map { "    \($0)\n" }.joined()
  }

  private static func text(_ migration: OpeningMigration) -> String {
    var lines = ""
    for step in migration.steps {
      lines += "    \(printable(step.step)): \(counted(step.rows, "record")), \(step.way.rawValue)\n"
    }
    for loss in migration.losses {
      let count = loss.rows.map { counted($0, "record") } ?? "an unknown number of records"
      lines += "    lost: \(printable(loss.text)) (\(count))\n"
    }
    return lines
  }
}

/// A progress line for an opening, with migration or repair.
final class OpeningLine: Sendable {
  private let line = ProgressLine()
  private let steps: StepProgress

  init(_ store: FilePath) { steps = StepProgress(of: store, to: nil) }

  func show(_ progress: OpeningProgress) {
    guard let step = progress.step else { return line.show(progress) }
    steps.begin(
      progress.phase == .repairing
        ? "Repairing" : "Migrating \(printable(step)) (\(progress.completed + 1) of \(progress.total))")
  }

  func look() { steps.look() }

  func clear() { line.clear() }
}

extension ProgressLine {
  func show(_ progress: OpeningProgress) {
    let work: (words: String, unit: ProgressUnit)
    switch progress.phase {
    case .quarantining: work = ("Quarantining", .bytes)
    case .salvaging: work = ("Salvaging", .shares)
    case .installing: work = ("Installing", .bytes)
    case .examining where progress.total > 0: work = ("Checking", .things("pages"))
    case .examining, .creating, .repairing, .migrating, .opening: return
    }
    show(work.words, progress.completed, of: progress.total, work.unit, secondsLeft: progress.secondsLeft)
  }
}

extension OpeningPolicy.Remedy: ExpressibleByArgument {
  /// Parses the short words of the command line, or the library's own.
  public init?(argument: String) {
    switch argument {
    case "later": self = .salvageLater
    case "replace": self = .emptyStore
    default: self.init(rawValue: argument)
    }
  }

  /// The values listed in help and errors.
  public static var allValueStrings: [String] { ["salvage", "later", "replace", "refuse"] }
}

extension OpeningPolicy.RepairRule: ExpressibleByArgument {}

extension Examination.Depth: ExpressibleByArgument {}
