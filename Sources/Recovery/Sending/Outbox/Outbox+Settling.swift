internal import Quarantine
public import StoreFiles
internal import SystemPackage

extension Outbox {
  /// Ends what killed processes began: entries that were being sent wait again, receipts are noted, and bundles that are not needed
  /// any more go, as do entries that nothing has happened to for 90 days.
  ///
  /// Entries that another process works on are left alone.
  ///
  /// - Returns: how many entries were removed.
  @discardableResult
  public func settle() throws(SendingError) -> Int {
    do {
      guard try fileSystem.status(of: path)?.kind == .directory else { return 0 }
      let lock = try FolderLock(path, in: fileSystem)
      try removeLeftovers()
      for id in try names() {
        guard try read(id) != nil else { continue }
        do {
          var held = try HeldEntry(id, of: self)
          if held.entry.state == .sending { try held.update { $0.state = .waiting } }
          _ = try finish(&held)
        } catch let error as SendingError {
          guard error.kind == .busy else { throw error }
        } catch is QuarantineError {
          // A catalogue or receipt that cannot be read keeps no other bundle from being sent; the bundle stays until it can.
        }
      }
      let removed = try removeOld()
      _ = consume lock
      return removed
    } catch {
      throw SendingError.told(error, operation: "settle the outbox", path: path)
    }
  }

  /// Ends an entry that nothing more happens to: notes the receipt, and lets the bundle go.
  ///
  /// Where a receipt cannot be noted because another process works on the quarantined store, the bundle stays, and so it is done another time.
  ///
  /// - Returns: the quarantined stores whose receipts have it.
  func finish(_ held: inout HeldEntry) throws -> [String] {
    guard held.entry.isOver else { return [] }
    let bundle = bundlePath(of: held.entry.id)
    guard try fileSystem.status(of: bundle, followingLinks: false) != nil else { return [] }
    var noted: [String] = []
    if let receipt = held.entry.receipt {
      do {
        noted = try note(receipt)
      } catch let error as FileError where error.kind == .locked {
        return []
      }
    }
    try fileSystem.unlink(bundle)
    try fileSystem.synchronizeDirectory(folder(of: held.entry.id))
    return noted
  }

  /// Adds a receipt to those of the quarantined stores of the home that the bundle was made of.
  ///
  /// - Returns: the stores' names.
  private func note(_ receipt: DeliveryReceipt) throws -> [String] {
    var noted: [String] = []
    for folder in try QuarantineCatalogue(home: home, surroundings: surroundings).folders() {
      let stores = try folder.stores().filter { stored in
        stored.receipt?.exports?.contains { $0.sha256 == receipt.sha256 } ?? false
      }
      guard !stores.isEmpty else { continue }
      let lock = try folder.salvageLock(patience: 300)
      for stored in stores {
        try folder.update(stored.id) { $0.add(receipt.delivery, at: surroundings.now()) }
        noted.append(stored.id)
      }
      _ = consume lock
    }
    return noted
  }

  /// Removes the entries that nothing has happened to for as long as they are kept.
  private func removeOld() throws -> Int {
    let now = surroundings.now().secondsSince1970
    var removed = 0
    for id in try names() {
      guard let entry = try read(id), entry.isOver, let updated = Timestamp(entry.updated),
        now - updated.secondsSince1970 > Int64(Self.keptDays) * 86_400,
        try fileSystem.status(of: bundlePath(of: id), followingLinks: false) == nil
      else { continue }
      // Under a hidden name first: what a kill leaves of it is no entry any more.
      let leaving = path.appending(".gone-\(id)")
      try fileSystem.rename(folder(of: id), to: leaving)
      try fileSystem.synchronizeDirectory(path)
      try fileSystem.removeTree(leaving)
      removed += 1
    }
    return removed
  }
}
