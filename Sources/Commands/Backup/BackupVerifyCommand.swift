import ArgumentParser
import Lazaret

/// `lazaret backup verify`.
struct BackupVerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Proves that backups can be restored.",
    usage: "lazaret backup verify [<id>] [--of <store>] [--home <dir>] [--budget <time>] [<options>]",
    discussion: """
      Restores each backup into a private folder, opens it, checks its pages and counts its records; the result is kept \
      beside the backup. With a model the restored store is migrated to its current version too. Those proven longest ago \
      come first.

      Exits with 2 where a backup fails, or nothing certain can be said.

      EXAMPLE
        lazaret backup verify --home /data --budget 2m

      \(ExitStatus.help)
      """)

  @Argument(help: "The backup; all of the home, or of the store given with --of, without it.")
  var id: String?

  @Option(help: ArgumentHelp("Only backups of this store.", valueName: "store"))
  var of: PathArgument?

  @OptionGroup var home: HomeOptions

  @Flag(help: "Only read the files and compare their digests; restore nothing.")
  var quick = false

  @Option(
    help: ArgumentHelp(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, or a store that carries it.",
      valueName: "model"))
  var migrate: PathArgument?

  @Option(help: ArgumentHelp("How long to go on, such as 90s, 2m or 1h.", valueName: "time"))
  var budget: TimeSpan?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard !(quick && migrate != nil) else { throw ValidationError("--quick restores nothing that could be migrated.") }
    if let id, BackupIdentifier(id) == nil { throw ValidationError("\(id) is not the id of a backup.") }
  }

  fileprivate struct Result: Encodable {
    var id: String
    var store: String
    var result: String
    var depth: String
    var date: String
    var problems: [BackupProof.Problem]
  }

  fileprivate struct Report: Encodable {
    var backups: [Result] = []
    var proven = 0
    var failed = 0
    var inconclusive = 0
    var notReached = 0
  }

  func run() throws {
    try report(json: output.json) {
      let line = ProgressLine()
      var options = BackupProver.Options { phase, done, total in
        line.show(phase.words, done, of: total)
        return true
      }
      options.depth = quick ? .files : migrate == nil ? .restored : .migrated
      options.model = try migrate.map { try LoadedModel.load($0.path, json: output.json) }
      options.deadline = budget.map { ContinuousClock.now + $0.duration }
      let home = try (of.map { self.home.of(store: $0.path) } ?? self.home.current()).existing(to: "verify the backups")
      home.tell(json: output.json)
      let backups = Backups(home: home.path)
      var report = Report()
      for (place, backup) in try chosen(backups, in: home) {
        if let deadline = options.deadline, ContinuousClock.now > deadline {
          report.notReached += 1
          continue
        }
        let proof = try backups.prove(backup.id, in: place, options)
        line.clear()
        report.add(proof, place)
        if !output.json { Terminal.standardOutput.write(Self.text(proof, place)) }
      }
      if output.json {
        Terminal.standardOutput.write(JSONText.pretty(home.told(report)))
      } else {
        Terminal.standardOutput.write(report.text(home))
      }
      if report.failed + report.inconclusive > 0 { throw ExitStatus.doubtful }
    }
  }

  /// The backups to prove, those proven longest ago first.
  private func chosen(_ backups: Backups, in home: ChosenHome) throws -> [(FolderPlace, StoredBackup)] {
    let places = try of.map { [backups.place(of: $0.path)] } ?? backups.places()
    var all: [(FolderPlace, StoredBackup)] = []
    for place in places { all += try BackupCatalog(of: place).backups.map { (place, $0) } }
    if let id = id.flatMap({ BackupIdentifier($0) }) {
      all = all.filter { $0.1.id == id }
      // Tells what is not there, or is there twice.
      if all.isEmpty || all.count > 1 { _ = try home.finding(backup: id) { try backups.find(id) } }
    }
    let order = BackupProver.order(all.map(\.1))
    var rest = all
    return order.compactMap { backup in
      rest.firstIndex { $0.1 == backup }.map { rest.remove(at: $0) }
    }
  }

  private static func text(_ proof: BackupProof, _ place: FolderPlace) -> String {
    var text = "\(proof.id)  \(printable(place.path.lastComponent?.string ?? ""))  \(proof.result.rawValue)\n"
    for problem in proof.problems { text += "  \(printable(problem.words))\n" }
    return text
  }
}

extension BackupVerifyCommand.Report {
  fileprivate mutating func add(_ proof: BackupProof, _ place: FolderPlace) {
    backups.append(
      .init(
        id: proof.id.description, store: place.path.lastComponent?.string ?? "", result: proof.result.rawValue,
        depth: proof.depth.rawValue, date: proof.date, problems: proof.problems))
    switch proof.result {
    case .proven: proven += 1
    case .failed: failed += 1
    case .inconclusive: inconclusive += 1
    }
  }

  fileprivate func text(_ home: ChosenHome) -> String {
    if backups.isEmpty, notReached == 0 { return "No backup lies in the home: \(home.words). \(ChosenHome.another)\n" }
    var text = "\(proven) proven, \(failed) failed, \(inconclusive) inconclusive"
    if notReached > 0 { text += ", \(notReached) not reached in time" }
    return text + "\n"
  }
}
