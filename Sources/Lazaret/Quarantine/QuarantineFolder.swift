package import Platform
package import SystemPackage

/// A folder of quarantined stores: `Incompatible/`, beside the original stores.
///
/// The time of the quarantine names each store and its receipt: `2026-11-21-10-11-12.sqlite` (and `-wal` …),
/// `2026-11-21-10-11-12.json`.
package struct QuarantineFolder: Sendable {
  package static let name: FilePath.Component = "Incompatible"

  /// The name beside a store called ``name``.
  private static let otherName: FilePath.Component = "Incompatible stores"

  /// Whether a folder has a quarantine's name.
  package static func isOne(_ folder: FilePath) -> Bool {
    folder.lastComponent == name || folder.lastComponent == otherName
  }

  /// The folder, which may not exist yet.
  package let path: FilePath
  let surroundings: Surroundings

  package init(_ path: FilePath, surroundings: Surroundings) {
    self.path = path
    self.surroundings = surroundings
  }

  /// Creates the quarantine beside a store.
  package init(beside store: StoreFileSet, surroundings: Surroundings) {
    // Some file systems ignore case.
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
  /// Returns the folder's stores, newest first, but no unfinished move.
  ///
  /// - Parameter includingMissing: includes stores with only a receipt.
  package func stores(includingMissing: Bool = false) throws -> [QuarantinedStore] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    let names = Set(try fileSystem.entries(of: path).map(\.string))
    var ids: Set<String> = []
    for name in names {
      for suffix in [".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal"] {
        if let id = Self.id(in: name, after: "", before: suffix) { ids.insert(id) }
      }
      // External data alone is a quarantined store too.
      if let id = Self.id(in: name, before: "_SUPPORT") { ids.insert(id) }
    }
    if includingMissing {
      let receipts = Set(names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(".json".count)) })
      ids.formUnion(try receipts.subtracting(ids).filter(hasMissingStore))
    }
    return try ids.filter { !names.contains(".\($0).moving") && !names.contains(".\($0).discarding") }
      .ordered(by: Self.isNewer).map { try store($0) }
  }

  /// Returns the released stores with remaining receipts or salvaged stores.
  func releasedIDs() throws -> [String] {
    guard try fileSystem.status(of: path)?.kind == .directory else { return [] }
    let ids = try fileSystem.entries(of: path).compactMap { name in
      name.string.hasSuffix(".released.json") ? String(name.string.dropLast(".released.json".count)) : nil
    }
    return try ids.filter(isReleased).ordered(by: Self.isNewer)
  }

  /// Whether only a released store's receipt and salvaged stores remain.
  private func isReleased(_ id: String) throws -> Bool {
    guard Self.isID(id), try fileSystem.status(of: releasedReceiptPath(of: id))?.kind == .regular else { return false }
    // Another run is moving or removing it, or it is back.
    for mark in [receiptPath(of: id), journalPath(of: id), discardMark(of: id)]
    where try fileSystem.status(of: mark, followingLinks: false) != nil {
      return false
    }
    return try files(of: id).members(in: fileSystem).isEmpty
  }

  /// Returns the remains of a released store.
  func released(_ id: String) throws -> QuarantinedStore? {
    guard try isReleased(id) else { return nil }
    return try store(id, receiptPath: releasedReceiptPath(of: id))
  }

  /// Returns the store with a name.
  ///
  /// - Parameter includingMissing: includes a store without any remaining file.
  /// - Throws: `not-in-quarantine`; `evidence-missing` if only its receipt remains.
  package func store(named id: String, includingMissing: Bool = false) throws -> QuarantinedStore {
    guard Self.isID(id), !(try files(of: id).members(in: fileSystem)).isEmpty else {
      if try hasMissingStore(id) {
        if includingMissing { return try store(id) }
        throw LazaretError(
          .evidenceMissing, operation: "find the quarantined store", path: files(of: id).main,
          detail: "its files are gone from where it was quarantined, and only its receipt is left")
      }
      if let released = try released(id) {
        let place = released.receipt?.released?.path.text
        throw LazaretError(
          .notInQuarantine, operation: "find the quarantined store", path: path,
          detail: "it was released\(place.map { " to \(printable($0))" } ?? ""); only what was made of it is left here",
          hint: "List and remove that with: lazaret quarantine discard \(shellQuoted(released.files.main))")
      }
      throw LazaretError(
        .notInQuarantine, operation: "find the quarantined store", path: path,
        detail: "no store \(printable(id)) lies here", hint: "List what is there with: lazaret quarantine list")
    }
    return try store(id)
  }

  /// Whether only a store's receipt remains.
  private func hasMissingStore(_ id: String) throws -> Bool {
    guard Self.isID(id), try fileSystem.status(of: receiptPath(of: id))?.kind == .regular,
      try files(of: id).members(in: fileSystem).isEmpty
    else { return false }
    // A store being moved or removed is not missing.
    for mark in [journalPath(of: id), discardMark(of: id)] where try fileSystem.status(of: mark) != nil { return false }
    return try store(id).receipt != nil
  }

  /// Returns a store, even without any file.
  func store(_ id: String) throws -> QuarantinedStore { try store(id, receiptPath: receiptPath(of: id)) }

  private func store(_ id: String, receiptPath: FilePath) throws -> QuarantinedStore {
    var receipt: Receipt?
    do {
      if try fileSystem.status(of: receiptPath) != nil { receipt = try Receipt(at: receiptPath, in: fileSystem) }
    } catch let error as LazaretError where error.kind == .receiptUnreadable {
      // A caller that asks for the receipt gets the error.
    }
    return QuarantinedStore(id: id, files: files(of: id), receiptPath: receiptPath, receipt: receipt)
  }

  /// Returns the identifier between the marks of a name, if it is one.
  static func id(in name: String, after prefix: String = ".", before suffix: String) -> String? {
    guard name.hasPrefix(prefix), name.hasSuffix(suffix) else { return nil }
    let id = String(name.dropFirst(prefix.count).dropLast(suffix.count))
    return isID(id) ? id : nil
  }

  /// Whether text is a time, with a number if two stores came in one second.
  static func isID(_ text: String) -> Bool {
    guard text.utf8.count >= 19, Timestamp(String(text.prefix(19))) != nil else { return false }
    let rest = text.dropFirst(19)
    if rest.isEmpty { return true }
    return rest.first == "-" && rest.count > 1 && rest.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
  }

  /// Within a second the higher number is newer.
  static func isNewer(_ left: String, _ right: String) -> Bool {
    let times = (left.prefix(19), right.prefix(19))
    if times.0 != times.1 { return times.0 > times.1 }
    return (Int(left.dropFirst(20)) ?? 1) > (Int(right.dropFirst(20)) ?? 1)
  }
}

// MARK: - Adding

extension QuarantineFolder {
  /// Moves a store into the folder as one unit, with a receipt, under the caller's folder lock.
  ///
  /// After a kill the store is whole at its old place or here; `finishInterrupted` completes or undoes the move.
  ///
  /// - Parameter progress: gets the bytes done and the total; its error undoes the move.
  /// - Throws: `nothing-to-quarantine` for an empty place; `locked` or `in-use` if another process has it open; file
  ///   system errors. The store is then at its path.
  package func add(
    _ store: StoreFileSet, because facts: QuarantineCase, progress: (Int64, Int64) throws -> Void = { _, _ in }
  ) throws -> QuarantinedStore {
    guard !(try store.members(in: fileSystem)).isEmpty else {
      throw LazaretError(
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
    lock.release()
    return try self.store(id)
  }

  /// Moves a store; its receipt exists if and only if the move is final.
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

/// The generations of a place's stores, from its receipts.
///
/// Each receipt, which exists if and only if the move is final, names the generations of the leaving store and its
/// successor. So no other file must agree with the place after an interruption.
extension QuarantineFolder {
  struct Succession {
    var lineage: StoreLineage

    /// The generation of the next store at the place.
    var successor: StoreLineage

    /// The number of the change at the place.
    var order: Int
  }

  /// Returns the generation of the store at a place, if a receipt records it.
  package func lineage(of place: FilePath) throws(FileError) -> StoreLineage? { try lastChange(at: place)?.lineage }

  func lastOrder(at place: FilePath) throws(FileError) -> Int { try lastChange(at: place)?.order ?? 0 }

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

  /// Records a restored backup at an empty place, if a receipt names the place, under the caller's salvage lock.
  func noteRestored(_ restored: StoreLineage.Restored, at place: FilePath) throws {
    guard let last = try lastChange(at: place), let id = last.id else { return }
    let now = surroundings.now()
    try update(id) { receipt in
      receipt.successor = StoreLineage(
        generation: surroundings.makeUUID().description, since: now, parent: id, restored: restored)
    }
  }

  private static let maximumOrder = 1 << 40

  private struct Change {
    var order: Int
    var lineage: StoreLineage?

    /// Nil after a release.
    var id: String?
  }

  /// Returns the last recorded change at a place.
  private func lastChange(at place: FilePath) throws(FileError) -> Change? {
    guard try fileSystem.status(of: path)?.kind == .directory else { return nil }
    var last: Change?
    for name in try fileSystem.entries(of: path) {
      guard name.extension == "json", let id = name.string.split(separator: ".").first.map(String.init), Self.isID(id),
        ["\(id).json", "\(id).released.json"].contains(name.string), let receipt = try receipt(path.appending(name))
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

  private func receipt(_ path: FilePath) throws(FileError) -> Receipt? {
    do {
      return try Receipt(at: path, in: fileSystem)
    } catch let error as FileError where error.isEnvironmental {
      throw error
    } catch {
      // A caller that asks for the receipt gets the error.
      return nil
    }
  }
}

extension QuarantinedStore {
  /// The scope of the kits and backups that concern the store.
  package var evidence: EvidenceScope {
    EvidenceScope(
      lineage: receipt?.lineage, event: receipt.flatMap { Timestamp($0.date) } ?? Timestamp(String(id.prefix(19))))
  }
}

package struct QuarantinedStore: Sendable, Hashable, Encodable {
  /// The file name without extension, such as `2026-11-21-10-11-12`.
  package var id: String

  package var files: StoreFileSet

  package var receiptPath: FilePath

  /// Nil if missing or unreadable.
  package var receipt: Receipt?

  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": id, "store": PathText(files.main), "receiptPath": PathText(receiptPath), "receipt": receipt,
    ])
  }
}

extension EvidenceScope {
  /// Creates the scope of the kits and backups that concern a store: the earlier ones if it is quarantined, else its
  /// generation's.
  package init(of path: FilePath, surroundings: Surroundings = .machine) throws(FileError) {
    let files: StoreFileSet
    do throws(FileError) {
      files = try StoreFileSet.locate(path, in: surroundings.fileSystem)
    } catch {
      guard error.kind == .notFound else { throw error }
      self.init(lineage: nil, event: nil)
      return
    }
    if QuarantineFolder.isOne(files.folder), let id = files.main.stem {
      do {
        self = try QuarantineFolder(files.folder, surroundings: surroundings)
          .store(named: id, includingMissing: true).evidence
        return
      } catch let error as FileError where error.isEnvironmental {
        throw error
      } catch {
        // Not a quarantined store, so its past is unknown.
      }
    }
    self.init(
      lineage: try QuarantineFolder(beside: files, surroundings: surroundings).lineage(of: files.main), event: nil)
  }
}
