internal import Lazaret
internal import PersistentStore
package import Platform
internal import Salvage
package import SystemPackage

/// The files to read: a quarantined store, or a copy of a live one.
struct ExportEvidence: Sendable {
  let files: StoreFileSet

  let members: [StoreFileSet.Member]

  /// An external value, with its path below the store's folder.
  typealias Value = (name: String, path: FilePath, size: Int64)

  let external: [Value]

  let remarks: [String]

  /// The bytes without external values.
  var bytes: Int64 { members.reduce(0) { $0 + ($1.status.kind == .regular ? $1.status.size : 0) } }

  var allBytes: Int64 { bytes + external.reduce(0) { $0 + $1.size } }

  var hasMain: Bool { members.contains { $0.part == .main && $0.status.kind == .regular } }

  private static let attempts = 6
}

extension ExportEvidence {
  init(resting files: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    let (external, remarks) = try Self.external(of: files, in: fileSystem)
    self.init(files: files, members: try files.members(in: fileSystem), external: external, remarks: remarks)
  }

  /// Copies a store in one consistent state.
  ///
  /// Holds SQLite's shared lock, writes nothing to or beside the store, and keeps this process's own locks.
  ///
  /// - Throws: `file-not-found`; `no-space`; `locked` or `changed-meanwhile` if a writer never pauses.
  init(copying path: FilePath, into folder: ExportFolder, fileSystem: FileSystem, progress: ExportProgress) throws {
    let original = try StoreFileSet.locate(path, in: fileSystem)
    guard try fileSystem.status(of: original.main)?.kind == .regular else {
      throw FileError(.notFound, operation: "export the store", path: path)
    }
    let target = folder.path.appending("evidence")
    let lock = try StoreReadLock(on: original, in: fileSystem)
    for attempt in 1...Self.attempts {
      try fileSystem.makeDirectory(target, permissions: .ownerReadWriteExecute)
      do {
        let before = try original.members(in: fileSystem)
        let values = try Self.external(of: original, in: fileSystem)
        let sizes = before.reduce(Int64(0)) { $0 + $1.status.size } + values.files.reduce(0) { $0 + $1.size }
        let holes = before.reduce(Int64(0)) { $0 + $1.status.size - $1.status.occupiedSize }
        try folder.requireRoom(sizes - holes)
        let copy = StoreFileSet(main: target.appending(original.main.lastComponent ?? "Store.sqlite"))
        try Self.copy(before, values.files, of: original, to: copy, fileSystem, sizes, progress)
        guard try original.members(in: fileSystem) == before else {
          throw FileError(.changed, operation: "copy the store", path: path)
        }
        lock.release()
        let (copied, large) = (try copy.members(in: fileSystem), try Self.external(of: copy, in: fileSystem).files)
        self.init(files: copy, members: copied, external: large, remarks: values.remarks)
        return
      } catch let error as FileError {
        try fileSystem.removeTree(target)
        guard error.kind == .changed || error.kind == .notFound, attempt < Self.attempts else { throw error }
        LogReadLock.rest()
      }
    }
    throw FileError(.changed, operation: "copy the store", path: path)
  }

  private static func copy(
    _ members: [StoreFileSet.Member], _ values: [Value], of original: StoreFileSet, to copy: StoreFileSet,
    _ fileSystem: FileSystem, _ total: Int64, _ progress: ExportProgress
  ) throws {
    var done: Int64 = 0
    for member in members where member.status.kind == .regular {
      let file = try LastingFile(member.path, in: fileSystem)
      try fileSystem.copyStill(file, count: file.status.size, to: copy.path(of: member.part))
      done += file.status.size
      guard progress(.copying, done, total) else { throw SupportBundleErrors.cancelled() }
    }
    for value in values {
      let place = copy.folder.pushing(FilePath(value.name))
      try fileSystem.makeDirectory(place.folder, permissions: .ownerReadWriteExecute)
      try fileSystem.duplicate(value.path, to: place)
      done += value.size
      guard progress(.copying, done, total) else { throw SupportBundleErrors.cancelled() }
    }
  }

  /// Lists external values, reporting omitted links and unportable names.
  private static func external(
    of files: StoreFileSet, in fileSystem: FileSystem
  ) throws(FileError) -> (files: [Value], remarks: [String]) {
    guard let root = files.path(of: .externalData).lastComponent else { return ([], []) }
    var found: [Value] = []
    var leftOut = 0
    for file in try files.largeValues(in: fileSystem).files {
      let name = ([root] + file.relative).map(\.string).joined(separator: "/")
      guard file.status.kind == .regular, !file.isLink, isPlain(name) else {
        leftOut += 1
        continue
      }
      found.append((name, file.path, file.status.size))
    }
    let remarks = leftOut == 0 ? [] : ["large values left out, as links or without a plain name: \(leftOut)"]
    return (found.sorted { $0.name < $1.name }, remarks)
  }

  private static func isPlain(_ name: String) -> Bool {
    name.utf8.count < 200
      && name.unicodeScalars.allSatisfy { scalar in
        scalar.isASCII && scalar.value > 0x20 && scalar.value != 0x7f && !"\\:*?\"<>|%".unicodeScalars.contains(scalar)
      }
  }
}

/// The findings about a store.
struct ExportAnalysis {
  var examination: Examination

  var report: SalvageReport?

  var failure: String?

  var pages: EvidencePages?

  /// Analyses the store, including its faults.
  ///
  /// - Parameter usesReport: whether an earlier salvage's report may be used.
  /// - Throws: `cancelled`, or environmental errors.
  static func make(
    _ work: ExportWork, _ evidence: ExportEvidence, in folder: ExportFolder, usesReport: Bool = true,
    _ progress: @escaping ExportProgress
  ) throws -> ExportAnalysis {
    let fileSystem = work.fileSystem
    let examination: Examination
    do {
      examination = try Examiner(fileSystem: fileSystem).examine(
        evidence.files.main, model: work.options.model,
        options: .init(depth: .full) { progress(.examining, Int64($0), Int64($1)) })
    } catch {
      guard progress(.examining, 0, 1) else { throw SupportBundleErrors.cancelled() }
      throw error
    }
    var analysis = ExportAnalysis(examination: examination)
    guard evidence.hasMain else {
      analysis.failure = "the main file is missing"
      return analysis
    }
    if usesReport, case .quarantined(_, let path?) = work.source, try fileSystem.status(of: path) != nil {
      do {
        analysis.report = try SalvageReport.read(path, in: fileSystem)
      } catch {
        let error = SalvageError(any: error)
        if error.isEnvironmental { throw error }  // An unreadable report is made again.
      }
    }
    let rows = folder.path.appending("rows.sqlite")
    if analysis.report == nil { try folder.requireRoom(evidence.bytes) }
    do {
      if analysis.report == nil { analysis.report = try look(work, evidence, rows, progress) }
      analysis.pages = try EvidencePages(evidence.files.main, in: fileSystem)
    } catch {
      let error = SalvageError(any: error)
      switch error.kind {
      case .cancelled: throw SupportBundleErrors.cancelled()
      case .nothingFound, .verificationFailed, .model, .unfitModel: analysis.failure = error.detail
      default: throw error
      }
    }
    for part in [StoreFileSet.Part.main, .wal, .sharedMemory, .journal] {
      try fileSystem.unlink(StoreFileSet(main: rows).path(of: part))
    }
    return analysis
  }

  private static func look(
    _ work: ExportWork, _ evidence: ExportEvidence, _ rows: FilePath, _ progress: @escaping ExportProgress
  ) throws(SalvageError) -> SalvageReport {
    let kits = [KitFolder(for: work.source.originalPath, home: work.home, in: work.fileSystem)]
    let salvaging = Salvager.Options(
      kit: .folders(kits), scope: try work.source.evidence(work.surroundings)
    ) { _, done, total in progress(.analysing, done, total) }
    let salvager = Salvager(surroundings: work.surroundings)
    do throws(SalvageError) {
      return try salvager.look(
        at: evidence.files.main, into: rows, model: work.options.model.map(SalvageModel.init), options: salvaging
      ).report
    } catch  where error.kind == .unfitModel {
      // An unrelated model reveals no damage.
      return try salvager.look(at: evidence.files.main, into: rows, options: salvaging).report
    }
  }

  /// Returns the report for a bundle, without an app's own keys, which can be user data.
  func salvage(_ reduction: PathReduction) throws -> [UInt8] {
    guard let report else {
      let words = failure ?? "nothing could be read"
      return try JSON.bytes(of: ["found": "nothing", "words": words], .line, to: "export the report")
    }
    let keys: Set<String> = ["lostKeys", "lostKeysEstimated", "primaryKeys"]
    return try reduction.json(report, without: report.isCoreData ? [] : keys)
  }
}

/// The private folder of one export, removed with this value.
///
/// It is in `.lazaret-exporting` of the home, next to the bundle, or in the system's temporary folder.
package final class ExportFolder: Sendable {
  package static let name: FilePath.Component = ".lazaret-exporting"

  package enum Place: Sendable, Hashable {
    case home

    /// In an existing folder, or in the temporary one if not writable.
    case beside(FilePath)

    case temporary
  }

  package var path: FilePath { folder.path }

  private let folder: PrivateFolder
  private let fileSystem: FileSystem

  private static let operation = "make room for the export"

  /// Creates the folder, removing remains of killed exports.
  package init(_ place: Place = .home, home: FilePath, surroundings: Surroundings) throws(FileError) {
    fileSystem = surroundings.fileSystem
    let root = home.appending(Self.name)
    switch place {
    case .home:
      try fileSystem.makeDirectory(home)
      folder = try PrivateFolder(in: root, to: Self.operation, ownsRoot: true, surroundings)
    case .beside(let other):
      do throws(FileError) {
        folder = try PrivateFolder(in: other, or: other, to: Self.operation, surroundings)
      } catch {
        guard [.permissionDenied, .readOnlyFileSystem, .other].contains(error.kind) else { throw error }
        folder = try PrivateFolder(in: nil, to: Self.operation, surroundings)
      }
    case .temporary: folder = try PrivateFolder(in: nil, to: Self.operation, surroundings)
    }
    if place != .home, (try? fileSystem.status(of: root, followingLinks: false))?.kind == .directory {
      PrivateFolder.removeRemains(in: root, fileSystem)
      try? fileSystem.removeDirectory(root)
    }
  }

  /// Records the bundle's place, to remove its remains after a kill.
  func noteBundle(in folder: FilePath, prefix: String) throws { try self.folder.noteUnfinished(prefix, in: folder) }

  func requireRoom(_ bytes: Int64) throws(FileError) { try Self.requireRoom(bytes, at: path, fileSystem) }

  static func requireRoom(_ bytes: Int64, at folder: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    let free = try fileSystem.freeSpace(at: folder)
    guard free >= bytes else {
      throw FileError(
        .noSpace, operation: operation, path: folder, detail: "it needs \(bytes) bytes and \(free) are free",
        hint: "Free \(bytes - free) bytes there, or give another folder.", details: .init(neededBytes: bytes))
    }
  }
}
