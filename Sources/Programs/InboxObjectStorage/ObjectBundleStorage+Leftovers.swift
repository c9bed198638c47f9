internal import Compatibility
package import Inbox
internal import ObjectStorage
internal import StoreFiles

/// What kills leave of bundles that no record knows.
extension ObjectBundleStorage {
  /// How many of the 256 parts of the identifiers one call looks at.
  private static let partsAtOnce = 8

  /// How many bundles the records are asked about at once.
  private static let askedAtOnce = 1000

  package func removeLeftovers(_ records: any InboxRecords) throws {
    for _ in 0..<Self.partsAtOnce { try removeLeftovers(records, beginningWith: sweep.next()) }
  }

  private func removeLeftovers(_ records: any InboxRecords, beginningWith digits: String) throws {
    let prefix = key(of: digits)
    let listing = try client.list(prefix)
    guard let date = listing.date else { return }
    let latest = date.secondsSince1970 - leftoverSeconds
    let old = listing.objects.filter { object in object.modified.map { $0.secondsSince1970 <= latest } ?? false }
    let ids = Dictionary(grouping: old) { object in
      String(object.key.dropFirst(key(of: "").count).prefix(36))
    }
    for (id, objects) in ids where InboxFolders.isID(id) {
      // An upload becomes a bundle in one step: so asked, nothing on its way is missed.
      let isComing = try records.upload(id)?.state == .open
      // Of a bundle that is known, a worker may be about to say that what was made earlier counts, however old it is.
      let isKnown = try records.bundle(id) != nil
      guard !isComing, !isKnown else { continue }
      // What says that an archive counts goes before the archive.
      for object in objects.sorted(by: { Self.says($0) && !Self.says($1) }) { try client.delete(object.key) }
    }
    for upload in try client.uploads(prefix) {
      guard let begun = upload.begun, begun.secondsSince1970 <= latest else { continue }
      try client.abort(upload)
    }
  }

  package func removeCopies(_ records: any InboxRecords) throws {
    let ids = copies.ids
    for start in stride(from: 0, to: ids.count, by: Self.askedAtOnce) {
      let some = Array(ids[start..<min(ids.count, start + Self.askedAtOnce)])
      let known = try records.known(some)
      for id in some where !known.contains(id) && !uses.isBeingUsed(id) { try copies.drop(id) }
    }
    try copies.makeRoom()
  }

  private static func says(_ object: S3ObjectFacts) -> Bool { object.key.hasSuffix(".json") }
}

/// Which part of the identifiers is looked at next.
final class SweepPosition: Sendable {
  private let position = Mutex(0)

  /// The two digits that the identifiers of the next part begin with.
  func next() -> String {
    let number = position.withLock { position in
      defer { position = (position + 1) % 256 }
      return position
    }
    let digits = String(number, radix: 16)
    return digits.utf8.count == 1 ? "0" + digits : digits
  }
}
