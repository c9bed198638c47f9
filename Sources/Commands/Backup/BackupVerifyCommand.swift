import ArgumentParser
import Backup
import Lazaret
import ObjectStorage
import Platform
import SystemPackage

struct BackupVerifyCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "verify", abstract: "Verifies that backups can be restored.",
    usage: "lazaret backup verify [<id>] [--of <store>] [--home <dir>] [--budget <time>] [<options>]",
    discussion: """
      Reads every file of each backup and compares its digest; then restores the backup into a file without a name, opens it, \
      checks its pages and indexes and counts its records. The result is kept beside the backup. With a model the restored \
      store is migrated to its current version too. Those verified longest ago come first.

      Damage is named with its file. Hashes of pages, recovery kits and manifests that have a copy are made anew where they \
      are damaged. A backup that another process removes meanwhile is left out.

      Of an encrypted backup the digests of its files are compared; with --identity it is restored and checked as any other.

      Exits with 2 where a backup fails, where it is the evidence of a damaged store, where large values that its records refer to are not in it, or nothing certain can \
      be said.
      """, examples: "lazaret backup verify --of Stores/App.sqlite --budget 2m")

  @Argument(help: "The backup; all of the home, or of the store given with --of, without it.")
  var id: String?

  @Option(help: .text("Only backups of this store.", "store")) var of: PathArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var storage: StorageOptions
  @OptionGroup var identity: BackupIdentityOptions

  @Flag(help: "Only read the files and compare their digests; restore nothing.") var quick = false

  @Option(
    help: .text(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, or a store that carries it.", "model"))
  var migrate: PathArgument?

  @Option(help: .text("How long to go on, such as 90s, 2m or 1h.", "time")) var budget: TimeSpan?

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
    var warnings: [BackupProof.Problem]
  }

  fileprivate struct Report: Encodable {
    var backups: [Result] = []
    var warnings: [BackupProof.Problem] = []
    var proven = 0
    var evidence = 0
    var failed = 0
    var inconclusive = 0
    var notReached = 0
    var removedMeanwhile = 0
  }

  func perform() throws {
    let line = ProgressLine()
    var options = BackupProver.Options { phase, done, total in
      line.show(phase.words, done, of: total, .bytes)
      return true
    }
    options.depth = quick ? .files : migrate == nil ? .restored : .migrated
    options.model = try migrate.map { try LoadedModel.load($0.path, json: output.json) }
    options.deadline = budget.map { ContinuousClock.now + $0.duration }
    let source = try ChosenBackups(of: of?.path, home, storage, identity, to: "verify the backups")
    var report = Report()
    for case let place as FolderPlace in try source.places() where try place.hasUnreadableNote() {
      report.warn(of: place)
    }
    for (place, catalog, backup) in try chosen(source) {
      if let deadline = options.deadline, ContinuousClock.now > deadline {
        report.notReached += 1
        continue
      }
      let proof: BackupProof
      do {
        proof = try BackupProver(surroundings: .machine).prove(backup.id, in: catalog, options)
      } catch {
        let error = BackupError(any: error)
        line.clear()
        // A backup selected by name must exist.
        guard error.kind == .notFound, id == nil else { throw error }
        report.removedMeanwhile += 1
        continue
      }
      line.clear()
      report.add(proof, place)
      if !output.json { Terminal.standardOutput.write(Self.text(proof, place)) }
    }
    try output.print(report, report.text(source))
    if report.failed + report.inconclusive + report.evidence > 0 || report.isValueMissing { throw ExitStatus.doubtful }
  }

  /// Returns the backups to verify, longest unverified first.
  private func chosen(_ source: ChosenBackups) throws -> [(any BackupPlace, BackupCatalog, StoredBackup)] {
    var all: [(place: any BackupPlace, catalog: BackupCatalog, backup: StoredBackup)] = []
    for place in try source.places() {
      let catalog = try BackupCatalog(of: place)
      all += catalog.backups.map { (place, catalog, $0) }
    }
    if let id = id.flatMap({ BackupIdentifier($0) }) {
      all = all.filter { $0.backup.id == id }
      if source.storage != nil, all.isEmpty, let place = try source.places().first {
        _ = try BackupCatalog(of: place).backup(id)
      }
      // Throws for a missing or ambiguous one.
      if all.isEmpty || all.count > 1 {
        let found = try source.home.finding(backup: id) { try source.backups.find(id) }
        if all.isEmpty { throw BackupError.ofOtherStore(found.backup) }
      }
    }
    let order = BackupProver.order(all.map(\.backup))
    var places = Dictionary(grouping: all.indices) { all[$0].backup }
    return order.compactMap { backup in places[backup]?.popLast().map { all[$0] } }
  }

  private static func text(_ proof: BackupProof, _ place: any BackupPlace) -> String {
    // Do not claim a restore that was not done.
    let extent = proof.depth == .files && proof.result == .proven ? " (digests of its files only)" : ""
    let result = proof.isOfEvidence ? "evidence" : proof.result == .proven ? "verified" : proof.result.rawValue
    var text = "\(proof.id)  \(printable(place.name))  \(result)\(extent)\n"
    for problem in proof.problems { text += "  \(printable(problem.words))\n" }
    for warning in proof.warnings ?? [] { text += "  warning: \(printable(warning.words))\n" }
    return text
  }
}

extension BackupVerifyCommand.Report {
  /// Whether a verified backup lacks external data of its records.
  fileprivate var isValueMissing: Bool {
    let code = StoredBackup.Problem.Code.largeValueMissing.rawValue
    return backups.contains { $0.warnings.contains { $0.code == code } }
  }

  fileprivate mutating func warn(of place: FolderPlace) {
    let folder = printable(place.path.lastComponent?.string ?? "")
    let words = "store.json of \(folder) is not what was written, and counts as none; the next backup writes it anew"
    guard !warnings.contains(where: { $0.words == words }) else { return }
    warnings.append(.init(code: "note-unreadable", words: words, file: "store.json"))
  }

  fileprivate mutating func add(_ proof: BackupProof, _ place: any BackupPlace) {
    backups.append(
      .init(
        id: proof.id.description, store: place.name, result: proof.isOfEvidence ? "evidence" : proof.result.rawValue,
        depth: proof.depth.rawValue, date: proof.date, problems: proof.problems, warnings: proof.warnings ?? []))
    switch proof.result {
    case .proven where proof.isOfEvidence: evidence += 1
    case .proven: proven += 1
    case .failed: failed += 1
    case .inconclusive: inconclusive += 1
    }
  }

  fileprivate func text(_ source: ChosenBackups) -> String {
    if backups.isEmpty, notReached == 0, removedMeanwhile == 0 { return source.emptyWords() }
    var text = warnings.map { "warning: \($0.words)\n" }.joined()
    let compared = backups.count {
      $0.result == BackupProof.Result.proven.rawValue && $0.depth == BackupProof.Depth.files.rawValue
    }
    text += "\(grouped(proven - compared)) verified, "
    if compared > 0 { text += "\(grouped(compared)) with right digests and not restored, " }
    if evidence > 0 { text += "\(grouped(evidence)) of damaged stores, " }
    text += "\(grouped(failed)) failed, \(grouped(inconclusive)) inconclusive"
    if removedMeanwhile > 0 { text += ", \(removedMeanwhile) removed meanwhile by another process" }
    if notReached > 0 { text += ", \(notReached) not reached in time" }
    return text + "\n"
  }
}

struct TimeSpan: ExpressibleByArgument {
  var duration: Duration

  init?(argument: String) {
    guard let unit = argument.last, let number = Int64(argument.dropLast()), number > 0, number < 1_000_000 else {
      return nil
    }
    switch unit {
    case "s": duration = .seconds(number)
    case "m": duration = .seconds(number * 60)
    case "h": duration = .seconds(number * 3600)
    case "d": duration = .seconds(number * 86400)
    default: return nil
    }
  }
}
