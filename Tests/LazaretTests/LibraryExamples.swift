import Lazaret
import Logging

// The examples of Documentation/LIBRARY.md, word for word: here they are compiled, and a test compares them.

/// What the first screen shows.
enum StartScreen: Sendable {
  case ready(PersistentStore)
  case alert(Notice, PersistentStore)
  case tryAgain(title: String, message: String)
  case broken(title: String, message: String)
}

/// Opens the app's store when the app starts.
func start(store path: FilePath, model: FilePath) async -> StartScreen {
  do {
    let coordinator = StoreCoordinator(
      model: try AppModel.load(model), home: path.removingLastComponent(), appVersion: "2.3")
    let opening = try await Task.detached { try coordinator.open(path) }.value
    if let notice = opening.notice { return .alert(notice, opening.store) }
    return .ready(opening.store)
  } catch let error as any ReportableError where error.isEnvironmental {
    // Nothing is wrong with the data: say what to do, and offer to try again.
    return .tryAgain(title: "Your data cannot be opened now", message: error.hint)
  } catch let error as any ReportableError {
    return .broken(title: "Your data cannot be opened", message: error.description)
  } catch {
    return .broken(title: "Your data cannot be opened", message: "An unforeseen error came up.")
  }
}

/// Opens a server's store, or says why it cannot start.
func openForServing(_ path: FilePath, model: AppModel, logger: Logger) throws -> PersistentStore {
  let coordinator = StoreCoordinator(
    model: model, policy: OpeningPolicy(whenDamaged: .refuse, whenIncompatible: .refuse),
    home: "/var/lib/app", appVersion: "2.3", logger: logger)
  do {
    let opening = try coordinator.open(path)
    for event in opening.events { logger.notice("\(event.words)", metadata: ["path": "\(event.path.text)"]) }
    return opening.store
  } catch let error as any ReportableError {
    // Code and hint are for people and dashboards; no record's values are in them.
    logger.critical("\(error.description)", metadata: ["code": "\(error.code)"])
    throw error
  }
}

/// Opens a store, with mappings for the steps that cannot be inferred, and tells what the migration left behind.
func openMigrating(_ path: FilePath, model: AppModel, mappings: [MappingModel], home: FilePath) throws -> Opening {
  var migration = Migrator.Options()
  migration.mappings = mappings
  let coordinator = StoreCoordinator(
    model: model, policy: OpeningPolicy(whenMigrationFails: .refuse), home: home, appVersion: "2.3",
    migration: migration)
  do {
    let opening = try coordinator.open(path)
    for loss in opening.losses {
      print("\(loss.rows ?? 0) records of \(loss.entity) lost \(loss.property ?? "everything")")
    }
    return opening
  } catch let error as LazaretError where error.kind == .migrationFailed {
    // The store is as it was. The report holds names and numbers, no value of a record: it can be sent.
    if let report = error.migrationError?.reportPath { print("Report: \(report)") }
    throw error
  }
}

/// Opens a store and reports how far it is; ends when the task is cancelled.
func openReporting(
  _ path: FilePath, with coordinator: StoreCoordinator, progress: @escaping @Sendable (Double) -> Void
) throws -> Opening {
  let observer = OpeningObserver { step in
    if step.total > 0 { progress(Double(step.completed) / Double(step.total)) }
  }
  return try coordinator.open(path, observer: observer)
}

/// Opens a store that a query has just found damaged.
func reopen(_ store: PersistentStore, model: AppModel) throws -> Opening {
  try store.close()
  return try StoreCoordinator(model: model, policy: OpeningPolicy(depth: .full)).open(store.path)
}

/// The stores that were set aside, for a support screen.
func setAside(home: FilePath) throws -> [String] {
  try Quarantines(home: home).stores().map { stored in
    let reason = stored.receipt?.reason.words ?? "its receipt cannot be read"
    return "\(stored.id): \(reason)"
  }
}

/// Recovers the records of a store that was set aside, and puts them into the app's place.
func recover(_ id: FilePath, home: FilePath, model: AppModel, show: (Double) -> Void) async throws -> FilePath {
  let quarantines = Quarantines(home: home)
  let task = SalvageTask(of: id, in: quarantines, model: model)
  for await progress in task.updates { show(progress.fraction ?? 0) }
  let salvaged = try await task.value
  print("\(salvaged.result.recovered) records recovered, \(salvaged.result.lost) lost")
  // The app's own connections are closed by now.
  return try quarantines.install(id, model: model).place.main
}

/// Takes a backup, and proves the three that were proven longest ago.
func backUpNightly(_ store: FilePath, home: FilePath) throws -> BackupIdentifier {
  let backups = Backups(home: home)
  var request = BackupRequest { phase, done, total in
    // Called on the thread that asked; false ends the work.
    return true
  }
  request.reason = .scheduled
  request.tags = ["nightly"]
  let backup = try backups.create(store, request)
  for catalog in try backups.catalogs() {
    for old in BackupProver.order(catalog.backups).prefix(3) { _ = try backups.prove(old.id, in: catalog.place) }
  }
  return backup.id
}

/// Takes a backup where the policy of the home says that one is due; for when the app has nothing better to do.
func backUp(_ store: FilePath, home: FilePath) throws -> BackupIdentifier? {
  let scheduled = try Backups(home: home).backUpIfDue(store, appVersion: "2.3")
  for decision in scheduled.pruning?.plan.dropped ?? [] {
    print("\(decision.id) went to the trash: \(decision.reasons.map(\.words).joined(separator: ", "))")
  }
  return scheduled.backup?.id
}

/// Brings back the newest backup of a store that no process has open, unless that would cost more records than a limit.
func bringBack(_ store: FilePath, home: FilePath, losingAtMost limit: Int64) throws -> Bool {
  let backups = Backups(home: home)
  let preview = try backups.preview(of: store)
  guard preview.entities.reduce(0, { $0 + $1.lost + $1.changed }) <= limit else { return false }
  // What is there now is quarantined, whole; the restored store takes its place when it is checked and on the disk.
  _ = try backups.restore(over: store)
  return true
}

/// The checksum of the model that a released store carries; nil where there is no store, backup or bundle.
func releasedChecksum(_ path: FilePath) throws -> String? {
  guard let carrier = try ModelCarrier(path) else { return nil }
  return try carrier.load().current.checksum
}
