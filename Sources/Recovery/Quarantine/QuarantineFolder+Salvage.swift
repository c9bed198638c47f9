package import StoreFiles
package import SystemPackage

/// The files of one result of a salvage, beside the quarantined store: `….salvaged.sqlite` and its companions.
///
/// A repeated salvage takes the names of another number, so that earlier results stay.
package struct SalvageFiles: Sendable, Hashable {
  /// The salvaged store.
  package let store: StoreFileSet

  /// The report.
  package let report: FilePath

  /// What is not part of the store.
  package var setAside: FilePath { store.main.sibling(suffix: "-set-aside") }

  init(of id: String, number: Int, in folder: FilePath) {
    let mark = number == 1 ? "" : "-\(number)"
    store = StoreFileSet(main: folder.appending("\(id).salvaged\(mark).sqlite"))
    report = folder.appending("\(id).salvage\(mark).json")
  }

  private static let maximumNumber = 1_000_000

  /// The files of the result whose store has a name; nil where it is none that a folder gives.
  init?(of id: String, named name: FilePath.Component, in folder: FilePath) {
    guard let number = Self.number(in: name.string, after: "\(id).salvaged", before: ".sqlite") else { return nil }
    self.init(of: id, number: number, in: folder)
  }

  /// The number of the result that a file belongs to; nil where it belongs to none.
  static func number(of name: String, _ id: String) -> Int? {
    for ending in ["", "-wal", "-shm", "-journal", "-set-aside"] {
      if let number = number(in: name, after: "\(id).salvaged", before: ".sqlite" + ending) { return number }
    }
    return number(in: name, after: ".\(id).salvaged", before: "_SUPPORT")
      ?? number(in: name, after: "\(id).salvage", before: ".json")
  }

  private static func number(in name: String, after prefix: String, before suffix: String) -> Int? {
    guard name.utf8.count >= prefix.utf8.count + suffix.utf8.count, name.hasPrefix(prefix), name.hasSuffix(suffix)
    else {
      return nil
    }
    let mark = name.dropFirst(prefix.count).dropLast(suffix.count)
    if mark.isEmpty { return 1 }
    guard mark.first == "-", let number = Int(mark.dropFirst()), (2...maximumNumber).contains(number),
      mark == "-\(number)"
    else { return nil }
    return number
  }
}

// MARK: - Salvaging

extension QuarantineFolder {
  /// The lock for salvaging a store of this folder, or writing into the receipts; held until the value ends.
  ///
  /// A caller that also needs the lock of a folder with stores and has it already must not wait for this one.
  ///
  /// - Throws: `locked` when the patience is over.
  package func salvageLock(patience: Int = 0) throws(FileError) -> FolderLock {
    do throws(FileError) {
      return try FolderLock(path, patience: patience, in: fileSystem)
    } catch {
      guard error.kind == .locked else { throw error }
      throw FileError(
        .locked, operation: "lock the quarantine", path: path,
        detail: "another process is salvaging a store in it",
        hint: "Wait until it is done, then run the same command again.")
    }
  }

  /// The private folder in which a store is salvaged.
  package func workingFolder(of id: String) -> FilePath { path.appending(".\(id).salvaging") }

  /// Makes the private folder for a salvage, and removes what a killed one left of its results.
  ///
  /// The caller holds the salvage lock.
  package func beginSalvage(of id: String) throws -> FilePath {
    let folder = workingFolder(of: id)
    try fileSystem.removeTree(folder)
    try removeUnnamedResults(of: id)
    try fileSystem.makeDirectory(folder, permissions: .init(rawValue: 0o700))
    return folder
  }

  /// Removes the private folder.
  package func endSalvage(of id: String) throws(FileError) { try fileSystem.removeTree(workingFolder(of: id)) }

  /// The names that a new result gets: the first that none of the receipt's results has.
  package func freeResult(of id: String) throws -> SalvageFiles {
    let first = SalvageFiles(of: id, number: 1, in: path)
    guard let named = try namedResults(of: id) else {
      // Nothing says which one counts: the first one stays.
      let isFree = try fileSystem.status(of: first.store.main, followingLinks: false) == nil
      return isFree ? first : SalvageFiles(of: id, number: 2, in: path)
    }
    var number = 1
    while named.contains(SalvageFiles(of: id, number: number, in: path)) { number += 1 }
    return SalvageFiles(of: id, number: number, in: path)
  }

  /// The files of the results that a receipt names; nil where there is no receipt.
  private func namedResults(of id: String) throws -> Set<SalvageFiles>? {
    guard let receipt = try store(named: id).receipt else { return nil }
    let results = (receipt.salvage?.result).map { [$0] } ?? []
    return Set((results + (receipt.salvage?.others ?? [])).compactMap { files(of: $0, id) })
  }

  /// Removes what an interrupted salvage has left under names that the receipt does not have.
  private func removeUnnamedResults(of id: String) throws {
    guard let named = try namedResults(of: id) else { return try remove(try freeResult(of: id)) }
    let numbers = Set(try fileSystem.entries(of: path).compactMap { SalvageFiles.number(of: $0.string, id) })
    for number in numbers.sorted() {
      let files = SalvageFiles(of: id, number: number, in: path)
      if !named.contains(files) { try remove(files) }
    }
  }

  /// The files of the current result that a receipt names; nil where there is none, or a name is not one that this folder
  /// gives.
  package func result(of stored: QuarantinedStore) -> SalvageFiles? {
    stored.receipt?.salvage?.result.flatMap { files(of: $0, stored.id) }
  }

  /// The files of a result; nil where its name is not one that this folder gives.
  package func files(of result: Receipt.Salvage.Result, _ id: String) -> SalvageFiles? {
    result.name.path?.lastComponent.flatMap { SalvageFiles(of: id, named: $0, in: path) }
  }

  /// Whether the store of a result is there, and as it was made.
  package func isIntact(_ result: Receipt.Salvage.Result, _ files: SalvageFiles) throws -> Bool {
    guard try fileSystem.status(of: files.store.main, followingLinks: false)?.kind == .regular else { return false }
    for part in [StoreFileSet.Part.wal, .journal] {
      if try fileSystem.status(of: files.store.path(of: part))?.size ?? 0 > 0 { return false }
    }
    return try FileDigest(of: fileSystem.open(files.store.main)).hexadecimal == result.sha256
  }

  /// Gives a finished result its names, the store's last.
  ///
  /// The caller holds the salvage lock.
  package func keep(
    _ made: StoreFileSet, setAside: FilePath?, report: [UInt8], as files: SalvageFiles
  ) throws {
    do {
      let external = made.path(of: .externalData)
      if try fileSystem.status(of: external, followingLinks: false)?.kind == .directory {
        try fileSystem.rename(external, to: files.store.path(of: .externalData))
      }
      if let setAside {
        try fileSystem.synchronizeFile(setAside)
        try fileSystem.install(setAside, at: files.setAside, replacing: false)
      }
      try fileSystem.writeAtomically(report, to: files.report, replacing: true)
      try fileSystem.synchronizeFile(made.main)
      try fileSystem.install(made.main, at: files.store.main, replacing: false)
    } catch {
      // The first error is the one to report; what cannot be removed now is removed by the next salvage.
      try? remove(files)
      throw error
    }
  }

  /// Removes a result, the store first.
  package func remove(_ files: SalvageFiles) throws(FileError) {
    for part in [StoreFileSet.Part.main, .wal, .sharedMemory, .journal] {
      try removeIfThere(files.store.path(of: part))
    }
    try fileSystem.removeTree(files.store.path(of: .externalData))
    try removeIfThere(files.setAside)
    try removeIfThere(files.report)
  }

  private func removeIfThere(_ path: FilePath) throws(FileError) {
    if try fileSystem.status(of: path, followingLinks: false) != nil { try fileSystem.unlink(path) }
  }

  /// Changes a receipt, whole or not at all; nothing is done where it is missing or cannot be read.
  ///
  /// The caller holds the salvage lock.
  ///
  /// - Returns: the store with its receipt as it is now.
  @discardableResult
  package func update(_ id: String, _ change: (inout Receipt) -> Void) throws -> QuarantinedStore {
    let stored = try store(id)
    guard var receipt = stored.receipt else { return stored }
    change(&receipt)
    if receipt == stored.receipt { return stored }
    try fileSystem.writeAtomically(try receipt.json(), to: stored.receiptPath, replacing: true)
    return try store(id)
  }
}
