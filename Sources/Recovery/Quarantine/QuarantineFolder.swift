package import StoreFiles
package import SystemPackage

/// A folder of quarantined stores: `Incompatible/`, beside the stores that were set aside.
///
/// Each store lies there under the time of its quarantine, with its receipt beside it:
/// `2026-11-21-10-11-12.sqlite` (and `-wal` …), `2026-11-21-10-11-12.json`.
package struct QuarantineFolder: Sendable {
  /// The name of the folder.
  package static let name: FilePath.Component = "Incompatible"

  /// Its name where a store itself is called ``name``.
  private static let otherName: FilePath.Component = "Incompatible stores"

  /// Whether a folder has the name of one.
  package static func isOne(_ folder: FilePath) -> Bool {
    folder.lastComponent == name || folder.lastComponent == otherName
  }

  /// The folder, whether it is there or not.
  package let path: FilePath
  let surroundings: Surroundings

  /// The folder itself, whether it is there or not.
  package init(_ path: FilePath, surroundings: Surroundings) {
    self.path = path
    self.surroundings = surroundings
  }

  /// The folder for the stores of a folder.
  package init(beside store: StoreFileSet, surroundings: Surroundings) {
    // Some file systems keep names apart by their case, some do not.
    let isNamesake = store.main.lastComponent?.string.lowercased() == Self.name.string.lowercased()
    self.init(store.folder.appending(isNamesake ? Self.otherName : Self.name), surroundings: surroundings)
  }

  var fileSystem: FileSystem { surroundings.fileSystem }

  func files(of id: String) -> StoreFileSet { StoreFileSet(main: path.appending("\(id).sqlite")) }
  func receiptPath(of id: String) -> FilePath { path.appending("\(id).json") }
  func releasedReceiptPath(of id: String) -> FilePath { path.appending("\(id).released.json") }
  func journalPath(of id: String) -> FilePath { path.appending(".\(id).moving") }
  func discardMark(of id: String) -> FilePath { path.appending(".\(id).discarding") }
}

// MARK: - Looking

extension QuarantineFolder {
  /// The stores that lie here, newest first.
  ///
  /// A store whose receipt is missing or unreadable is listed without one; an interrupted move is not listed until it has
  /// been finished.
  ///
  /// - Parameter includingMissing: whether those are listed, too, of which no file is there any more and only a receipt tells.
  package func stores(includingMissing: Bool = false) throws -> [QuarantinedStore] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    let names = Set(try fileSystem.entries(of: path).map(\.string))
    var ids: Set<String> = []
    for name in names {
      for suffix in [".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal"] where name.hasSuffix(suffix) {
        let id = String(name.dropLast(suffix.count))
        if Self.isID(id) { ids.insert(id) }
      }
      // External data alone is a quarantined store too, where nothing else was left of it.
      if name.hasPrefix("."), name.hasSuffix("_SUPPORT") {
        let id = String(name.dropFirst().dropLast("_SUPPORT".count))
        if Self.isID(id) { ids.insert(id) }
      }
    }
    if includingMissing {
      // Most receipts are of stores that are there.
      let receipts = Set(names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(".json".count)) })
      ids.formUnion(try receipts.subtracting(ids).filter(hasMissingStore))
    }
    return try ids.filter { !names.contains(".\($0).moving") && !names.contains(".\($0).discarding") }
      .ordered(by: Self.isNewer).map { try store($0) }
  }

  /// The names of stores that were released, of which something is left here: what was salvaged of them, and their receipts.
  package func releasedIDs() throws -> [String] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    let ids = try fileSystem.entries(of: path).compactMap { name in
      name.string.hasSuffix(".released.json") ? String(name.string.dropLast(".released.json".count)) : nil
    }
    return try ids.filter(isReleased).ordered(by: Self.isNewer)
  }

  /// Whether a store of that name was released, and nothing but what was made of it is here.
  private func isReleased(_ id: String) throws -> Bool {
    guard Self.isID(id), try fileSystem.status(of: releasedReceiptPath(of: id))?.kind == .regular else { return false }
    // One that is being moved or removed is another run's, and one that is back here is a quarantined store.
    for mark in [receiptPath(of: id), journalPath(of: id), discardMark(of: id)]
    where try fileSystem.status(of: mark, followingLinks: false) != nil {
      return false
    }
    return try files(of: id).members(in: fileSystem).isEmpty
  }

  /// What is left here of a store that was released; nil where none of that name was.
  package func released(_ id: String) throws -> QuarantinedStore? {
    guard try isReleased(id) else { return nil }
    let receiptPath = releasedReceiptPath(of: id)
    var receipt: Receipt?
    do {
      receipt = try Receipt(at: receiptPath, in: fileSystem)
    } catch let error as QuarantineError where error.kind == .receiptUnreadable {
      // It is listed without it.
    }
    return QuarantinedStore(id: id, files: files(of: id), receiptPath: receiptPath, receipt: receipt)
  }

  /// The store of that name.
  ///
  /// - Parameter includingMissing: whether one is found, too, of which no file is there any more.
  /// - Throws: `not-in-quarantine` where there is none; `evidence-missing` where there is a receipt and no file of the store.
  package func store(named id: String, includingMissing: Bool = false) throws -> QuarantinedStore {
    guard Self.isID(id), !(try files(of: id).members(in: fileSystem)).isEmpty else {
      if try hasMissingStore(id) {
        if includingMissing { return try store(id) }
        throw QuarantineError(
          .evidenceMissing, operation: "find the quarantined store", path: files(of: id).main,
          detail: "its files are gone from where it was quarantined, and only its receipt is left")
      }
      if let released = try released(id) {
        let place = released.receipt?.released?.path.text
        throw QuarantineError(
          .notFound, operation: "find the quarantined store", path: path,
          detail: "it was released\(place.map { " to \(printable($0))" } ?? ""); only what was made of it is left here",
          hint: "List and remove that with: lazaret quarantine discard \(shellQuoted(released.files.main))")
      }
      throw QuarantineError(
        .notFound, operation: "find the quarantined store", path: path, detail: "no store \(printable(id)) lies here",
        hint: "List what is there with: lazaret quarantine list")
    }
    return try store(id)
  }

  /// Whether a receipt tells of a store here of which no file is there any more.
  private func hasMissingStore(_ id: String) throws -> Bool {
    guard Self.isID(id), try fileSystem.status(of: receiptPath(of: id))?.kind == .regular,
      try files(of: id).members(in: fileSystem).isEmpty
    else { return false }
    // What is being moved or removed is not missing.
    for mark in [journalPath(of: id), discardMark(of: id)] where try fileSystem.status(of: mark) != nil { return false }
    return try store(id).receipt != nil
  }

  /// The store of that name as its receipt tells of it, whether any file of it is there or not.
  func store(_ id: String) throws -> QuarantinedStore {
    var receipt: Receipt?
    do {
      if try fileSystem.status(of: receiptPath(of: id)) != nil {
        receipt = try Receipt(at: receiptPath(of: id), in: fileSystem)
      }
    } catch let error as QuarantineError where error.kind == .receiptUnreadable {
      // Listed without its receipt; a caller that asks for the receipt itself gets the error.
    }
    return QuarantinedStore(id: id, files: files(of: id), receiptPath: receiptPath(of: id), receipt: receipt)
  }

  /// Whether text is a name that this folder gives: a time, and a number where two came in one second.
  static func isID(_ text: String) -> Bool {
    guard text.utf8.count >= 19, Timestamp(String(text.prefix(19))) != nil else { return false }
    let rest = text.dropFirst(19)
    if rest.isEmpty { return true }
    return rest.first == "-" && rest.count > 1 && rest.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
  }

  /// Newest first; of two in one second the one with the higher number.
  static func isNewer(_ left: String, _ right: String) -> Bool {
    let times = (left.prefix(19), right.prefix(19))
    if times.0 != times.1 { return times.0 > times.1 }
    return (Int(left.dropFirst(20)) ?? 1) > (Int(right.dropFirst(20)) ?? 1)
  }
}

// MARK: - Adding

extension QuarantineFolder {
  /// Moves a store here, as one unit, and writes its receipt.
  ///
  /// After a kill at any moment the store is whole in its old place or whole here; `finishInterrupted` brings it to one of
  /// the two for good. The caller holds the lock of the store's folder.
  ///
  /// - Parameter progress: called with the bytes done and the bytes in all; what it throws takes the move back.
  /// - Throws: `nothing-to-quarantine` where no part of the store is there; `locked` or `in-use` where another process has
  ///   it open; what the file system says. The store is then where it was.
  package func add(
    _ store: StoreFileSet, because facts: QuarantineCase, progress: (Int64, Int64) throws -> Void = { _, _ in }
  ) throws -> QuarantinedStore {
    guard !(try store.members(in: fileSystem)).isEmpty else {
      throw QuarantineError(
        .nothingToQuarantine, operation: "quarantine the store", path: store.main, detail: "there is no such store")
    }
    let lock = try StoreLock(on: store, in: fileSystem)
    try fileSystem.makeDirectory(path)
    let date = surroundings.now()
    let id = try freeID(at: date)
    let succession = try succession(of: store.main, to: id, at: date, makingRoomFor: facts.makesRoomFor)
    var relocation = try Relocation(of: store, to: files(of: id), note: "quarantine", in: fileSystem)
    try move(&relocation, id: id, receiptPath: receiptPath(of: id), progress: progress) { arrived in
      try Receipt(arrived, of: facts, id: id, date: date, folder: path, succession).json()
    }
    _ = consume lock
    return try self.store(id)
  }

  /// Moves a store, with a receipt that is there when, and only when, the move is final.
  func move(
    _ relocation: inout Relocation, id: String, receiptPath: FilePath, formerReceiptPath: FilePath? = nil,
    progress: (Int64, Int64) throws -> Void = { _, _ in }, receipt: (Relocation) throws -> [UInt8]?
  ) throws {
    try relocation.run(journal: journalPath(of: id), in: fileSystem, progress: progress) { arrived in
      guard let bytes = try receipt(arrived) else { return }
      try fileSystem.writeAtomically(bytes, to: receiptPath, replacing: true)
    } whenMoved: { () throws(FileError) in
      if let formerReceiptPath { try fileSystem.unlink(formerReceiptPath) }
    } whenTakenBack: { () throws(FileError) in
      try fileSystem.unlink(receiptPath)
    }
  }

  private func freeID(at date: Timestamp) throws -> String {
    let names = Set(try fileSystem.entries(of: path).map(\.string))
    for number in 1...10_000 {
      let id = number == 1 ? date.fileName : "\(date.fileName)-\(number)"
      let isTaken = names.contains { name in
        name == id || [id, ".\(id)"].contains { name.hasPrefix($0 + ".") || name.hasPrefix($0 + "_") }
      }
      if !isTaken { return id }
    }
    throw FileError(.alreadyExists, operation: "name the quarantined store", path: path)
  }
}
