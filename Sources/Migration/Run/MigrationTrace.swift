internal import GRDB
internal import Logging
import ManagedObjectModel
internal import PersistentStore
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
    (ContinuousClock.now - start) / .seconds(1)
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

  func noteEnd(ofStep name: String, number: Int, _ account: StepAccount) {
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
        "seconds": "\(inThousandths(seconds))",
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
          "number": "\(number)", "seconds": "\(inThousandths(duration))",
          "statement": "\(printable(SQLMask.masked(statement.sql)))",
        ])
    }
  }

  // MARK: State

  var neededBytes: Int64? { state.withLock { $0.neededBytes } }
  var from: String? { state.withLock { $0.from } }
  var to: String? { state.withLock { $0.to } }
  var steps: [MigrationReport.Step] { state.withLock { $0.steps } }
}

/// Formats seconds with three decimals.
package func inThousandths(_ seconds: Double) -> String {
  let thousandths = Int64((min(max(seconds, 0), 1e12) * 1000).rounded())
  let rest = String(thousandths % 1000)
  return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
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

// MARK: Records

extension Migrator {
  func recorded(_ path: FilePath, _ options: Options, _ body: () throws -> Result) throws(MigrationError) -> Result {
    let trace = MigrationTrace(logger, isCancelled: options.isCancelled)
    let bytesBefore = size(of: path)
    do {
      var result = try MigrationTrace.$current.withValue(trace, operation: body)
      guard !result.isNothing else { return result }
      let metrics = metrics(of: result, path, trace, bytesBefore)
      result.metrics = metrics
      logger.notice("migrated", metadata: ["metrics": "\(metrics.words)"])
      if options.isRecorded { append(metrics, to: recordsFolder(path, options)) }
      return result
    } catch {
      var error = MigrationError(any: error).told(at: path).recognizingFullDisk { freeSpace(beside: path) }
      error.tellSpace(trace.neededBytes)
      guard error.kind != .cancelled else { throw error }
      logger.error("migration failed", metadata: ["code": "\(error.code)", "detail": "\(printable(error.detail))"])
      if options.isRecorded { error.reportPath = write(report(of: error, path, trace), path, options) }
      throw error
    }
  }

  private func freeSpace(beside path: FilePath) -> Int64? {
    // This only adds detail to an existing error.
    guard let set = try? StoreFileSet.locate(path, in: fileSystem) else { return nil }
    return try? fileSystem.freeSpace(at: set.folder)
  }

  // MARK: Metrics

  private func metrics(
    of result: Result, _ path: FilePath, _ trace: MigrationTrace, _ bytesBefore: Int64
  ) -> MigrationMetrics {
    MigrationMetrics(
      date: surroundings.now().rfc3339, store: path.lastComponent?.string ?? "", from: trace.from,
      to: trace.to ?? bundle.current.name, steps: result.steps.count + (result.repair == nil ? 0 : 1),
      resumedSteps: result.resumedSteps,
      seconds: trace.seconds, rows: result.steps.last?.rows ?? result.repair?.rows ?? 0,
      peakMemory: MigrationMetrics.processPeakMemory(), bytesBefore: bytesBefore, bytesAfter: size(of: result.store))
  }

  private static let lineLimit = 500

  private func append(_ metrics: MigrationMetrics, to folder: FilePath) {
    let path = folder.appending("migrations.jsonl")
    do {
      try fileSystem.makeDirectory(folder)
      // Another process may be writing its line.
      let lock = try FolderLock(folder, patience: 1_000, in: fileSystem)
      var earlier = ""
      if try fileSystem.status(of: path, followingLinks: false) != nil {
        let text = String(decoding: try fileSystem.contents(of: path, limit: 1 << 20), as: UTF8.self)
        earlier = text.split(separator: "\n").suffix(Self.lineLimit - 1).map { "\($0)\n" }.joined()
      }
      let line = try JSON.bytes(of: metrics, .line, to: "note the metrics", at: path)
      try fileSystem.writeAtomically(Array(earlier.utf8) + line, to: path, replacing: true)
      lock.release()
    } catch {
      // Missing metrics must not fail a finished migration.
      logger.warning("the metrics could not be written", metadata: ["error": "\(typeName(of: error))"])
    }
  }

  // MARK: Reports

  private func report(of error: MigrationError, _ path: FilePath, _ trace: MigrationTrace) -> MigrationReport {
    // The error matters more than unavailable details.
    let set = try? StoreFileSet.locate(path, in: fileSystem)
    let members = (try? set?.members(in: fileSystem)) ?? []
    return MigrationReport(
      date: surroundings.now().rfc3339, store: path.lastComponent?.string ?? "",
      files: members.filter { $0.part != .externalData }.map { .init(part: $0.part, bytes: $0.status.size) },
      freeBytes: freeSpace(beside: path), neededBytes: trace.neededBytes,
      model: bundle.name, modelVersions: bundle.versions.map(\.name), from: trace.from, to: trace.to,
      steps: trace.steps, failure: .init(error, hiding: (set?.main ?? path).folder.string), seconds: trace.seconds,
      peakMemory: MigrationMetrics.processPeakMemory(),
      versions: .init(
        app: appVersion, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
        operatingSystem: LibraryVersion.operatingSystem))
  }

  /// The longest suffix after the store's name.
  private static let reportEnding = "-2026-11-21-10-11-12-10000.migration.json"

  private static let reportLimit = 20

  /// Writes a report and prunes the oldest.
  ///
  /// - Returns: Nil on failure, as on a full disk.
  private func write(_ report: MigrationReport, _ store: FilePath, _ options: Options) -> FilePath? {
    let folder = recordsFolder(store, options).appending("Reports")
    // Truncate the store's name to leave room for time, number and suffix.
    let stem =
      FilePath.Component(store.stem ?? "Store")?.fitted(suffix: Self.reportEnding).string.dropLast(
        Self.reportEnding.count
      ).description ?? "Store"
    do {
      let bytes = try JSON.bytes(of: report, to: "write the report", at: folder)
      try fileSystem.makeDirectory(folder)
      let path = try firstNumbered("\(stem)-\(surroundings.now().fileName)") { name throws(FileError) in
        let path = folder.appending("\(name).migration.json")
        return try fileSystem.status(of: path, followingLinks: false) == nil ? path : nil
      }
      try fileSystem.writeAtomically(bytes, to: path, replacing: false)
      try rotate(folder, stem)
      return path
    } catch {
      // Report the migration's failure.
      logger.warning("the report could not be written", metadata: ["error": "\(typeName(of: error))"])
      return nil
    }
  }

  private func rotate(_ folder: FilePath, _ stem: String) throws(FileError) {
    var reports: [(written: Timestamp, path: FilePath)] = []
    for name in try fileSystem.entries(of: folder)
    where name.string.hasPrefix(stem + "-") && name.string.hasSuffix(".migration.json") {
      let path = folder.appending(name)
      guard let status = try fileSystem.status(of: path, followingLinks: false), status.kind == .regular else {
        continue
      }
      reports.append((status.modified, path))
    }
    reports.sort { ($0.written, $0.path.string) < ($1.written, $1.path.string) }
    for report in reports.dropLast(Self.reportLimit) { try fileSystem.unlink(report.path) }
  }

  private func recordsFolder(_ store: FilePath, _ options: Options) -> FilePath {
    if let home = options.home { return home }
    // A dangling link: its own folder.
    return (try? StoreFileSet.locate(store, in: fileSystem).folder) ?? store.folder
  }

  private func size(of path: FilePath) -> Int64 {
    guard let set = try? StoreFileSet.locate(path, in: fileSystem), let members = try? set.members(in: fileSystem)
    else { return 0 }
    return members.filter { $0.part != .externalData && $0.part != .sharedMemory }.reduce(0) { $0 + $1.status.size }
  }
}

extension MigrationError {
  fileprivate mutating func tellSpace(_ needed: Int64?) {
    guard let needed, lacksNeededBytes else { return }
    detail += "; the migration needs \(needed) bytes in all beside the store"
    self.neededBytes = needed
    hint = "Free \(needed) bytes, then try again; the store is as it was."
  }
}
