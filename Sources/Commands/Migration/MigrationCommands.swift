import ArgumentParser
import Lazaret
import ManagedObjectModel
import Migration
import Platform
import SQLiteFormat
import SystemPackage

struct MigrateCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "migrate", abstract: "Brings a store to the current version of the model, on a copy, verified.",
    usage: "lazaret migrate <store> --model <model> [--output <file>] [<options>]",
    discussion: """
      The original is not touched until the migrated copy has passed every check; then it is moved, whole, into \
      Backups/ under the home folder. A migration that was interrupted, also by Ctrl-C, goes on from its last finished step.
      """, examples: "lazaret migrate Stores/App.sqlite --model App.xcdatamodeld",
    "lazaret migrate Old.sqlite --model App.xcdatamodeld --output New.sqlite",
    exitCodes: ExitStatus.codes(
      done: "done, or nothing to do", failed: "failed, or cannot be done; the store is as it was",
      doubtful: "done, but more was lost than the model drops; the output says what"))

  @OptionGroup var migration: MigrationArguments

  @Option(name: .output, help: .text("Write the migrated store here and leave the original where it is.", "file"))
  var out: PathArgument?

  @Flag(help: "Say what would be done, as plan does, and touch nothing.") var dryRun = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func validate() throws { try out?.requirePlace() }

  func perform() throws {
    try refuseNoStore(at: migration.store.path, to: "migrate the store")
    let bundle = try migration.bundle(json: output.json)
    var migrator = Migrator(bundle, logger: log.logger(json: output.json))
    migrator.keepOriginals()
    let planned = PlannedRemovals(bundle, target: migration.to, migration.way)
    var options = try migration.options(for: bundle)
    options.output = out?.path
    let home = home.of(store: migration.store.path)
    options.home = home.path
    // A copy for another user leaves no file beside the store.
    options.isRecorded = out == nil || home.reason != .store
    if dryRun {
      return try migration.finding(in: bundle) { try migrator.plan(migration.store.path, options: options) }.print(
        output, isWhole: output.verbose, planned: planned)
    }
    let line = StepProgress(of: migration.store.path, to: out?.path)
    line.watch(&options) { step, number, count in "Step \(number) of \(count): \(printable(step))" }
    let result = try migration.finding(in: bundle) { try migrator.migrate(migration.store.path, options: options) }
    line.clear()
    try output.print(result, result.text)
    if result.steps.contains(where: {
      !$0.losses.allSatisfy(planned.contains) || !$0.leftBehind.isEmpty || !$0.filteredRows.isEmpty
    }) {
      throw ExitStatus.doubtful
    }
  }
}

extension Migrator.Result {
  fileprivate var text: String {
    var lines = "\(printable(store.string)): "
    if let repair {
      lines += repair.isNothing ? "" : "repaired (\(repair.words) added)\(steps.isEmpty ? "" : ", ")"
    }
    guard !steps.isEmpty else {
      if repair != nil {
        return lines + "\n" + (backup.map { "\n  The original: \(printable($0.string))\n" } ?? "")
      }
      let outcome =
        backup == nil
        ? "of that version already; there was nothing to migrate" : "an interrupted migration was finished"
      return lines + outcome + "\n"
    }
    lines += "migrated in \(counted(Int64(steps.count), "step"))"
    if resumedSteps > 0 { lines += ", \(resumedSteps) of them by an earlier run" }
    lines += "\n"
    for step in steps {
      let rows = step.entities.reduce(0) { $0 + $1.rows }
      lines += "\n  \(printable(step.step)): \(counted(Int64(rows), "record"))\n"
      lines += MigrationPlanText.list("Lost", step.losses)
      for name in step.leftBehind { lines += "    Left behind, since it no longer fits: \(printable(name))\n" }
    }
    if let metrics { lines += "\n  \(printable(metrics.words))\n" }
    if let backup { lines += "\n  The original: \(printable(backup.string))\n" }
    return lines
  }
}

struct PlanCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "plan", abstract: "Says what a migration would do to a store, step by step, and what it would lose.",
    usage: "lazaret plan <store> --model <model> [--all] [<options>]",
    discussion: """
      Touches nothing: no byte of the store changes, and no file appears beside it. Records are counted in the store as \
      it is. Where that does not tell what a step comes to (a mapping's expressions, records that an earlier step makes), \
      the steps are tried on a private copy among the temporary files, which takes as long as the migration.
      """, examples: "lazaret plan Stores/App.sqlite --model App.xcdatamodeld",
    exitCodes: ExitStatus.codes(
      done: "the migration would lose nothing, or there is nothing to do",
      doubtful: "it would lose more than the model drops, could not be done, or that\n"
        + "      is not known; the output says what",
      unavailable: "the store is unavailable: locked, forbidden, newer than the app"))

  @OptionGroup var migration: MigrationArguments

  @Flag(help: "Print everything: each entity of each step, and every finding.") var all = false

  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func perform() throws {
    let bundle = try migration.bundle(json: output.json)
    let line = ProgressLine()
    line.show("Looking at the store, and trying each step on a copy …")
    let plan = try migration.finding(in: bundle) {
      try Migrator(bundle, logger: log.logger(json: output.json)).plan(
        migration.store.path, options: try migration.options(for: bundle))
    }
    line.clear()
    try plan.print(
      output, isWhole: all || output.verbose, planned: PlannedRemovals(bundle, target: migration.to, migration.way))
  }
}

extension MigrationPlan {
  /// Prints the plan.
  ///
  /// - Throws: exit code 2 if it has an unplanned loss, cannot be carried out or this is unknown.
  func print(_ output: OutputOptions, isWhole: Bool, planned: PlannedRemovals) throws {
    var plan = self
    for place in refusals.indices { plan.refusals[place].wayRound = OptionHints.worded(refusals[place].wayRound) }
    try output.print(plan, MigrationPlanText(plan: plan, isWhole: isWhole, planned: planned).text)
    guard isPossible, isCertain, losses.allSatisfy(planned.contains), steps.allSatisfy(\.leftBehind.isEmpty) else {
      throw ExitStatus.doubtful
    }
  }
}

/// The properties that a model's versions deliberately drop; a migration to the current version reports their deletion
/// as planned.
///
/// A property counts if it disappears for good and no later one has a renaming identifier that leads to it. A loss of
/// any other request (an older version, given versions, accepted losses) is never planned.
struct PlannedRemovals {
  private let bundle: ModelBundle?

  /// - Parameters:
  ///   - target: the requested version; nil for the current one.
  init(_ bundle: ModelBundle?, target: String? = nil, _ way: MigrationWayOptions) {
    let isUsual = target == nil && way.via.isEmpty && way.onMigrationLoss == .refuse
    self.bundle = isUsual ? bundle : nil
  }

  func contains(_ loss: MigrationPlan.Finding) -> Bool {
    let kinds: [MigrationLoss.Kind] = [.removedAttribute, .removedRelationship]
    guard let bundle, let name = loss.property, kinds.contains(where: { $0.rawValue == loss.kind }),
      let current = bundle.versions.firstIndex(where: { $0.name == bundle.current.name })
    else { return false }
    // Skip entities renamed in some version: uncertain is not planned.
    let order = bundle.versions[...current]
    guard order.allSatisfy({ $0.model.entity(named: loss.entity) != nil }),
      let last = order.lastIndex(where: { $0.model.properties(of: loss.entity)[name] != nil }), last < current
    else { return false }
    return !(bundle.versions + bundle.unorderedVersions).contains { version in
      version.model.properties(of: loss.entity).contains { property, inherited in
        property != name && inherited.property.traits.renamingIdentifier == name
      }
    }
  }
}

/// A plan for a terminal: losses first, then a line a step, or everything.
struct MigrationPlanText {
  let plan: MigrationPlan
  let isWhole: Bool
  let planned: PlannedRemovals

  /// The most lines of a kind, to fit a screen.
  private static let limit = 8

  private typealias Losses = [(step: MigrationPlan.Step, found: MigrationPlan.Finding)]

  private func losses(arePlanned: Bool) -> Losses {
    plan.steps.flatMap { step in step.losses.filter { planned.contains($0) == arePlanned }.map { (step, $0) } }
  }

  var text: String {
    var lines = "\(printable(plan.store.text)): \(verdict)\n"
    for refusal in plan.refusals {
      let place = refusal.step.map { "step \(printable($0)): " } ?? ""
      lines += "\n  Refused: \(place)\(printable(refusal.detail))\n"
      if refusal.isOfCoreData {
        lines += "    Core Data says: \(printable(refusal.reason)) (\(refusal.coreDataCode))\n"
      }
      lines += "    Way round: \(printable(refusal.wayRound))\n"
    }
    lines += list("Would fail", plan.steps.flatMap { step in step.failures.map { (step, $0) } })
    lines += list("Would be lost", losses(arePlanned: false))
    lines += list("Would be deleted, because the model drops it", losses(arePlanned: true))
    lines += block(
      "Left behind, since it no longer fits", plan.steps.flatMap { step in step.leftBehind.map { printable($0) } })
    lines += list(
      "Could fail, which only running it tells", plan.steps.flatMap { step in step.uncertain.map { (step, $0) } })
    lines += block(
      "Not known, since only running it tells what it makes",
      plan.steps.flatMap { step in step.code.map { "\(printable(step.name)): \($0)" } })
    if let repair = plan.repair {
      lines += block(
        "Repaired first, because it lacks something of its own model",
        repair.changes.map(\.text) + repair.leftOut.map(\.text))
    }
    lines += steps
    for detour in plan.detours { lines += text(of: detour) }
    lines += block("Renamed from version to version, and carried on", plan.carriedRenames.map { printable($0) })
    if plan.isNeeded {
      lines += "\n  Needs \(readableSize(plan.neededBytes)) of free space beside the store; "
      lines += "\(readableSize(plan.freeBytes)) are free.\n"
    }
    lines += block("Not used", plan.unusedMappings.map { printable($0) })
    if plan.isInterrupted { lines += "\n  An earlier migration was interrupted; the next one goes on from there.\n" }
    return lines + "\n  Nothing was touched.\n"
  }

  private var steps: String {
    guard !plan.steps.isEmpty else { return "" }
    if isWhole { return zip(1..., plan.steps).map { "\n" + text(of: $1, $0) }.joined() }
    return block("Steps", plan.steps.map(Self.line))
  }

  /// Summarizes a step: versions, mapping, method and changes.
  private static func line(of step: MigrationPlan.Step) -> String {
    var counts: [String] = []
    for way in [EntityWay.removed, .added, .custom, .rebuilt, .inPlace, .renamed] {
      let names = step.entities.filter { $0.way == way }.compactMap { $0.destination ?? $0.source }.map {
        printable($0)
      }
      guard !names.isEmpty else { continue }
      counts.append(
        "\(names.count <= 3 ? names.joined(separator: ", ") : counted(names.count, "entity", "entities")) \(way.rawValue)"
      )
    }
    let how = step.way == .inPlace ? "added and renamed in a copy" : "rebuilt in a new file"
    return "\(printable(step.name)), \(words(for: step.mapping)), \(how)"
      + (counts.isEmpty ? "" : ": \(counts.joined(separator: "; "))")
  }

  private func text(of detour: MigrationPlan.Detour) -> String {
    var lines = block(
      "Goes by versions between, since \(printable(detour.step)) cannot be inferred",
      detour.refusals.map { printable($0.detail) })
    guard isWhole else { return lines }
    if detour.losses.isEmpty {
      lines += "    In one step nothing else would have been lost.\n"
    } else {
      lines += "    In one step this would have been lost:\n"
      for loss in detour.losses { lines += "      \(printable(loss))\n" }
    }
    return lines
  }

  private func list(_ title: String, _ findings: [(step: MigrationPlan.Step, found: MigrationPlan.Finding)]) -> String {
    block(title, findings.map { "\(printable($0.step.name)): \(Self.words(for: $0.found))" })
  }

  private func block(_ title: String, _ lines: [String]) -> String {
    guard !lines.isEmpty else { return "" }
    // A line about one omitted line would take as much room.
    let shown = isWhole || lines.count <= Self.limit + 1 ? lines[...] : lines.prefix(Self.limit)
    var text = "\n  \(title):\n" + shown.map { "    \($0)\n" }.joined()
    if shown.count < lines.count {
      text += "    … and \(grouped(lines.count - shown.count)) more; --verbose names them\n"
    }
    return text
  }

  private var verdict: String {
    let way = "\(printable(plan.from ?? "a model of its own")) → \(printable(plan.to))"
    guard plan.refusals.isEmpty else { return "\(way), which cannot be done" }
    guard !plan.steps.isEmpty else { return "of version \(printable(plan.to)) already" }
    return "\(way) in \(counted(Int64(plan.steps.count), "step")), \(counted(Int64(plan.rows), "record"))"
      + ", \(readableSize(plan.bytes))" + outcome
  }

  private var outcome: String {
    var parts: [String] = []
    if plan.freeBytes < plan.neededBytes { parts.append("the disk is too full") }
    if !plan.failures.isEmpty { parts.append("it would fail") }
    if !losses(arePlanned: false).isEmpty {
      parts.append("something is lost")
    } else if !plan.losses.isEmpty, plan.failures.isEmpty {
      parts.append("only what the model drops is deleted")
    }
    if parts.isEmpty { parts.append(plan.isCertain ? "nothing is lost" : "not everything is known before it runs") }
    return "; " + parts.joined(separator: ", ")
  }

  private func text(of step: MigrationPlan.Step, _ number: Int) -> String {
    var lines = "  Step \(number) of \(plan.steps.count): \(printable(step.name)), \(Self.words(for: step.mapping)), "
    lines += step.way == .inPlace ? "added and renamed in a copy\n" : "rebuilt in a new file\n"
    if let reason = step.reason { lines += "    because \(printable(reason))\n" }
    for other in step.alternatives { lines += "    not chosen: \(Self.words(for: other))\n" }
    var table = TextTable(["entity", "becomes", "how", "records"], numericColumns: [3])
    for entity in step.entities {
      table.append(
        entity.source.map { printable($0) } ?? "–", entity.destination.map { printable($0) } ?? "–",
        entity.way.rawValue + (entity.policy.map { " (\(printable($0)))" } ?? ""),
        entity.rows.map { grouped($0) } ?? "?")
    }
    lines += table.text(indent: "    ")
    return lines
  }

  private static func words(for mapping: MigrationPlan.Mapping) -> String {
    switch mapping.kind {
    case .inferred: "inferred"
    case .code, .mappingFile, .mappingModel: "by \(printable(mapping.path?.text ?? mapping.name ?? "a mapping"))"
    }
  }

  static func list(_ title: String, _ findings: [MigrationPlan.Finding]) -> String {
    guard !findings.isEmpty else { return "" }
    return "    \(title):\n"
      + findings.map { "      \(words(for: $0))\n" }.joined()
  }

  private static func words(for finding: MigrationPlan.Finding) -> String {
    // The message of a failed trial step has its count; otherwise none was counted.
    let isTold = finding.kind.hasPrefix("migration-") || finding.kind == MigrationPlan.Finding.notTried
    guard finding.rows != nil || !isTold else { return printable(finding.text) }
    var count = finding.rows.map { counted(Int64($0), "record") } ?? "how many is known only once it runs"
    if !finding.examples.isEmpty {
      count += ": " + finding.examples.map { "\($0)" }.joined(separator: ", ")
      if finding.examples.count != finding.rows { count += " …" }
    }
    return "\(printable(finding.text)) (\(count))"
  }
}
