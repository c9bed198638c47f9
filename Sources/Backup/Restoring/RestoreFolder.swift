import Foundation
package import Platform
package import Salvage
package import SystemPackage

/// The hidden folder of a restore: `.App.sqlite.restoring`, beside the target.
///
/// A note marks the store as whole, checked and synchronized; then any process installs it at a free target. Otherwise
/// the folder is a leftover.
package struct RestoreFolder: Sendable {
  let target: StoreFileSet

  let path: FilePath

  private let fileSystem: FileSystem

  package init(for target: StoreFileSet, in fileSystem: FileSystem) {
    self.target = target
    self.fileSystem = fileSystem
    path = target.main.hiddenSibling(suffix: ".restoring")
  }

  struct Note: Codable {
    var format = "lazaret-restore"
    var version = 1
    var id: BackupIdentifier

    /// The restore's account; nil for a store of selected records, if too long, and in earlier notes.
    var restored: RestoreAccount?

    /// Whether it is the whole backup; nil in earlier notes.
    var isWhole: Bool?

    private enum CodingKeys: String, CodingKey {
      case format, version, id, restored
      case isWhole = "whole"
    }
  }

  /// The store being restored.
  package var store: StoreFileSet { StoreFileSet(main: path.appending("Store.sqlite")) }

  /// The damaged backup, unpacked for a salvage.
  var remains: StoreFileSet { StoreFileSet(main: path.appending("Remains.sqlite")) }

  /// The salvage's set-aside data, to be installed beside the store.
  private var aside: FilePath { store.main.sibling(suffix: "-set-aside") }
  var asideTarget: FilePath { target.main.sibling(suffix: "-set-aside") }

  private static let noteLimit = 4 << 20

  private var note: FilePath { path.appending("ready.json") }
  private var journal: FilePath { path.appending("install.moving") }

  /// Whether an earlier run left the folder.
  package func isThere() throws -> Bool { try fileSystem.entry(at: path)?.kind == .directory }

  /// Makes an empty folder.
  ///
  /// - Returns: its lock, held until installation or removal, so that other processes ignore the folder.
  /// - Throws: `locked` if another process is restoring there.
  package func make() throws -> FolderLock {
    if try isThere() {
      guard let lock = try FolderLock.unlessTaken(path, in: fileSystem) else {
        throw BackupError(
          FileError(
            .locked, operation: "restore the backup", path: target.main,
            detail: "another process is restoring a backup there"))
      }
      try remove()
      lock.release()
    }
    try fileSystem.makeDirectory(path, permissions: .init(rawValue: 0o700))
    return try FolderLock(path, patience: 0, in: fileSystem)
  }

  /// Marks the store as whole.
  ///
  /// - Parameter report: nil for a store of selected records.
  package func markReady(_ id: BackupIdentifier, _ report: RestoreReport?) throws {
    var bytes = try JSON.bytes(
      of: Note(id: id, restored: report.map { RestoreAccount($0) }, isWhole: report != nil), .line,
      to: "restore the backup", at: note)
    if bytes.count > Self.noteLimit {
      // With too many losses for a note the account is omitted; restoring the backup again yields it.
      bytes = try JSON.bytes(of: Note(id: id, isWhole: report != nil), .line, to: "restore the backup", at: note)
    }
    try fileSystem.synchronizeDirectory(path)
    try fileSystem.writeAtomically(bytes, to: note, replacing: true)
  }

  /// Installs the store at the free target, and deletes the folder.
  ///
  /// The caller holds the lock of the target's folder. After a kill, `finishInterrupted` completes the installation.
  package func install() throws {
    do {
      if let member = try target.members(in: fileSystem).first {
        throw FileError(.placeTaken, operation: "put the restored store into its place", path: member.path)
      }
      var move = try Relocation(of: store, to: target, note: "restore", in: fileSystem)
      try move.run(
        journal: journal, in: fileSystem, takesDigests: false, progress: { _, _ in }, whenArrived: { _ in },
        whenMoved: {}, whenTakenBack: {})
    } catch { throw BackupError(moving: error, path: target.main) }
    try finishInstallation()
  }

  private func finishInstallation() throws {
    if try fileSystem.hasEntry(at: aside), try !fileSystem.hasEntry(at: asideTarget) {
      try fileSystem.install(aside, at: asideTarget, replacing: false)
    }
    try remove()
  }

  package enum Outcome: Sendable, Hashable {
    case installed(BackupIdentifier)

    /// The folder was deleted, and the target is unchanged.
    case void
  }

  /// Finishes an earlier run: installs a whole store if its target is free.
  ///
  /// The caller holds the lock of the target's folder, and has finished quarantine moves, which may concern the
  /// previous store.
  ///
  /// - Returns: nil without remains, or if another process is at work.
  package func finishInterrupted() throws -> Outcome? {
    guard try isThere(), let lock = try FolderLock.unlessTaken(path, in: fileSystem) else { return nil }
    let outcome = try finishLocked()
    lock.release()
    return outcome
  }

  private func finishLocked() throws -> Outcome {
    let id = try readyNote()?.id
    do {
      if try fileSystem.hasEntry(at: journal),
        let (_, outcome) = try Relocation.finishInterrupted(journal: journal, in: fileSystem), outcome == .moved, let id
      {
        try finishInstallation()
        return .installed(id)
      }
      if let id, try !fileSystem.hasEntry(at: store.main), try fileSystem.hasEntry(at: target.main) {
        try finishInstallation()
        return .installed(id)
      }
      if let id, try target.members(in: fileSystem).isEmpty, try fileSystem.hasEntry(at: store.main) {
        try install()
        return .installed(id)
      }
    } catch { throw BackupError(moving: error, path: target.main) }
    try remove()
    return .void
  }

  /// Returns the note on a whole store in the folder, if any.
  func readyNote() throws -> Note? {
    guard try fileSystem.hasEntry(at: note) else { return nil }
    let bytes = try fileSystem.contents(of: note, limit: Self.noteLimit)
    // An unreadable note is not of this software and must not cause an installation.
    guard let found = try? JSONDecoder().decode(Note.self, from: Data(bytes)),
      found.format == "lazaret-restore", found.version == 1
    else { return nil }
    return found
  }

  /// Deletes the folder, the note first.
  func remove() throws {
    guard try isThere() else { return }
    try fileSystem.unlink(note)
    try fileSystem.synchronizeDirectory(path)
    try fileSystem.removeTree(path)
    try fileSystem.synchronizeDirectory(path.folder)
  }

  /// Deletes the folder unless its store is being installed.
  package func removeUnlessInstalling() throws { if try !fileSystem.hasEntry(at: journal) { try remove() } }
}

extension FolderLock {
  /// Takes the lock at once; nil if another process has it.
  static func unlessTaken(_ folder: FilePath, in fileSystem: FileSystem) throws -> FolderLock? {
    do throws(FileError) { return try FolderLock(folder, patience: 0, in: fileSystem) } catch {
      guard error.kind == .locked else { throw BackupError(error) }
      return nil
    }
  }
}

extension BackupError {
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

/// The result of a restore, kept in its note until installation.
struct RestoreAccount: Codable {
  /// The backups read, the full one first.
  var chain: [BackupIdentifier]

  var bytes: Int64

  var values: Int

  var lostBlocks: [RestoreReport.LostBlock]

  var lostValues: [String]

  var isContentRight: Bool

  /// The salvage; nil without one and in earlier notes.
  var salvage: SalvageReport?

  /// Whether the salvaged store lacks metadata; nil in earlier notes.
  var lacksMetadata: Bool?

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

/// The result of a restore, with its losses.
package struct RestoreReport: Sendable, Hashable, Encodable {
  package struct LostBlock: Sendable, Hashable, Codable {
    package var file: String

    /// The number of the block, from 0.
    package var block: Int
  }

  package var id: BackupIdentifier

  /// The backups read, the full one first.
  package var chain: [BackupIdentifier]

  package var path: FilePath

  package var bytes: Int64

  package var values: Int

  package var lostBlocks: [LostBlock] = []

  /// Whether the content is exact byte for byte; else it was salvaged.
  package var isContentRight = true

  /// The file names of lost or missing external values.
  package var lostValues: [String] = []

  package var salvage: SalvageReport?

  /// Whether a salvaged Core Data store lacks metadata, and so is one no more.
  package var lacksMetadata = false

  /// Whether the store is exactly as backed up.
  package var isComplete: Bool { isContentRight && lostBlocks.isEmpty && lostValues.isEmpty }

  /// Returns why the store was not sound when backed up, unless salvaged.
  package func damage(_ backup: StoredBackup) -> (code: String, words: String)? { salvage == nil ? backup.damage : nil }

  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "backup": id, "chain": chain, "store": PathText(path), "bytes": bytes, "values": values, "complete": isComplete,
      "lostBlocks": lostBlocks, "lostValues": lostValues, "salvage": salvage,
      "metadata": salvage.map { _ in lacksMetadata ? "missing" : "present" },
    ])
  }
}
