internal import Foundation
internal import Logging
import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SystemPackage

extension Migrator {
  func recorded(
    _ path: FilePath, _ options: Options, _ body: () throws -> Result
  ) throws(MigrationError) -> Result {
    let trace = MigrationTrace(logger, isCancelled: options.isCancelled)
    let bytesBefore = size(of: path)
    let outcome = MigrationTrace.$current.withValue(trace) { () -> Swift.Result<Result, MigrationError> in
      do { return .success(try body()) } catch { return .failure(MigrationError(any: error)) }
    }
    switch outcome {
    case .success(var result):
      guard !result.isNothing else { return result }
      let metrics = metrics(of: result, path, trace, bytesBefore)
      result.metrics = metrics
      logger.notice("migrated", metadata: ["metrics": "\(metrics.words)"])
      if options.isRecorded { append(metrics, to: recordsFolder(path, options)) }
      return result
    case .failure(var error):
      if error.path == nil { error.path = path }
      error = error.recognizingFullDisk { freeSpace(beside: path) }
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
      peakMemory: MigrationMetrics.processPeakMemory(),
      bytesBefore: bytesBefore, bytesAfter: size(of: result.store))
  }

  private static let lineLimit = 500

  private func append(_ metrics: MigrationMetrics, to folder: FilePath) {
    let path = folder.appending("migrations.jsonl")
    do {
      try fileSystem.makeDirectory(folder)
      // Another process may be writing its line.
      let lock = try FolderLock(folder, patience: 1_000, in: fileSystem)
      var lines: [Substring] = []
      var text = ""
      if try fileSystem.status(of: path, followingLinks: false) != nil {
        text = String(decoding: try fileSystem.contents(of: path, limit: 1 << 20), as: UTF8.self)
        lines = text.split(separator: "\n").suffix(Self.lineLimit - 1)
      }
      let line = try JSON.bytes(of: metrics, .line, to: "note the metrics", at: path)
      let earlier = lines.map { "\($0)\n" }.joined()
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
      let name = "\(stem)-\(surroundings.now().fileName)"
      var number = 1
      while true {
        let path = folder.appending("\(name)\(number == 1 ? "" : "-\(number)").migration.json")
        number &+= 1
        if try fileSystem.status(of: path, followingLinks: false) != nil { continue }
        try fileSystem.writeAtomically(bytes, to: path, replacing: false)
        try rotate(folder, stem)
        return path
      }
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

extension Migrator {
  /// Rejects a link as, or in, the folder of large values: it can't be moved with the store.
  func checkExternalData(_ original: StoreFileSet) throws(FileError) {
    let values = try original.largeValues(in: fileSystem).files
    guard let strange = values.first(where: { $0.isLink || $0.status.kind != .regular }) else { return }
    throw StoreFileSet.unmovable(strange.path, "migrate the store")
  }

  /// Copies external files, or hard-links them if the old store is no longer opened.
  ///
  /// New folders take the old ones' permissions.
  func copyExternalData(of old: StoreFileSet, to new: StoreFileSet, sharing: Bool) throws {
    let (source, target) = (old.path(of: .externalData), new.path(of: .externalData))
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return }
    let content = try fileSystem.descendants(of: source)
    try fileSystem.makeDirectory(target)
    for folder in content.folders { try fileSystem.makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular {
      try place(file, at: target.appending(file.relative), sharing: sharing)
    }
    // Inner folders first.
    for folder in content.folders.reversed() + [[]] {
      try fileSystem.adoptAccess(ofFolder: source.appending(folder), to: target.appending(folder))
      try fileSystem.synchronizeDirectory(target.appending(folder))
    }
  }

  private func place(_ file: FileSystem.Descendant, at destination: FilePath, sharing: Bool) throws {
    if try fileSystem.status(of: destination, followingLinks: false) != nil { return }
    if try sharing && hasLinked(file.path, destination) { return }
    let unfinished = destination.hiddenSibling(suffix: ".unfinished")
    _ = try fileSystem.copy(file.path, to: unfinished)
    try fileSystem.adoptAccess(of: file.path, to: unfinished)
    try fileSystem.install(unfinished, at: destination, replacing: false)
  }

  private func hasLinked(_ file: FilePath, _ destination: FilePath) throws(FileError) -> Bool {
    do throws(FileError) {
      try fileSystem.link(file, to: destination)
      return true
    } catch {
      guard error.meansLinksAreUnsupported else { throw error }
      return false
    }
  }

  func removeExternalData(_ place: StoreFileSet) throws(FileError) {
    let external = place.path(of: .externalData)
    guard try fileSystem.status(of: external, followingLinks: false)?.kind == .directory else { return }
    let content = try fileSystem.descendants(of: external)
    for file in content.files { try fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try fileSystem.removeDirectory(external.appending(folder)) }
    try fileSystem.removeDirectory(external)
  }

  // MARK: Output

  func deliver(
    _ original: StoreFileSet, to place: StoreFileSet, _ folder: WorkingFolder, _ journal: MigrationJournal, resumed: Int
  ) throws -> Result {
    do {
      do {
        try copyUnchanged(original, to: place, journal)
        // A new file is its owner's alone; the superuser writes it for the owner.
        if var status = try fileSystem.status(of: original.main) {
          status.permissions = .ownerReadWrite
          try fileSystem.adoptAccess(of: status, to: folder.step(journal.steps.count))
        }
        try placeAside(journal, folder, beside: place.main, like: original)
        try fileSystem.install(folder.step(journal.steps.count), at: place.main, replacing: false)
      } catch {
        // The name was free. Report the first error only.
        if (try? fileSystem.status(of: place.main, followingLinks: false)) == .some(nil) {
          try? removeExternalData(place)
        }
        throw error
      }
      try checkOpening(place.main)
      try folder.remove()
    } catch {
      throw MigrationError(any: error, path: place.main)
    }
    return Result(store: place.main, backup: nil, accounts: journal.steps.compactMap(\.account), resumed: resumed)
  }

  /// Copies the external files of the records read.
  ///
  /// - Throws: `changed-meanwhile` if another process wrote to the store since.
  private func copyUnchanged(
    _ original: StoreFileSet, to place: StoreFileSet, _ journal: MigrationJournal
  ) throws {
    // The lock blocks writers in rollback mode; in WAL mode their traces show.
    let lock = try SharedStoreLock(on: original, in: fileSystem)
    try checkUnchanged(original, journal)
    let before = try externalFiles(original)
    try copyExternalData(of: original, to: place, sharing: false)
    guard try externalFiles(original) == before else { throw changed(original) }
    try checkUnchanged(original, journal)
    lock.release()
  }

  private func externalFiles(
    _ store: StoreFileSet
  ) throws(FileError) -> [[FilePath.Component]: MigrationJournal.FileStamp] {
    let folder = store.path(of: .externalData)
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return [:] }
    var files: [[FilePath.Component]: MigrationJournal.FileStamp] = [:]
    for file in try fileSystem.descendants(of: folder).files {
      files[file.relative] = MigrationJournal.FileStamp(file.status)
    }
    return files
  }
}
