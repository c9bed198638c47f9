package import Platform
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

/// The generations of the stores of a place, as the receipts beside it tell them.
///
/// Each quarantine names the generation of the store that goes and that of whatever comes after it, in the receipt that is
/// there when, and only when, the move is final. So no other file has to agree with the place, whatever is interrupted.
extension QuarantineFolder {
  /// What a quarantine notes of generations.
  struct Succession {
    var lineage: StoreLineage

    /// That of whatever comes after it.
    var successor: StoreLineage

    /// The number of the change at the place.
    var order: Int
  }

  /// The generation of the store at a place; nil where nothing tells, because no receipt of that place has one.
  ///
  /// - Parameter place: the main file, as receipts name it.
  package func lineage(of place: FilePath) throws(FileError) -> StoreLineage? { try lastChange(at: place)?.lineage }

  /// The number of the last change at a place; 0 for none.
  func lastOrder(at place: FilePath) throws(FileError) -> Int { try lastChange(at: place)?.order ?? 0 }

  /// What is noted of a store that goes into quarantine now.
  func succession(
    of place: FilePath, to id: String, at date: Timestamp, makingRoomFor restored: StoreLineage.Restored?
  ) throws(FileError) -> Succession {
    let last = try lastChange(at: place)
    return Succession(
      lineage: last?.lineage ?? StoreLineage(generation: surroundings.makeUUID().description, since: date),
      successor: StoreLineage(
        generation: surroundings.makeUUID().description, since: date, parent: id, restored: restored),
      order: (last?.order ?? 0) + 1)
  }

  /// Notes that what is put into an empty place now is a restored backup; nothing is done where no receipt tells of the place.
  ///
  /// The caller holds the salvage lock.
  package func noteRestored(_ restored: StoreLineage.Restored, at place: FilePath) throws {
    guard let last = try lastChange(at: place), let id = last.id else { return }
    let now = surroundings.now()
    try update(id) { receipt in
      receipt.successor = StoreLineage(
        generation: surroundings.makeUUID().description, since: now, parent: id, restored: restored)
    }
  }

  /// The highest number of a change that is believed.
  private static let maximumOrder = 1 << 40

  private struct Change {
    var order: Int
    var lineage: StoreLineage?

    /// The store that was quarantined; nil where one was put back.
    var id: String?
  }

  /// The last change at a place, of those that receipts tell.
  private func lastChange(at place: FilePath) throws(FileError) -> Change? {
    guard try fileSystem.status(of: path)?.kind == .directory else { return nil }
    var last: Change?
    for name in try fileSystem.entries(of: path) {
      guard name.extension == "json", let id = name.string.split(separator: ".").first.map(String.init), Self.isID(id),
        ["\(id).json", "\(id).released.json"].contains(name.string),
        let receipt = try receipt(path.appending(name))
      else { continue }
      var changes: [Change] = []
      if receipt.originalPath.path == place {
        let isHere = receipt.released == nil
        changes.append(Change(order: receipt.order ?? 0, lineage: receipt.successor, id: isHere ? id : nil))
      }
      if let released = receipt.released, released.path.path == place {
        changes.append(Change(order: released.order ?? 0, lineage: receipt.lineage, id: nil))
      }
      for change in changes where change.lineage != nil && change.order <= Self.maximumOrder {
        if change.order > last?.order ?? 0 { last = change }
      }
    }
    return last
  }

  /// A receipt; nil where it cannot be read as one.
  private func receipt(_ path: FilePath) throws(FileError) -> Receipt? {
    do {
      return try Receipt(at: path, in: fileSystem)
    } catch let error as FileError where error.isEnvironmental {
      throw error
    } catch {
      // It tells nothing of generations, then; a caller that asks for the receipt itself gets the error.
      return nil
    }
  }
}

extension QuarantinedStore {
  /// Which kits and backups say something of the store.
  package var evidence: EvidenceScope {
    EvidenceScope(
      lineage: receipt?.lineage, event: receipt.flatMap { Timestamp($0.date) } ?? Timestamp(String(id.prefix(19))))
  }
}

/// A request of the quarantine that cannot be met.
package typealias QuarantineError = Failure<QuarantineErrorKind>

/// Why a request of the quarantine cannot be met.
package enum QuarantineErrorKind: String, FailureKind {
  case notFound = "not-in-quarantine"
  case ambiguous = "ambiguous-id"
  case nothingToQuarantine = "nothing-to-quarantine"
  case placeTaken = "place-taken"
  case receiptUnreadable = "receipt-unreadable"
  case evidenceChanged = "evidence-changed"
  case evidenceMissing = "evidence-missing"
  case catalogueUnreadable = "catalogue-unreadable"
  case notSalvaged = "not-salvaged"
  case salvageUnusable = "salvage-unusable"

  /// What was being done, where a failure does not say.
  package static let usualOperation = "use the quarantine"

  /// What the reader can do next, where a failure does not say.
  package var usualHint: String {
    switch self {
    case .notFound: "List what there is with: lazaret quarantine list"
    case .ambiguous: "Give its path instead."
    case .nothingToQuarantine: "Check the path."
    case .placeTaken:
      "Release it with --replace, which quarantines what is there first, or give another place with --to."
    case .receiptUnreadable:
      "The store beside it is not affected; it can be examined, salvaged and released without its receipt."
    case .evidenceChanged: "Copy the files elsewhere by hand if you want them as they are now."
    case .evidenceMissing:
      "Put its files back from a copy, under their names; what is left of it is removed with: lazaret quarantine discard ID"
    case .catalogueUnreadable:
      "Move it away; the quarantined stores themselves are not affected, and the next quarantine makes a new one."
    case .notSalvaged: "Salvage it first."
    case .salvageUnusable: "Salvage it again with the app's current model."
    }
  }
}
