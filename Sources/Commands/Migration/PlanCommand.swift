import ArgumentParser
import Foundation
import Logging
import ManagedObjectModel
import Migration
import Platform
import SQLiteFormat

struct PlanCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Says what a migration would do to a store, step by step, and what it would lose.",
    usage: "lazaret plan <store> --model <model> [--all] [<options>]",
    discussion: """
      Touches nothing: no byte of the store changes, and no file appears beside it. Records are counted in the store as \
      it is. Where that does not tell what a step comes to (a mapping's expressions, records that an earlier step makes), \
      the steps are tried on a private copy among the temporary files, which takes as long as the migration.

      EXAMPLE
        lazaret plan Stores/App.sqlite --model App.xcdatamodeld

      EXIT CODES
        0   the migration would lose nothing, or there is nothing to do
        1   failed
        2   it would lose more than the model drops, could not be done, or that
            is not known; the output says what
        3   the store is unavailable: locked, forbidden, newer than the app
        64  the command line was wrong
      """)

  @OptionGroup var migration: MigrationArguments

  @Flag(help: "Print everything: each entity of each step, and every finding.")
  var all = false

  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func run() throws {
    try report(json: output.json) {
      let bundle = try migration.bundle(json: output.json)
      let line = ProgressLine()
      line.show("Looking at the store, and trying each step on a copy …")
      let plan = try migration.finding(in: bundle) {
        try Migrator(bundle, logger: log.logger(json: output.json)).plan(
          migration.store.path, options: try migration.options(for: bundle))
      }
      line.clear()
      try plan.print(
        json: output.json, isWhole: all || output.verbose,
        planned: PlannedRemovals(bundle, target: migration.to, migration.way))
    }
  }
}

extension MigrationPlan {
  /// Prints the plan.
  ///
  /// - Throws: exit code 2 if it has an unplanned loss, cannot be carried out or this is unknown.
  func print(json: Bool, isWhole: Bool, planned: PlannedRemovals) throws {
    var plan = self
    for place in refusals.indices { plan.refusals[place].wayRound = OptionHints.worded(refusals[place].wayRound) }
    Terminal.standardOutput.write(
      try json ? JSON.shown(plan) : MigrationPlanText(plan, isWhole: isWhole, planned: planned).text)
    guard isPossible, isCertain, losses.allSatisfy(planned.contains), steps.allSatisfy(\.leftBehind.isEmpty) else {
      throw ExitStatus.doubtful
    }
  }
}

struct LogOptions: ParsableArguments {
  enum Level: String, CaseIterable, ExpressibleByArgument {
    case trace, debug, info, notice, warning, error, critical
  }

  @Option(
    name: .customLong("log-level"),
    help: ArgumentHelp(
      "Print on standard error what is done: trace, debug, info, notice, warning, error or critical. At debug every SQL statement, without values.",
      valueName: "level"))
  var level: Level?

  /// Makes the logger; silent without a level or `--verbose`.
  ///
  /// - Parameter json: whether to log JSON lines.
  func logger(json: Bool) -> Logger {
    let told = level ?? (TextStyle.current.isVerbose ? .info : nil)
    guard let told, let threshold = Logger.Level(rawValue: told.rawValue) else {
      return Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
    }
    return Logger(label: "lazaret") { _ in StandardErrorLog(level: threshold, json: json) }
  }
}

struct MigrationArguments: ParsableArguments {
  @Argument(help: "The store's main file.")
  var store: PathArgument

  @OptionGroup var model: ModelOption

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(
    help: ArgumentHelp(
      "The version to lead to, which may be an older one; the current one if not given.", valueName: "version"))
  var to: String?

  @OptionGroup var way: MigrationWayOptions

  func bundle(json: Bool) throws -> ModelBundle { try versionOrder.load(model.path, to: to, json: json) }

  /// Runs `body`; the error for an unknown version suggests the closest one.
  func finding<Result>(in bundle: ModelBundle, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch var error as MigrationError where error.kind == .unknownVersion {
      let names = (bundle.versions + bundle.unorderedVersions).map { printable($0.name) }
      error.hint = Likeness.hint(error.hint, for: [to].compactMap(\.self) + way.via, among: names)
      throw error
    }
  }

  func options(for bundle: ModelBundle) throws -> Migrator.Options {
    var options = try way.options(for: bundle)
    options.version = to
    return options
  }
}

struct StandardErrorLog: LogHandler {
  var logLevel: Logger.Level
  var metadata: Logger.Metadata = [:]
  private let json: Bool

  init(level: Logger.Level, json: Bool) {
    logLevel = level
    self.json = json
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var metadata = metadata
    if let more = event.metadata { metadata.merge(more) { _, new in new } }
    let texts = metadata.mapValues { "\($0)" }
    if json {
      let texts = texts.sorted { $0.key < $1.key }.map { JSON.Value.Member($0.key, .string($0.value)) }
      let entry: JSON.Value = [
        "level": .string(event.level.rawValue), "message": .string("\(event.message)"), "metadata": .object(texts),
      ]
      Terminal.standardError.write(JSON.Value.members(("log", entry)).text + "\n")
    } else {
      let facts = texts.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
      Terminal.standardError.write("\(event.level.rawValue): \(event.message)\(facts)\n")
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
    let isUsual = target == nil && way.via.isEmpty && way.lossRemedy == .refuse
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
      let last = order.lastIndex(where: { Self.has(name, loss.entity, $0) }), last < current
    else { return false }
    return !(bundle.versions + bundle.unorderedVersions).contains { version in
      version.model.properties(of: loss.entity).contains { property, inherited in
        property != name && inherited.property.traits.renamingIdentifier == name
      }
    }
  }

  private static func has(_ property: String, _ entity: String, _ version: ModelVersion) -> Bool {
    version.model.properties(of: entity)[property] != nil
  }
}
