package import Platform
package import SystemPackage

extension QuarantineFolder {
  /// Puts a quarantined store back as one unit, and keeps its receipt as `….released.json`.
  ///
  /// The caller holds the destination's folder lock.
  ///
  /// - Parameter destination: nil takes the original place.
  /// - Throws: `place-taken` if any part of a store is there; `evidence-changed` if a file differs from the receipt.
  package func release(_ id: String, to destination: StoreFileSet? = nil) throws -> StoreFileSet {
    let store = try store(named: id)
    let target = try destination ?? originalPlace(of: store)
    if let member = try target.members(in: fileSystem).first {
      throw LazaretError(
        .placeTaken, operation: "release the store", path: member.path, detail: "another store is in its place")
    }
    try verify(store)
    // Another process may be salvaging the store.
    let salvaging = try salvageLock()
    let lock = try StoreLock(on: store.files, in: fileSystem)
    var relocation = try Relocation(of: store.files, to: target, note: "release", in: fileSystem)
    let date = surroundings.now()
    let order = try lastOrder(at: target.main) + 1
    try move(
      &relocation, id: id, receiptPath: releasedReceiptPath(of: id), formerReceiptPath: receiptPath(of: id)
    ) { _ in
      guard var receipt = store.receipt else { return nil }
      receipt.released = Receipt.Release(date: date.rfc3339, path: PathText(target.main), order: order)
      receipt.salvage?.isWanted = false
      receipt.add(Receipt.Moment(.released, at: date, path: PathText(target.main)))
      return try receipt.json()
    }
    lock.release()
    salvaging.release()
    return target
  }

  /// Returns the store's place in its receipt.
  func originalPlace(of store: QuarantinedStore) throws -> StoreFileSet {
    guard let original = store.receipt?.originalPath.path, original.isAbsolute, original.lastComponent != nil else {
      throw LazaretError(
        .receiptUnreadable, operation: "release the store", path: store.receiptPath,
        detail: "it does not say where the store came from", hint: LazaretErrorKind.givePlace)
    }
    return StoreFileSet(main: original)
  }

  /// Compares every file with the receipt, if any.
  ///
  /// - Throws: `evidence-changed` for the first difference.
  package func verify(_ store: QuarantinedStore) throws {
    guard let difference = try check(evidenceOf: store, .content)?.differences.first else { return }
    let detail =
      switch difference.kind {
      case .missing: "it is missing since it was quarantined"
      case .size, .content: "its content has changed since it was quarantined"
      case .added: "it was not there when the store was quarantined"
      }
    throw LazaretError(
      .evidenceChanged, operation: "check the quarantined store", path: difference.name.path.map { path.pushing($0) },
      detail: detail, hint: "It was changed here. Copy the files elsewhere by hand if you want them as they are now.")
  }

  /// Removes a quarantined store for good, with its receipt and salvaged stores.
  package func discard(_ id: String) throws {
    let store = try released(id) ?? store(named: id, includingMissing: true)
    let salvaging = try salvageLock()
    let lock = try StoreLock(on: store.files, in: fileSystem)
    // The mark lets the next run finish the removal.
    try fileSystem.writeAtomically([], to: discardMark(of: id), replacing: true)
    lock.release()
    try finishDiscarding(id)
    salvaging.release()
  }

  private func finishDiscarding(_ id: String) throws {
    for folder in [files(of: id).path(of: .externalData), workingFolder(of: id)] { try fileSystem.removeTree(folder) }
    for files in try results(of: id) { try remove(files) }
    for name in try fileSystem.entries(of: path) where name.string.hasPrefix("\(id).") {
      try fileSystem.unlink(path.appending(name))
    }
    try fileSystem.synchronizeDirectory(path)
    try fileSystem.unlink(discardMark(of: id))
  }
}

// MARK: - After an interruption

extension QuarantineFolder {
  /// Unfinished work that was completed.
  package struct Finished: Sendable, Hashable {
    enum Kind: String, Sendable { case quarantine, release, discard }

    var kind: Kind

    var id: String

    /// False if the store is back at its old place.
    package var isDone: Bool

    /// The store's path outside quarantine.
    var path: FilePath?
  }

  /// Completes or undoes interrupted moves and completes removals, under the caller's lock of the parent folder.
  package func finishInterrupted() throws -> [Finished] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    var result: [Finished] = []
    for component in try fileSystem.entries(of: path) {
      let name = component.string
      guard name.hasPrefix(".") else { continue }
      if name.hasSuffix(".unfinished") || name.hasSuffix(".arriving") {
        // A half-written file; its writer is gone, since the locks are held.
        if !Self.isArriving(name, in: try fileSystem.entries(of: path)) {
          try unlessSalvaging { () throws(FileError) in try fileSystem.unlink(path.appending(component)) }
        }
      } else if let id = Self.id(in: name, before: ".discarding") {
        try finishDiscarding(id)
        result.append(Finished(kind: .discard, id: id, isDone: true, path: nil))
      } else if let id = Self.id(in: name, before: ".salvaging") {
        try unlessSalvaging { () throws(FileError) in try fileSystem.removeTree(workingFolder(of: id)) }
      } else if let id = Self.id(in: name, before: ".moving"), let finished = try finishMove(id) {
        result.append(finished)
      }
    }
    // Last, when every store is in one place.
    for name in try fileSystem.entries(of: path).map(\.string) where name.hasSuffix(Self.replacing) {
      let place = path.folder.appending(String(name.dropFirst().dropLast(Self.replacing.count)))
      if let finished = try finishReplacing(StoreFileSet(main: place)) { result.append(finished) }
    }
    return result
  }

  private static let replacing = ".replacing"

  private func replacementMark(of place: StoreFileSet) -> FilePath {
    path.appending(".\(place.main.lastComponent?.string ?? "")\(Self.replacing)")
  }

  /// Notes that the place's store makes room for another.
  ///
  /// With the note and an empty place, the quarantined store belongs there.
  package func noteReplacing(_ place: StoreFileSet) throws(FileError) {
    try fileSystem.makeDirectory(path)
    try fileSystem.writeAtomically([], to: replacementMark(of: place), replacing: true)
  }

  /// Removes the note once the place is filled.
  func endReplacing(_ place: StoreFileSet) throws(FileError) { try fileSystem.unlink(replacementMark(of: place)) }

  /// Puts back a store that made room in vain.
  private func finishReplacing(_ place: StoreFileSet) throws -> Finished? {
    var finished: Finished?
    if try place.members(in: fileSystem).isEmpty,
      let last = try stores().first(where: { store in
        store.receipt?.originalPath.path?.lastComponent == place.main.lastComponent && store.receipt?.released == nil
      })
    {
      let place = try release(last.id, to: place)
      finished = Finished(kind: .quarantine, id: last.id, isDone: false, path: place.main)
    }
    try endReplacing(place)
    return finished
  }

  /// Removes an interrupted run's remains, unless another process may be salvaging or writing here.
  private func unlessSalvaging(_ remove: () throws(FileError) -> Void) throws(FileError) {
    do throws(FileError) {
      let salvaging = try salvageLock()
      try remove()
      salvaging.release()
    } catch {
      guard error.kind == .locked else { throw error }
    }
  }

  package func hasInterrupted() throws -> Bool {
    guard try fileSystem.status(of: path)?.kind == .directory else { return false }
    return try fileSystem.entries(of: path).contains { name in
      name.string.hasPrefix(".")
        && [".moving", ".discarding", ".arriving", ".unfinished", ".salvaging", Self.replacing].contains {
          name.string.hasSuffix($0)
        }
    }
  }

  private func finishMove(_ id: String) throws -> Finished? {
    guard let (relocation, outcome) = try Relocation.finishInterrupted(journal: journalPath(of: id), in: fileSystem)
    else { return nil }
    let isDone = outcome == .moved
    if relocation.note == "release" {
      let superfluous = isDone ? receiptPath(of: id) : releasedReceiptPath(of: id)
      try fileSystem.unlink(superfluous)
      return Finished(kind: .release, id: id, isDone: isDone, path: relocation.destination.path)
    }
    if !isDone { try fileSystem.unlink(receiptPath(of: id)) }
    return Finished(kind: .quarantine, id: id, isDone: isDone, path: relocation.source.path)
  }

  /// Whether a half-copied file belongs to a move with a journal, which will handle it.
  private static func isArriving(_ name: String, in names: [FilePath.Component]) -> Bool {
    guard name.hasSuffix(".arriving") else { return false }
    return names.contains { $0.string.hasSuffix(".moving") }
  }
}

/// The files of one salvage result: `….salvaged.sqlite` and its companions.
///
/// A repeated salvage takes another number and keeps the earlier results.
package struct SalvageFiles: Sendable, Hashable {
  package let store: StoreFileSet

  package let report: FilePath

  /// The set-aside rows and values.
  package var setAside: FilePath { store.main.sibling(suffix: "-set-aside") }

  init(of id: String, number: Int, in folder: FilePath) {
    let mark = number == 1 ? "" : "-\(number)"
    store = StoreFileSet(main: folder.appending("\(id).salvaged\(mark).sqlite"))
    report = folder.appending("\(id).salvage\(mark).json")
  }

  private static let maximumNumber = 1_000_000

  /// Nil for a name that a folder would not give.
  init?(of id: String, named name: FilePath.Component, in folder: FilePath) {
    guard let number = Self.number(in: name.string, after: "\(id).salvaged", before: ".sqlite") else { return nil }
    self.init(of: id, number: number, in: folder)
  }

  /// Returns the number of the file's result.
  static func number(of name: String, _ id: String) -> Int? {
    for ending in ["", "-wal", "-shm", "-journal", "-set-aside"] {
      if let number = number(in: name, after: "\(id).salvaged", before: ".sqlite" + ending) { return number }
    }
    return number(in: name, after: ".\(id).salvaged", before: "_SUPPORT")
      ?? number(in: name, after: "\(id).salvage", before: ".json")
  }

  private static func number(in name: String, after prefix: String, before suffix: String) -> Int? {
    guard name.utf8.count >= prefix.utf8.count + suffix.utf8.count, name.hasPrefix(prefix), name.hasSuffix(suffix)
    else { return nil }
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
  /// Takes the lock for salvaging or writing receipts here.
  ///
  /// A caller with the lock of a folder of stores must not wait for it.
  ///
  /// - Throws: `locked` after the patience.
  package func salvageLock(patience: Int = 0) throws(FileError) -> FolderLock {
    do throws(FileError) {
      return try FolderLock(path, patience: patience, in: fileSystem)
    } catch {
      guard error.kind == .locked else { throw error }
      throw FileError(
        .locked, operation: "lock the quarantine", path: path, detail: "another process is salvaging a store in it",
        hint: "Wait until it is done, then run the same command again.")
    }
  }

  func workingFolder(of id: String) -> FilePath { path.appending(".\(id).salvaging") }

  /// Creates the working folder and removes a killed salvage's partial results, under the caller's salvage lock.
  func beginSalvage(of id: String) throws -> FilePath {
    let folder = workingFolder(of: id)
    try fileSystem.removeTree(folder)
    try removeUnnamedResults(of: id)
    try fileSystem.makeDirectory(folder, permissions: .init(rawValue: 0o700))
    return folder
  }

  func endSalvage(of id: String) throws(FileError) { try fileSystem.removeTree(workingFolder(of: id)) }

  /// Returns the first result names that the receipt does not use.
  func freeResult(of id: String) throws -> SalvageFiles {
    let first = SalvageFiles(of: id, number: 1, in: path)
    guard let named = try namedResults(of: id) else {
      // Without a receipt the first result counts.
      let isFree = try fileSystem.status(of: first.store.main, followingLinks: false) == nil
      return isFree ? first : SalvageFiles(of: id, number: 2, in: path)
    }
    var number = 1
    while named.contains(SalvageFiles(of: id, number: number, in: path)) { number += 1 }
    return SalvageFiles(of: id, number: number, in: path)
  }

  /// Returns the results in the receipt, if any.
  private func namedResults(of id: String) throws -> Set<SalvageFiles>? {
    guard let receipt = try store(named: id).receipt else { return nil }
    let results = (receipt.salvage?.result).map { [$0] } ?? []
    return Set((results + (receipt.salvage?.others ?? [])).compactMap { files(of: $0, id) })
  }

  /// Removes an interrupted salvage's results, which the receipt does not name.
  private func removeUnnamedResults(of id: String) throws {
    guard let named = try namedResults(of: id) else { return try remove(try freeResult(of: id)) }
    for files in try results(of: id) where !named.contains(files) { try remove(files) }
  }

  /// Returns the files of every result there, in order of their numbers.
  private func results(of id: String) throws -> [SalvageFiles] {
    let numbers = Set(try fileSystem.entries(of: path).compactMap { SalvageFiles.number(of: $0.string, id) })
    return numbers.sorted().map { SalvageFiles(of: id, number: $0, in: path) }
  }

  /// Returns the receipt's current result; nil for a foreign name.
  package func result(of stored: QuarantinedStore) -> SalvageFiles? {
    stored.receipt?.salvage?.result.flatMap { files(of: $0, stored.id) }
  }

  /// Returns a result's files; nil for a foreign name.
  func files(of result: Receipt.Salvage.Result, _ id: String) -> SalvageFiles? {
    result.name.path?.lastComponent.flatMap { SalvageFiles(of: id, named: $0, in: path) }
  }

  /// Whether the result's store is unchanged.
  func isIntact(_ result: Receipt.Salvage.Result, _ files: SalvageFiles) throws -> Bool {
    guard try fileSystem.status(of: files.store.main, followingLinks: false)?.kind == .regular else { return false }
    for part in [StoreFileSet.Part.wal, .journal] {
      if try fileSystem.status(of: files.store.path(of: part))?.size ?? 0 > 0 { return false }
    }
    return try FileDigest(of: fileSystem.open(files.store.main)).hexadecimal == result.sha256
  }

  /// Gives a finished result its names, the store's last, under the caller's salvage lock.
  func keep(_ made: StoreFileSet, setAside: FilePath?, report: [UInt8], as files: SalvageFiles) throws {
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
      // Report the first error; the next salvage removes the rest.
      try? remove(files)
      throw error
    }
  }

  /// Removes a result, the store first.
  func remove(_ files: SalvageFiles) throws(FileError) {
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

  /// Changes a readable receipt atomically, under the caller's salvage lock.
  @discardableResult package func update(_ id: String, _ change: (inout Receipt) -> Void) throws -> QuarantinedStore {
    let stored = try store(id)
    guard var receipt = stored.receipt else { return stored }
    change(&receipt)
    if receipt == stored.receipt { return stored }
    try fileSystem.writeAtomically(try receipt.json(), to: stored.receiptPath, replacing: true)
    return try store(id)
  }
}

/// The removals of a discard, and the remaining copies.
package struct Discarding: Sendable, Hashable {
  /// A file, or a folder with its content.
  package struct Item: Sendable, Hashable, Encodable {
    /// The name in the quarantine folder.
    package var name: PathText

    package var bytes: Int64
  }

  package var items: [Item]

  /// The store's path after a release, if a store is there.
  var released: FilePath?

  /// The path of an installed salvaged store, if a store is there.
  package var installed: FilePath?

  package var bytes: Int64 { items.reduce(0) { $0 + $1.bytes } }

  /// The known copies elsewhere, in a sentence.
  package var words: String {
    if let released {
      return "The store itself was released to \(printable(released.string)), and a store is there now."
    }
    return installed.map { "A salvaged store was installed at \(printable($0.string)), and a store is there now." }
      ?? "Warning: no installed copy was found. Without a backup, the records in these files are lost."
  }
}

extension QuarantineFolder {
  /// Returns the removals of a discard: the store, its receipts, and its salvaged stores.
  package func discarding(_ store: QuarantinedStore) throws -> Discarding {
    let id = store.id
    let folders = [files(of: id).path(of: .externalData), workingFolder(of: id)].compactMap(\.lastComponent)
    var items: [Discarding.Item] = []
    for name in try fileSystem.entries(of: path) {
      let isOfStore =
        name.string.hasPrefix("\(id).") || folders.contains(name) || SalvageFiles.number(of: name.string, id) != nil
      let place = path.appending(name)
      guard isOfStore, let status = try fileSystem.status(of: place, followingLinks: false) else { continue }
      var bytes = status.size
      if status.kind == .directory {
        bytes = try fileSystem.descendants(of: place).files.reduce(0) { $0 + $1.status.size }
      }
      items.append(Discarding.Item(name: PathText(FilePath(root: nil, [name])), bytes: bytes))
    }
    return Discarding(
      items: items.sorted { $0.name.text < $1.name.text }, released: try copy(by: store.receipt?.released),
      installed: try copy(by: store.receipt?.salvage?.installed))
  }

  /// Returns the path of a release or installation, if a store is there.
  private func copy(by release: Receipt.Release?) throws -> FilePath? {
    guard let place = release?.path.path, try fileSystem.status(of: place)?.kind == .regular else { return nil }
    return place
  }
}
