internal import ManagedObjectModel
package import PersistentStore
import Platform
package import Salvage
package import SystemPackage

package struct QuarantineSalvage: Sendable {
  /// With its present receipt.
  package var stored: QuarantinedStore

  package var store: FilePath

  package var reportPath: FilePath

  package var report: SalvageReport

  package var result: Receipt.Salvage.Result

  /// Whether it is the one to install; false if a better earlier result stays.
  package var isCurrent: Bool

  /// The comparison with the previous result to install.
  package var comparison: SalvageComparison?

  /// The reason why the app cannot open it.
  package var failure: Receipt.Reason?

  package var words: String { [result.words, failure?.words].compactMap(\.self).joined(separator: " ") }
}

package struct QuarantineSalvageOptions: Sendable, Hashable {
  /// Deleted records are set aside.
  var findsDeleted: Bool

  /// The donor of lost records.
  package var backup: BackupSource?

  /// Whether to use a backup even without evidence of its store.
  var trustsBackup: Bool

  package init(findsDeleted: Bool = false, backup: BackupSource? = nil, trustsBackup: Bool = false) {
    self.findsDeleted = findsDeleted
    self.backup = backup
    self.trustsBackup = trustsBackup
  }
}

/// The installation of a salvaged store's copy at an empty place.
///
/// The caller holds the salvage lock and the folder lock. After an interruption the next run removes partial files
/// (`takeBack`), so that the place is empty or has the whole store.
struct SalvageInstallation {
  let place: StoreFileSet
  let folder: QuarantineFolder
  let stored: QuarantinedStore
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }
  private var mark: PendingNotice { PendingNotice(for: place, in: fileSystem) }

  /// The space needed beside the copy: the WAL index has 32 KiB, receipts are smaller.
  private static let reserve: Int64 = 128 << 10

  /// Returns the receipt's usable salvaged store.
  func source() throws -> (files: SalvageFiles, result: Receipt.Salvage.Result)? {
    guard let result = stored.receipt?.salvage?.result, result.isUsable, let files = folder.result(of: stored),
      try fileSystem.status(of: files.store.main, followingLinks: false)?.kind == .regular
    else { return nil }
    return (files, result)
  }

  /// Writes the copy, synced, beside the place.
  func stage(_ files: SalvageFiles, _ result: Receipt.Salvage.Result) throws -> StagedStore {
    let staged = try StagedStore(copying: files.store.main, for: place, in: fileSystem) { digest in
      guard digest.text == result.sha256 else {
        throw FileError(.changed, operation: "install the salvaged store", path: files.store.main)
      }
    }
    if let access = try fileSystem.access(to: stored.files.main) {
      try fileSystem.adoptAccess(of: access.usable, to: staged.path)
    }
    guard try fileSystem.freeSpace(at: place.folder) >= Self.reserve else {
      throw FileError(.noSpace, operation: "install the salvaged store", path: place.folder)
    }
    return staged
  }

  /// Announces the installation on disk.
  func announce(_ staged: borrowing StagedStore) throws {
    guard let status = try fileSystem.status(of: staged.path, followingLinks: false) else {
      throw FileError(.changed, operation: "install the salvaged store", path: staged.path)
    }
    try mark.write(.init(id: stored.id, inode: status.identity.inode))
  }

  /// Installs the staged store, large values first, and notes it on the receipt.
  func install(_ staged: consuming StagedStore, from files: SalvageFiles) throws -> QuarantinedStore {
    if let member = try place.members(in: fileSystem).first {
      throw FileError(.alreadyExists, operation: "install the salvaged store", path: member.path)
    }
    let external = files.store.path(of: .externalData)
    do {
      if try fileSystem.status(of: external, followingLinks: false)?.kind == .directory {
        try fileSystem.copyTree(external, to: place.path(of: .externalData))
        try fileSystem.synchronizeDirectory(place.folder)
      }
      try staged.put()
    } catch {
      // Report the first error; the next opening removes the rest.
      try? Self.removeHalf(of: place, in: fileSystem)
      throw error
    }
    return try note()
  }

  /// Notes an installation's start or end on the receipt.
  ///
  /// Lists of the quarantine show it: the place may be one that no app opens.
  func noteAttempt(isOver: Bool = false) throws {
    let date = surroundings.now()
    _ = try folder.update(stored.id) { receipt in
      receipt.salvage?.installing = isOver ? nil : Receipt.Release(date: date.rfc3339, path: PathText(place.main))
    }
  }

  func note() throws -> QuarantinedStore {
    let date = surroundings.now()
    return try folder.update(stored.id) { receipt in
      receipt.salvage?.state = .installed
      receipt.salvage?.date = date.rfc3339
      receipt.salvage?.isWanted = false
      receipt.salvage?.installing = nil
      receipt.salvage?.installed = Receipt.Release(date: date.rfc3339, path: PathText(place.main))
      receipt.add(Receipt.Moment(.installed, at: date, path: PathText(place.main)))
    }
  }

  /// Removes copied large values without a main file, under the caller's folder lock.
  static func removeHalf(of place: StoreFileSet, in fileSystem: FileSystem) throws {
    guard try PendingNotice(for: place, in: fileSystem).installation() != nil,
      try fileSystem.status(of: place.main, followingLinks: false) == nil
    else { return }
    try fileSystem.removeTree(place.path(of: .externalData))
  }
}

/// The salvage of a quarantined store, under the caller's salvage lock.
struct SalvageWork {
  let id: String
  let folder: QuarantineFolder
  let model: AppModel?
  var options = QuarantineSalvageOptions()
  var storeOptions = PersistentStore.Options()
  let migration: SalvageMigration
  let surroundings: Surroundings
  let observer: OpeningObserver
  let home: FilePath?

  /// The secret keys that decrypt a backup.
  var identities: [AgeIdentity] = []

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Salvages the store, verifies the result and keeps it.
  ///
  /// - Throws: `LazaretError` of the kinds `salvageFailed`, if the quarantined files are at fault, and `cancelled`;
  ///   errors of the environment; otherwise errors of the salvage itself. The receipt keeps an earlier result and gets
  ///   the reason.
  func run() throws -> QuarantineSalvage {
    let stored = try folder.store(named: id)
    let mark = PrivateFolder.mark(of: folder.path.appending(id))
    defer { withExtendedLifetime(mark) {} }
    let working = try folder.beginSalvage(of: id)
    do {
      return try run(stored, in: working)
    } catch {
      // Report the first error; the next salvage removes the rest.
      try? folder.endSalvage(of: id)
      throw try judged(error, stored)
    }
  }

  private func run(_ stored: QuarantinedStore, in working: FilePath) throws -> QuarantineSalvage {
    guard let evidence = try evidence(in: stored.files), evidence.kind == .regular else {
      throw EvidenceFault(code: "nothing-to-salvage", words: "The store's main file is missing.")
    }
    let made = StoreFileSet(main: working.appending("Salvaged.sqlite"))
    let clock = SalvageClock(now: surroundings.now)
    // Kits are named after the store at the app's path.
    let kits = stored.receipt?.originalPath.path.map { [KitFolder(for: $0, home: home, in: fileSystem)] } ?? []
    let backup = try options.backup.map { source in
      try UnpackedBackup(
        source, of: stored.receipt?.originalPath.path ?? stored.files.main, home: home ?? folder.path.folder,
        trust: options.trustsBackup ? .anyStore : .sameStore, scope: stored.evidence, identities: identities,
        surroundings: surroundings, isCancelled: observer.isCancelled)
    }
    let salvaging = Salvager.Options(
      findsDeleted: options.findsDeleted, fitsModel: true, kit: .any([.folders(kits), backup?.kit ?? .none]),
      scope: stored.evidence, donor: backup?.donor
    ) { [observer] in
      observer.progress(clock.progress($0, $1, $2))
      return !observer.isCancelled()
    }
    var report = try Salvager(surroundings: surroundings).salvage(
      stored.files.main, to: made.main, model: model.map(SalvageModel.init), options: salvaging, migration: migration)
    observer.progress(clock.progress(0.95, nil))
    let check = try folder.check(evidenceOf: stored, .content)
    if let words = EvidenceCheck.words(check?.differences ?? []) {
      // The quarantined files have changed since.
      report.isComplete = false
      report.remarks.append("the quarantined store was changed: \(words)")
    }
    if observer.isCancelled() { throw LazaretError.cancelledSalvage(stored.files.main) }
    let setAside = report.rebuild?.setAsideFile == nil ? nil : made.main.sibling(suffix: "-set-aside")
    for path in [made.main, setAside].compactMap(\.self) { try fileSystem.adoptAccess(of: evidence.private, to: path) }
    let usability = try usability(of: made, report)
    let files = try folder.freeResult(of: id)
    let date = surroundings.now()
    let file = try fileSystem.open(made.main)
    let result = Receipt.Salvage.Result(
      name: name(files.store.main), report: name(files.report), setAside: setAside.map { _ in name(files.setAside) },
      date: date, bytes: file.count, sha256: try FileDigest(of: file).hexadecimal, version: usability.version,
      isUsable: usability.isUsable, isComplete: report.isComplete,
      incompleteBecause: report.isComplete || report.reservations.isEmpty ? nil : report.reservations,
      lacksDetails: report.isComplete ? nil : report.lacksDetails, score: report.score,
      entities: report.records.map { Receipt.Salvage.Entity($0) },
      pairs: report.pairs.isEmpty ? nil : report.pairs.map { Receipt.Salvage.Entity($0) },
      mayLackTables: report.mayLackTables ? true : nil,
      valuesSetAside: report.count.valuesSetAside == 0 ? nil : report.count.valuesSetAside,
      unplacedRows: report.count.unplaced == 0 ? nil : report.count.unplaced,
      migrationLosses: migrationLosses(of: report), evidence: basis(of: report, check))
    let succession = try ResultSuccession(of: result, in: folder, stored, model, fileSystem)
    var told = report
    told.store = PathText(stored.files.main)
    told.output = PathText(files.store.main)
    if setAside != nil { told.rebuild?.setAsideFile = files.setAside }
    if let comparison = succession.comparison { told.remarks.append(comparison.words) }
    try folder.keep(made, setAside: setAside, report: try JSON.bytes(of: told, to: "write the report"), as: files)
    try folder.endSalvage(of: id)
    let updated = try folder.update(id) { receipt in
      var salvage = receipt.salvage ?? Receipt.Salvage(pendingSince: date, isWanted: false)
      // Another version of the app can open it.
      let isWaiting = usability.failure.map { Receipt.Salvage.waitingCodes.contains($0.code) } ?? false
      if succession.isCurrent {
        salvage.state = usability.isUsable || isWaiting ? .salvaged : .failed
        salvage.date = date.rfc3339
        salvage.failure = usability.failure
      }
      succession.apply(to: &salvage)
      receipt.salvage = salvage
      let words = [isWaiting || usability.isUsable ? succession.words : nil, usability.failure?.words]
      receipt.add(
        Receipt.Moment(
          isWaiting || usability.isUsable ? .salvaged : .salvageFailed, at: date,
          words: words.compactMap(\.self).joined(separator: " "), path: result.name))
    }
    for former in succession.superfluous where former != files { try folder.remove(former) }
    return QuarantineSalvage(
      stored: updated, store: files.store.main, reportPath: files.report, report: told, result: result,
      isCurrent: succession.isCurrent, comparison: succession.comparison, failure: usability.failure)
  }

  private func migrationLosses(of report: SalvageReport) -> [Receipt.Salvage.MigrationLoss]? {
    guard let losses = report.rebuild?.migrationLosses, !losses.isEmpty else { return nil }
    return losses.map { .init(entity: $0.entity, property: $0.property, count: $0.count, text: $0.text) }
  }

  private func basis(of report: SalvageReport, _ files: EvidenceCheck?) -> Receipt.Salvage.Evidence {
    Receipt.Salvage.Evidence(
      kit: report.kit.map { Timestamp($0.date)?.fileName ?? $0.date },
      backup: report.backup.map { $0.id ?? $0.date }, deleted: options.findsDeleted, library: LibraryVersion.current,
      files: files)
  }

  /// Returns the status of the main file, or of a log or journal with its pages.
  private func evidence(in files: StoreFileSet) throws -> FileStatus? {
    if let main = try fileSystem.status(of: files.main) { return main }
    for part in [StoreFileSet.Part.wal, .journal] {
      if let status = try fileSystem.status(of: files.path(of: part)), status.size > 0 { return status }
    }
    return nil
  }

  private func name(_ path: FilePath) -> PathText { PathText(path.lastComponent.map { FilePath($0.string) } ?? path) }

  // MARK: Whether an app could open it

  private struct Usability {
    var version: String?
    var isUsable: Bool
    var failure: Receipt.Reason?
  }

  /// Checks every page, and opens the result like the app.
  private func usability(of made: StoreFileSet, _ report: SalvageReport) throws -> Usability {
    let examination = try Examiner(fileSystem: fileSystem).examine(
      made.main, model: model, options: .init(depth: .full, countsRecords: false))
    let version = examination.modelVersion
    func unusable(_ code: String, _ words: String) -> Usability {
      Usability(
        version: version, isUsable: false,
        failure: .init(code: code, words: "What was salvaged \(words): \(examination.reason.words)"))
    }
    if examination.isNewerThanApp {
      return examination.newer?.code == VerdictReason.unlistedVersionCode
        ? unusable(Receipt.Salvage.unlistedVersionCode, "waits for an order that has its version")
        : unusable(Receipt.Salvage.newerAppCode, "waits for a newer version of the app")
    }
    if examination.verdict == .unavailable { throw LazaretError(.unavailable, examination, path: made.main) }
    // Another process removed it, which says nothing about the evidence.
    if examination.verdict == .missing {
      throw FileError(.changed, operation: "verify the salvaged store", path: made.main)
    }
    if examination.verdict == .damaged { throw refused(made, printable(examination.reason.words)) }
    if examination.verdict == .outdated, let failure = report.rebuild?.migrationFailure,
      report.records.contains(where: { $0.recovered > 0 })
    {
      return Usability(
        version: version, isUsable: false,
        failure: .init(
          code: Receipt.Salvage.notMigratedCode,
          words: "What was salvaged could not be migrated to the app's version of the model: \(printable(failure)). "
            + examination.reason.words))
    }
    guard examination.isUsableAsIs else {
      return unusable("salvage-unusable", "cannot be opened with this version of the app")
    }
    guard let model else { return Usability(version: version, isUsable: true) }
    do {
      var current: ManagedObjectModel?
      if case .coreData(let bundle) = model { current = bundle.current.model }
      try PersistentStore(opening: made.main, model: current, options: storeOptions).close()
    } catch {
      throw error.isEnvironmental ? error : refused(made, printable(error.detail))
    }
    // A log that SQLite could not remove is empty, since no write took place.
    for part in [StoreFileSet.Part.wal, .sharedMemory] { try fileSystem.unlink(made.path(of: part)) }
    return Usability(version: version, isUsable: true)
  }

  private func refused(_ made: StoreFileSet, _ words: String) -> SalvageError {
    SalvageError(
      .verificationFailed, operation: "verify the salvaged store", path: made.main,
      detail: "what was made cannot be opened: \(words.withoutFullStop)")
  }

  // MARK: What went wrong

  private struct EvidenceFault: Error {
    var code: String
    var words: String
  }

  /// Returns the error, noted on the receipt unless environmental.
  ///
  /// A failure of the salvage itself says nothing about the evidence and leaves it pending.
  private func judged(_ error: any Error, _ stored: QuarantinedStore) throws -> any Error {
    var isOfEvidence = true
    let reason: Receipt.Reason
    switch error {
    case let error as EvidenceFault: reason = .init(code: error.code, words: error.words)
    case let error as SalvageError:
      switch error.kind {
      case .cancelled: return LazaretError.cancelledSalvage(stored.files.main)
      case .nothingFound, .unfitModel:
        reason = .init(code: error.code, words: "Nothing could be salvaged: \(printable(error.detail)).")
      case .output, .model, .verificationFailed:
        isOfEvidence = false
        reason = .init(code: error.code, words: "The salvage itself failed: \(printable(error.detail)).")
      default: return error
      }
    default: return error
    }
    let date = surroundings.now()
    try folder.update(id) { receipt in
      var salvage = receipt.salvage ?? Receipt.Salvage(pendingSince: date, isWanted: false)
      salvage.failure = reason
      if isOfEvidence, salvage.result?.isUsable != true {
        salvage.state = .failed
        salvage.date = date.rfc3339
      }
      receipt.salvage = salvage
      receipt.add(Receipt.Moment(.salvageFailed, at: date, words: reason.words))
    }
    return isOfEvidence ? LazaretError.salvageFailed(stored.files.main, reason) : error
  }
}

extension Examination {
  /// Whether the store's only fault is to be newer than the app.
  var isNewerThanApp: Bool { verdict == .unavailable && newer != nil }
}

extension SalvageModel {
  package init(_ model: AppModel) {
    switch model {
    case .coreData(let bundle): self = .coreData(bundle)
    case .sqlite(let script, _): self = .sqlite(script)
    }
  }
}

extension FileStatus {
  var `private`: FileStatus {
    var status = self
    status.permissions = .ownerReadWrite
    return status
  }
}

/// Converts a salvage's phases into one growing share of the work, with the time left.
final class SalvageClock: Sendable {
  /// Each phase's share of the whole; unknown phases have none.
  private static let shares: [(phase: String, start: Double, length: Double)] = [
    ("survey", 0, 0.2), ("placement", 0.2, 0.05), ("rows", 0.25, 0.35), ("rebuild", 0.6, 0.25),
    ("migration", 0.85, 0.1),
  ]

  private let now: @Sendable () -> Timestamp
  private let start: Double
  private let highest = Mutex<Double>(0)

  init(now: @escaping @Sendable () -> Timestamp) {
    self.now = now
    start = Self.seconds(now())
  }

  private static func seconds(_ time: Timestamp) -> Double {
    Double(time.secondsSince1970) + Double(time.nanoseconds) / 1e9
  }

  func progress(_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> OpeningProgress {
    let part = total > 0 ? min(1, max(0, Double(done) / Double(total))) : 0
    let reached = Self.shares.first { $0.phase == phase.rawValue }.map { $0.start + part * $0.length } ?? 0
    return progress(reached, phase)
  }

  func progress(_ reached: Double, _ phase: SalvagePhase?) -> OpeningProgress {
    let share = highest.withLock { highest in
      highest = max(highest, reached)
      return highest
    }
    let elapsed = Self.seconds(now()) - start
    let left = elapsed > 0.5 && share > 0.03 ? elapsed * (1 - share) / share : nil
    return OpeningProgress(
      phase: .salvaging, completed: Int64(share * 1000), total: 1000, salvagePhase: phase, secondsLeft: left)
  }
}

/// The decision between salvage results.
///
/// All are kept, and the best is installed; only redundant results, or those with missing or changed files, are
/// removed.
struct ResultSuccession {
  private let result: Receipt.Salvage.Result

  /// The results beside the current one, oldest first.
  private var others: [Receipt.Salvage.Result] = []

  /// The previous current result, if unchanged.
  private var former: Receipt.Salvage.Result?

  private(set) var isCurrent = true

  /// The files to remove.
  private(set) var superfluous: [SalvageFiles] = []

  var comparison: SalvageComparison? { former.map { SalvageComparison($0, result) } }

  var words: String {
    isCurrent ? result.words : result.words + " An earlier result is better, and stays the one to install."
  }

  /// Judges a new result before it gets its names.
  ///
  /// - Parameter model: examines an earlier result again; nil trusts the earlier finding.
  init(
    of result: Receipt.Salvage.Result, in folder: QuarantineFolder, _ stored: QuarantinedStore, _ model: AppModel?,
    _ fileSystem: FileSystem
  ) throws {
    self.result = result
    let salvage = stored.receipt?.salvage
    for other in salvage?.others ?? [] { try keep(other, in: folder, stored.id) }
    guard let former = salvage?.result, let files = folder.files(of: former, stored.id) else { return }
    guard try folder.isIntact(former, files) else {
      superfluous.append(files)
      return
    }
    self.former = former
    let isUsable = try Self.isUsable(former, files, model, fileSystem)
    isCurrent = result.isBetter(than: former, whichIsUsable: isUsable)
    if isCurrent { try keep(former, in: folder, stored.id) }
  }

  private mutating func keep(_ other: Receipt.Salvage.Result, in folder: QuarantineFolder, _ id: String) throws {
    guard let files = folder.files(of: other, id) else { return }
    if try other.isSame(as: result) || !folder.isIntact(other, files) {
      superfluous.append(files)
    } else {
      others.append(other)
    }
  }

  func apply(to salvage: inout Receipt.Salvage) {
    let beside = isCurrent ? others : others + [result]
    salvage.result = isCurrent ? result : former
    salvage.others = beside.isEmpty ? nil : beside
  }

  private static func isUsable(
    _ former: Receipt.Salvage.Result, _ files: SalvageFiles, _ model: AppModel?, _ fileSystem: FileSystem
  ) throws -> Bool {
    guard former.isUsable, let model else { return former.isUsable }
    let examination = try Examiner(fileSystem: fileSystem).examine(
      files.store.main, model: model, options: .init(countsRecords: false))
    if examination.verdict == .unavailable, !examination.isNewerThanApp {
      throw LazaretError(.unavailable, examination, path: files.store.main)
    }
    return examination.isUsableAsIs
  }
}
