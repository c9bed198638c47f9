package import StoreFiles
package import SystemPackage

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
