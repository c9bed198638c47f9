internal import GRDB
internal import Logging
internal import Platform
internal import SystemPackage

/// A migration's events for log, report and metrics.
///
/// It is task-local, so work on own threads is not traced.
final class MigrationTrace: Sendable {
  @TaskLocal static var current: MigrationTrace?

  private struct State {
    var from: String?
    var to: String?
    var steps: [MigrationReport.Step] = []
    var neededBytes: Int64?
    var stepBegun: ContinuousClock.Instant?
    var statements = 0
  }

  let logger: Logger
  private let begun = ContinuousClock.now
  private let state = Mutex(State())

  /// Nil if it can't be cancelled.
  let isCancelled: (@Sendable () -> Bool)?

  init(_ logger: Logger, isCancelled: (@Sendable () -> Bool)? = nil) {
    self.logger = logger
    self.isCancelled = isCancelled
  }

  var seconds: Double { Self.seconds(since: begun) }

  private static func seconds(since start: ContinuousClock.Instant) -> Double {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }

  // MARK: Events

  func plan(_ journal: MigrationJournal, _ path: MigrationPath) {
    let mappings = Dictionary(
      path.steps.map { ($0.name, Self.name(of: $0.mapping)) }, uniquingKeysWith: { first, _ in first })
    state.withLock { state in
      state.from = journal.steps.first?.source
      if state.from?.isEmpty == true { state.from = nil }
      state.to = journal.steps.last?.destination
      state.steps = journal.steps.map { step in
        let name = step.name
        return MigrationReport.Step(
          name: name, mapping: mappings[name] ?? nil, state: step.file == nil ? .waiting : .finished,
          account: step.account)
      }
    }
    logger.info(
      "migration planned",
      metadata: [
        "steps": "\(journal.steps.count)", "finished": "\(journal.finished)",
        "way": "\(journal.steps.map(\.name).joined(separator: ", "))",
      ])
  }

  private static func name(of mapping: MappingModel) -> String? {
    mapping.origin == .inferred ? nil : mapping.name ?? mapping.origin.path?.lastComponent?.string ?? "custom"
  }

  func begin(_ step: MigrationStep, number: Int) {
    begin(named: step.name, number: number)
    guard logger.logLevel <= .debug else { return }
    for mapping in step.mapping.entityMappings { log(mapping) }
  }

  func begin(named name: String, number: Int) {
    state.withLock { state in
      state.stepBegun = .now
      if state.steps.indices.contains(number - 1) { state.steps[number - 1].state = .begun }
    }
    logger.info("step begins", metadata: ["step": "\(printable(name))", "number": "\(number)"])
  }

  private func log(_ mapping: EntityMapping) {
    logger.debug(
      "entity mapping",
      metadata: [
        "name": "\(printable(mapping.name))", "kind": "\(mapping.kind)",
        "source": "\(printable(mapping.sourceEntityName ?? "-"))",
        "destination": "\(printable(mapping.destinationEntityName ?? "-"))",
        "policy": "\(printable(mapping.policyClassName ?? "-"))",
      ])
    guard logger.logLevel <= .trace else { return }
    for property in mapping.propertyMappings {
      logger.trace(
        "property mapping",
        metadata: [
          "entity": "\(printable(mapping.destinationEntityName ?? "-"))",
          "property": "\(printable(property.destination.description))", "value": "\(property.value.word)",
          "source": "\(printable(property.source?.description ?? "-"))",
        ])
    }
  }

  func finish(named name: String, number: Int, _ account: StepAccount) {
    let seconds = state.withLock { state in
      let seconds = state.stepBegun.map(Self.seconds)
      if state.steps.indices.contains(number - 1) {
        state.steps[number - 1].state = .finished
        state.steps[number - 1].seconds = seconds
        state.steps[number - 1].account = account
      }
      return seconds ?? 0
    }
    logger.info(
      "step finished",
      metadata: [
        "step": "\(printable(name))", "way": "\(account.way.rawValue)", "rows": "\(account.rows)",
        "seconds": "\(Self.seconds(seconds))",
      ])
    guard logger.logLevel <= .debug else { return }
    for entity in account.entities {
      logger.debug(
        "rows",
        metadata: [
          "entity": "\(printable(entity.entity))", "source": "\(printable(entity.source ?? "-"))",
          "rows": "\(entity.rows)",
        ])
    }
  }

  func need(_ bytes: Int64) {
    state.withLock { $0.neededBytes = max($0.neededBytes ?? 0, bytes) }
    logger.debug("space needed", metadata: ["bytes": "\(bytes)"])
  }

  // MARK: Statements

  /// Logs statements with time and without values.
  func watch(_ database: Database) {
    guard logger.logLevel <= .debug else { return }
    database.trace(options: .profile) { [self] event in
      guard case .profile(let statement, let duration) = event else { return }
      let number = state.withLock { state in
        state.statements += 1
        return state.statements
      }
      // Unbound parameters, literals removed.
      logger.debug(
        "SQL",
        metadata: [
          "number": "\(number)", "seconds": "\(Self.seconds(duration))",
          "statement": "\(printable(SQLMask.masked(statement.sql)))",
        ])
    }
  }

  private static func seconds(_ span: Double) -> String {
    let thousandths = Int64((min(max(span, 0), 1e12) * 1000).rounded())
    let rest = String(thousandths % 1000)
    return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
  }

  // MARK: State

  var neededBytes: Int64? { state.withLock { $0.neededBytes } }
  var from: String? { state.withLock { $0.from } }
  var to: String? { state.withLock { $0.to } }
  var steps: [MigrationReport.Step] { state.withLock { $0.steps } }
}

extension StepAccount {
  /// The records of all destination entities.
  public var rows: Int { repair?.rows ?? entities.reduce(0) { $0 + $1.rows } }
}

/// Masks SQL literals for logs.
///
/// Model defaults and mapping constants stay private too; quoted names stay.
package enum SQLMask {
  static let limit = 4_000

  /// Empties literals and truncates at `limit`.
  package static func masked(_ sql: String) -> String {
    var result = ""
    var count = 0
    var characters = Array(sql.unicodeScalars)[...]
    while let character = characters.popFirst(), count < limit {
      count += 1
      switch character {
      case "'":
        skip("'", &characters)
        // x'0102' is one literal.
        result += "'…'"
      case "\"", "`":
        result.unicodeScalars.append(character)
        while let next = characters.popFirst() {
          result.unicodeScalars.append(next)
          count += 1
          if next == character { break }
        }
      default: result.unicodeScalars.append(character)
      }
    }
    return characters.isEmpty && count < limit ? result : result + " …"
  }

  /// Skips the rest of a literal; a doubled quote is part of it.
  private static func skip(_ quote: Unicode.Scalar, _ characters: inout ArraySlice<Unicode.Scalar>) {
    while let next = characters.popFirst() {
      guard next == quote else { continue }
      guard characters.first == quote else { return }
      characters.removeFirst()
    }
  }
}
