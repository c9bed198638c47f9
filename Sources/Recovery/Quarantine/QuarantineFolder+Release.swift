package import StoreFiles
package import SystemPackage

extension QuarantineFolder {
  /// Puts a quarantined store back, as one unit, and keeps its receipt as `….released.json`.
  ///
  /// The caller holds the lock of the folder it goes to.
  ///
  /// - Parameter destination: where it goes; the place it came from if nil.
  /// - Throws: `place-taken` where any part of a store is there; `evidence-changed` where a file is no longer what the
  ///   receipt says.
  package func release(_ id: String, to destination: StoreFileSet? = nil) throws -> StoreFileSet {
    let store = try store(named: id)
    let target = try destination ?? originalPlace(of: store)
    if let member = try target.members(in: fileSystem).first {
      throw QuarantineError(
        .placeTaken, operation: "release the store", path: member.path, detail: "another store is in its place")
    }
    try verify(store)
    // The store is not taken away from a process that is salvaging it.
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
    _ = consume lock
    _ = consume salvaging
    return target
  }

  /// Where a store came from, as its receipt says.
  package func originalPlace(of store: QuarantinedStore) throws -> StoreFileSet {
    guard let original = store.receipt?.originalPath.path, original.isAbsolute, original.lastComponent != nil else {
      throw QuarantineError(
        .receiptUnreadable, operation: "release the store", path: store.receiptPath,
        detail: "it does not say where the store came from", hint: "Give the place with --to.")
    }
    return StoreFileSet(main: original)
  }

  /// Compares every file with the receipt; nothing to compare where there is none.
  ///
  /// - Throws: `evidence-changed` for the first file that is not what the receipt says.
  package func verify(_ store: QuarantinedStore) throws {
    guard let difference = try check(evidenceOf: store, .content)?.differences.first else { return }
    let detail =
      switch difference.kind {
      case .missing: "it is missing since it was quarantined"
      case .size, .content: "its content has changed since it was quarantined"
      case .added: "it was not there when the store was quarantined"
      }
    throw QuarantineError(
      .evidenceChanged, operation: "check the quarantined store", path: difference.name.path.map { path.pushing($0) },
      detail: detail, hint: "It was changed here. Copy the files elsewhere by hand if you want them as they are now.")
  }

  /// Removes a quarantined store for good, with its receipt and what was salvaged out of it.
  package func discard(_ id: String) throws {
    let store = try released(id) ?? store(named: id, includingMissing: true)
    let salvaging = try salvageLock()
    let lock = try StoreLock(on: store.files, in: fileSystem)
    // The mark says that the rest is to go too, should this be cut short.
    try fileSystem.writeAtomically([], to: discardMark(of: id), replacing: true)
    _ = consume lock
    try finishDiscarding(id)
    _ = consume salvaging
  }

  private func finishDiscarding(_ id: String) throws {
    for folder in [files(of: id).path(of: .externalData), workingFolder(of: id)] { try fileSystem.removeTree(folder) }
    let numbers = Set(try fileSystem.entries(of: path).compactMap { SalvageFiles.number(of: $0.string, id) })
    for number in numbers.sorted() { try remove(SalvageFiles(of: id, number: number, in: path)) }
    for name in try fileSystem.entries(of: path) where name.string.hasPrefix("\(id).") {
      try fileSystem.unlink(path.appending(name))
    }
    try fileSystem.synchronizeDirectory(path)
    try fileSystem.unlink(discardMark(of: id))
  }
}

// MARK: - After an interruption

extension QuarantineFolder {
  /// What was found unfinished and brought to an end.
  package struct Finished: Sendable, Hashable {
    /// What had been going on.
    package enum Kind: String, Sendable {
      case quarantine
      case release
      case discard
    }

    /// What had been going on.
    package var kind: Kind

    /// What the store is called in quarantine.
    package var id: String

    /// Whether the store is at its new place; false where it is back at its old one.
    package var isDone: Bool

    /// The store's place outside quarantine, for a quarantine and a release.
    package var path: FilePath?
  }

  /// Brings what an earlier run left unfinished to an end: a move is finished or taken back, a removal is finished.
  ///
  /// The caller holds the lock of the folder above.
  package func finishInterrupted() throws -> [Finished] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    var result: [Finished] = []
    for component in try fileSystem.entries(of: path) {
      let name = component.string
      guard name.hasPrefix(".") else { continue }
      if name.hasSuffix(".unfinished") || name.hasSuffix(".arriving") {
        // Half a file that never got its name; its writer is gone, for we hold the locks.
        if !Self.isArriving(name, in: try fileSystem.entries(of: path)) { try removeHalfFile(component) }
      } else if name.hasSuffix(".discarding") {
        let id = String(name.dropFirst().dropLast(".discarding".count))
        guard Self.isID(id) else { continue }
        try finishDiscarding(id)
        result.append(Finished(kind: .discard, id: id, isDone: true, path: nil))
      } else if name.hasSuffix(".salvaging") {
        let id = String(name.dropFirst().dropLast(".salvaging".count))
        if Self.isID(id) { try removeHalfSalvage(id) }
      } else if name.hasSuffix(".moving") {
        let id = String(name.dropFirst().dropLast(".moving".count))
        guard Self.isID(id) else { continue }
        if let finished = try finishMove(id) { result.append(finished) }
      }
    }
    return result
  }

  /// Removes what a salvage left that was cut short, unless another process is salvaging here.
  private func removeHalfSalvage(_ id: String) throws(FileError) {
    do throws(FileError) {
      let salvaging = try salvageLock()
      try fileSystem.removeTree(workingFolder(of: id))
      _ = consume salvaging
    } catch {
      guard error.kind == .locked else { throw error }
    }
  }

  /// Removes half a file, unless another process is salvaging here, which may be writing it.
  private func removeHalfFile(_ name: FilePath.Component) throws(FileError) {
    do throws(FileError) {
      let salvaging = try salvageLock()
      try fileSystem.unlink(path.appending(name))
      _ = consume salvaging
    } catch {
      guard error.kind == .locked else { throw error }
    }
  }

  /// Whether an earlier run left something unfinished here.
  package func hasInterrupted() throws -> Bool {
    guard try fileSystem.status(of: path)?.kind == .directory else { return false }
    return try fileSystem.entries(of: path).contains { name in
      name.string.hasPrefix(".")
        && [".moving", ".discarding", ".arriving", ".unfinished", ".salvaging"].contains { name.string.hasSuffix($0) }
    }
  }

  private func finishMove(_ id: String) throws -> Finished? {
    guard let (relocation, outcome) = try Relocation.finish(journal: journalPath(of: id), in: fileSystem) else {
      return nil
    }
    let isDone = outcome == .moved
    if relocation.note == "release" {
      let superfluous = isDone ? receiptPath(of: id) : releasedReceiptPath(of: id)
      try fileSystem.unlink(superfluous)
      return Finished(kind: .release, id: id, isDone: isDone, path: relocation.destination.path)
    }
    if !isDone { try fileSystem.unlink(receiptPath(of: id)) }
    return Finished(kind: .quarantine, id: id, isDone: isDone, path: relocation.source.path)
  }

  /// Whether a half-copied file belongs to a move whose journal is there, which will deal with it.
  private static func isArriving(_ name: String, in names: [FilePath.Component]) -> Bool {
    guard name.hasSuffix(".arriving") else { return false }
    return names.contains { $0.string.hasSuffix(".moving") }
  }
}
