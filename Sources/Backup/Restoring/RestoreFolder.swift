import Foundation
package import Platform
package import Salvage
package import SystemPackage

/// The hidden folder beside a place in which a backup is restored: `.App.sqlite.restoring`.
///
/// Everything is made in it. Once the restored store is whole, checked and on the disk, a note says so; from then on
/// a process that finds the folder, and nothing in the place, puts the store there. Before that, and where something is in the
/// place, the folder is a leftover.
package struct RestoreFolder: Sendable {
  /// The place that the store will get.
  package let target: StoreFileSet

  /// The folder.
  package let path: FilePath

  private let fileSystem: FileSystem

  /// The folder for a place, whether it is there or not.
  package init(for target: StoreFileSet, in fileSystem: FileSystem) {
    self.target = target
    self.fileSystem = fileSystem
    path = target.main.hiddenSibling(suffix: ".restoring")
  }

  struct Note: Codable {
    var format = "lazaret-restore"
    var version = 1
    var id: BackupIdentifier

    /// What of the backup it is; nil for a store of some of its records, where it is too long, and in notes of earlier versions.
    var restored: RestoreAccount?

    /// Whether it is the whole backup; false for a store of some of its records, nil in notes of earlier versions.
    var isWhole: Bool?

    private enum CodingKeys: String, CodingKey {
      case format, version, id, restored
      case isWhole = "whole"
    }
  }

  /// The store that is being restored.
  package var store: StoreFileSet { StoreFileSet(main: path.appending("Store.sqlite")) }

  /// Where a backup that is not whole is put together, before what is left of it is salvaged.
  var remains: StoreFileSet { StoreFileSet(main: path.appending("Remains.sqlite")) }

  /// What a salvage has set aside, and where it goes: beside the store.
  private var aside: FilePath { store.main.sibling(suffix: "-set-aside") }
  var asideTarget: FilePath { target.main.sibling(suffix: "-set-aside") }

  private static let noteLimit = 4 << 20

  private var note: FilePath { path.appending("ready.json") }
  private var journal: FilePath { path.appending("install.moving") }

  /// Whether an earlier run left something.
  package func isThere() throws(BackupError) -> Bool {
    try wrapping(BackupError.init) { () throws(FileError) in
      try fileSystem.status(of: path, followingLinks: false)?.kind == .directory
    }
  }

  /// Makes the folder, empty; what an earlier run left goes.
  ///
  /// - Returns: its lock, to be held until the store is in its place or the folder is gone: a process that opens the store
  ///   meanwhile leaves the folder alone then.
  /// - Throws: `locked` where another process is restoring a backup there.
  package func make() throws(BackupError) -> FolderLock {
    if try isThere() {
      guard let lock = try lockUnlessTaken() else {
        throw BackupError(
          FileError(
            .locked, operation: "restore the backup", path: target.main,
            detail: "another process is restoring a backup there"))
      }
      try remove()
      _ = consume lock
    }
    do throws(FileError) {
      try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
      return try FolderLock(path, patience: 0, in: fileSystem)
    } catch {
      throw BackupError(error)
    }
  }

  /// The lock of the folder; nil where another process has it.
  private func lockUnlessTaken() throws(BackupError) -> FolderLock? {
    do throws(FileError) {
      return try FolderLock(path, patience: 0, in: fileSystem)
    } catch {
      guard error.kind == .locked else { throw BackupError(error) }
      return nil
    }
  }

  /// Says that the store in it is whole.
  ///
  /// - Parameter report: what was restored; nil for a store of some of the backup's records.
  package func markReady(_ id: BackupIdentifier, _ report: RestoreReport?) throws(BackupError) {
    try wrapping(BackupError.init) { () throws(FileError) in
      var bytes = try JSON.bytes(
        of: Note(id: id, restored: report.map { RestoreAccount($0) }, isWhole: report != nil), .line,
        to: "restore the backup", at: note)
      if bytes.count > Self.noteLimit {
        // Where so much is lost the store counts, and not the account of it, which the backup gives again.
        bytes = try JSON.bytes(of: Note(id: id, isWhole: report != nil), .line, to: "restore the backup", at: note)
      }
      try fileSystem.synchronizeDirectory(path)
      try fileSystem.writeAtomically(bytes, to: note, replacing: true)
    }
  }

  /// Puts the store into its place, which must be empty, and removes the folder.
  ///
  /// The caller holds the lock of the place's folder. After a kill at any moment the store is whole here or whole in its
  /// place, and `finishInterrupted` brings it there.
  package func install() throws(BackupError) {
    do {
      if let member = try target.members(in: fileSystem).first {
        throw FileError(.placeTaken, operation: "put the restored store into its place", path: member.path)
      }
      var move = try Relocation(of: store, to: target, note: "restore", in: fileSystem)
      try move.run(
        journal: journal, in: fileSystem, takesDigests: false, progress: { _, _ in }, whenArrived: { _ in },
        whenMoved: {}, whenTakenBack: {})
    } catch {
      throw BackupError(moving: error, path: target.main)
    }
    try finishInstallation()
  }

  /// Puts what was set aside beside the store that is in its place, and removes the folder.
  private func finishInstallation() throws(BackupError) {
    try wrapping(BackupError.init) { () throws(FileError) in
      if try fileSystem.status(of: aside, followingLinks: false) != nil,
        try fileSystem.status(of: asideTarget, followingLinks: false) == nil
      {
        try fileSystem.install(aside, at: asideTarget, replacing: false)
      }
    }
    try remove()
  }

  /// How an interrupted restore ended.
  package enum Outcome: Sendable, Hashable {
    /// The restored store is in its place.
    case installed(BackupIdentifier)

    /// It is gone, and the place is as it was.
    case void
  }

  /// Ends what an earlier run left: a store that was whole, and whose place is empty, is put there.
  ///
  /// The caller holds the lock of the place's folder, and has finished what was interrupted in the quarantine: the store
  /// that was here before may be on its way there or back.
  ///
  /// - Returns: nil where nothing was left, or another process is at work there.
  package func finishInterrupted() throws(BackupError) -> Outcome? {
    guard try isThere(), let lock = try lockUnlessTaken() else { return nil }
    let outcome = try finishLocked()
    _ = consume lock
    return outcome
  }

  /// Ends what a killed restore left beside a new place, such as a result that was asked for.
  ///
  /// - Throws: `locked` where another process works in the place's folder, or what the file system says.
  package static func finishInterrupted(_ result: FilePath, in fileSystem: FileSystem) throws(BackupError) {
    let folder = RestoreFolder(for: StoreFileSet(main: result), in: fileSystem)
    let lock = try wrapping(BackupError.init) { () throws(FileError) in
      try FolderLock(result.folder, patience: 0, in: fileSystem)
    }
    _ = try folder.finishInterrupted()
    _ = consume lock
  }

  private func finishLocked() throws(BackupError) -> Outcome {
    let id = try readyNote()?.id
    do {
      if try fileSystem.status(of: journal, followingLinks: false) != nil,
        let (_, outcome) = try Relocation.finish(journal: journal, in: fileSystem), outcome == .moved, let id
      {
        try finishInstallation()
        return .installed(id)
      }
      if let id, try fileSystem.status(of: store.main, followingLinks: false) == nil,
        try fileSystem.status(of: target.main, followingLinks: false) != nil
      {
        // It is there already, and only the folder was left.
        try finishInstallation()
        return .installed(id)
      }
      if let id, try target.members(in: fileSystem).isEmpty,
        try fileSystem.status(of: store.main, followingLinks: false) != nil
      {
        try install()
        return .installed(id)
      }
    } catch {
      throw BackupError(moving: error, path: target.main)
    }
    try remove()
    return .void
  }

  /// The note on the store that is whole in the folder; nil where none is.
  func readyNote() throws(BackupError) -> Note? {
    let bytes = try wrapping(BackupError.init) { () throws(FileError) -> [UInt8]? in
      guard try fileSystem.status(of: note, followingLinks: false) != nil else { return nil }
      return try fileSystem.contents(of: note, limit: Self.noteLimit)
    }
    // A note that cannot be read was not written by this software: nothing is installed because of it.
    guard let bytes, let found = try? JSONDecoder().decode(Note.self, from: Data(bytes)),
      found.format == "lazaret-restore", found.version == 1
    else { return nil }
    return found
  }

  /// Removes the folder with everything in it, the note first.
  package func remove() throws(BackupError) {
    guard try isThere() else { return }
    try wrapping(BackupError.init) { () throws(FileError) in
      try fileSystem.unlink(note)
      try fileSystem.synchronizeDirectory(path)
      try fileSystem.removeTree(path)
      try fileSystem.synchronizeDirectory(path.folder)
    }
  }

  /// Removes the folder unless its store is on its way into its place.
  package func removeUnlessInstalling() throws(BackupError) {
    let isMoving = try wrapping(BackupError.init) { () throws(FileError) in
      try fileSystem.status(of: journal, followingLinks: false) != nil
    }
    if !isMoving { try remove() }
  }
}

extension BackupError {
  /// What a move failed with.
  init(moving error: any Error, path: FilePath) {
    if let error = error as? BackupError {
      self = error
    } else if let error = error as? FileError {
      self.init(error)
    } else {
      self.init(
        FileError(
          .other, operation: "put the restored store into its place", path: path,
          detail: "the move failed for a reason that was not foreseen"))
    }
  }
}

/// What a restore brought back, as its note says until the store is in its place.
struct RestoreAccount: Codable {
  /// The backups that were read, the full one first.
  var chain: [BackupIdentifier]

  /// The bytes of the database, or of the files of evidence.
  var bytes: Int64

  /// The large values in files of their own.
  var values: Int

  /// The blocks of the backup that are lost.
  var lostBlocks: [RestoreReport.LostBlock]

  /// The large values that are lost.
  var lostValues: [String]

  /// Whether the content is byte for byte what was backed up.
  var isContentRight: Bool

  /// What was salvaged; nil where nothing was, and in notes of earlier versions.
  var salvage: SalvageReport?

  /// Whether the salvaged store has no metadata; nil in notes of earlier versions.
  var lacksMetadata: Bool?

  /// The account of a restore.
  init(_ report: RestoreReport) {
    chain = report.chain
    bytes = report.bytes
    values = report.values
    lostBlocks = report.lostBlocks
    lostValues = report.lostValues
    isContentRight = report.isContentRight
    salvage = report.salvage
    lacksMetadata = report.lacksMetadata
  }
}

/// What a restore brought back, and what it could not.
package struct RestoreReport: Sendable, Hashable, Encodable {
  /// A block of a backup that is lost.
  package struct LostBlock: Sendable, Hashable, Codable {
    /// The file of the backup.
    package var file: String

    /// The number of the block, from 0.
    package var block: Int
  }

  /// The backup that was restored.
  package var id: BackupIdentifier

  /// The backups that were read, the full one first.
  package var chain: [BackupIdentifier]

  /// Where the store is.
  package var path: FilePath

  /// The bytes of the database, or of the files of evidence.
  package var bytes: Int64

  /// The large values in files of their own.
  package var values: Int

  /// The blocks of the backup that are lost.
  package var lostBlocks: [LostBlock] = []

  /// Whether the database, or the evidence, is byte for byte what was backed up; salvaged where it is not.
  package var isContentRight = true

  /// The large values that are lost, by the names of their files: those that could not be unpacked, and those that records
  /// refer to and that the backup does not have.
  package var lostValues: [String] = []

  /// What of the database was salvaged, and what is lost; nil where it was not salvaged.
  package var salvage: SalvageReport?

  /// Whether what was salvaged of a Core Data store has no metadata, so that it is none any more.
  package var lacksMetadata = false

  /// Whether everything is as it was when the backup was taken.
  package var isComplete: Bool { isContentRight && lostBlocks.isEmpty && lostValues.isEmpty }

  /// Why the store was not sound when it was backed up, as what was restored is not; nil where that is, was salvaged, or nothing
  /// tells.
  ///
  /// - Parameter backup: the one that was restored.
  package func damage(_ backup: StoredBackup) -> (code: String, words: String)? {
    salvage == nil ? backup.damage : nil
  }

  /// Writes the report of a restore, with `complete`.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "backup": id, "chain": chain, "store": PathText(path), "bytes": bytes, "values": values, "complete": isComplete,
      "lostBlocks": lostBlocks, "lostValues": lostValues, "salvage": salvage,
      "metadata": salvage.map { _ in lacksMetadata ? "missing" : "present" },
    ])
  }
}
