import Foundation
import Lazaret
import LazaretSupport
import Logging

// The examples of Documentation/LIBRARY.md, word for word: here they are compiled, and a test compares them.

/// What the first screen shows.
enum StartScreen: Sendable {
  case ready(URL)
  case alert(Notice, URL)
  case tryAgain(title: String, message: String)
  case broken(title: String, message: String)
}

/// Gets the app's store ready when the app starts.
func start(store url: URL, model: URL) async -> StartScreen {
  do {
    let store = RecoverableStore(
      at: url, model: try StoreModel(contentsOf: model), home: url.deletingLastPathComponent(), appVersion: "2.3")
    let opening = try await store.open()
    if let notice = opening.notice { return .alert(notice, opening.url) }
    return .ready(opening.url)
  } catch let error as StoreError where error.isEnvironmental {
    // Nothing is wrong with the data: say what to do, and offer to try again.
    return .tryAgain(title: "Your data cannot be opened now", message: error.hint)
  } catch {
    return .broken(title: "Your data cannot be opened", message: error.localizedDescription)
  }
}

/// Gets a server's store ready, or says why the server cannot start.
func openForServing(_ url: URL, model: StoreModel, logger: Logger) async throws -> URL {
  var store = RecoverableStore(at: url, model: model, policy: .refusing, appVersion: "2.3")
  store.logger = logger
  do {
    let opening = try await store.open()
    for event in opening.events { logger.notice("\(event.words)") }
    return opening.url
  } catch let error as StoreError {
    // Code and hint are for people and dashboards; no record's values are in them.
    logger.critical("\(error.description)", metadata: ["code": "\(error.code)"])
    throw error
  }
}

/// Gets a store ready, with mappings for the steps that cannot be inferred, and tells what the migration left behind.
func openMigrating(_ url: URL, model: StoreModel, mapping: URL?, home: URL) async throws -> RecoverableStore.Opening {
  var store = RecoverableStore(at: url, model: model, home: home, appVersion: "2.3")
  if let mapping { try store.addMappings(from: mapping) }
  do {
    let opening = try await store.open()
    for loss in opening.losses {
      print("\(loss.records ?? 0) records of \(loss.entity) lost \(loss.property ?? "everything")")
    }
    return opening
  } catch let error as StoreError where error.kind == .migrationFailed {
    // The store is as it was. The report holds names and numbers, no value of a record: it can be sent.
    if let report = error.migrationReport { print("Report: \(report.path)") }
    throw error
  }
}

/// Gets a store ready, shows how far it is, and gives it up after a time.
func openReporting(
  _ store: RecoverableStore, for patience: Duration, show: @escaping @Sendable (Double) -> Void
) async throws -> RecoverableStore.Opening {
  let opening = Task {
    try await store.open { progress in
      if let fraction = progress.fraction { show(fraction) }
    }
  }
  let clock = Task {
    try await Task.sleep(for: patience)
    opening.cancel()
  }
  defer { clock.cancel() }
  return try await opening.value
}

/// Gets a store ready that a query has just found damaged; the app has closed it.
func reopen(_ store: RecoverableStore) async throws -> RecoverableStore.Opening {
  var store = store
  store.policy.depth = .full
  return try await store.open()
}

/// Takes a backup where the policy of the home says that one is due; for when the app has nothing better to do.
func backUp(_ store: RecoverableStore) async throws -> String? {
  guard let backup = try await store.backups.createIfDue() else { return nil }
  for fall in backup.falls { print("\(fall.entity) had \(fall.before) records and has \(fall.after)") }
  return backup.id
}

/// Brings back the newest backup of a store that nothing has open, unless that would cost more than a limit: records, pairs of
/// many-to-many relationships, and large values, each lost or changed.
func bringBack(_ store: RecoverableStore, losingAtMost limit: Int64) async throws -> Bool {
  let preview = try await store.backups.preview()
  // What could not be compared may cost anything.
  guard preview.remarks.isEmpty else { return false }
  let records = preview.entities.reduce(0) { $0 + $1.lost + $1.changed }
  let pairs = preview.pairs.reduce(0) { $0 + $1.lost + $1.changed }
  guard records + pairs + preview.largeValues.lost + preview.largeValues.changed <= limit else { return false }
  // What is there now is quarantined, whole; the restored store takes its place when it is checked and on the disk.
  try await store.backups.restore()
  return true
}

/// Recovers the records of a store that was set aside, and puts them into the app's place; the app has closed its own.
func recover(
  _ id: String, of store: RecoverableStore, show: @escaping @Sendable (Double) -> Void
) async throws -> Int64 {
  guard let entry = try await store.quarantine.all().first(where: { $0.id == id }) else { return 0 }
  let salvage = try await store.quarantine.salvage(entry) { show($0.fraction ?? 0) }
  print(salvage.words)
  // What this version of the app cannot open waits in quarantine for one that can.
  guard salvage.failure == nil else { return 0 }
  try await store.quarantine.install(entry)
  return salvage.recovered
}

/// Makes a report for support of a store that was set aside, if the user agrees to what is in it.
func report(
  _ store: RecoverableStore, of entry: StoreQuarantine.Entry, into folder: URL, key: String,
  ask: (Notice) async -> Bool
) async throws -> URL? {
  let prepared = try await store.support.prepare(of: entry, app: "com.example.Garage")
  guard await ask(prepared.consent) else { return nil }
  return try await store.support.write(prepared, to: folder, encryptedFor: [key]).url
}

/// The checksum of the model that a released store carries; nil where there is no store, backup or bundle.
func releasedChecksum(_ url: URL) throws -> String? {
  try StoreModel(carriedBy: url)?.versions.first { $0.isCurrent }?.checksum
}
