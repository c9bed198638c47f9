import Inbox
import Platform
import SystemPackage

/// Storage during whose use the records of the inbox cannot be reached, so many times.
final class InterruptedStorage: BundleStorage {
  private let inner: any BundleStorage
  private let left: Mutex<Int>

  init(_ inner: any BundleStorage, times: Int) {
    self.inner = inner
    left = Mutex(times)
  }

  func result(of making: BundleMaking) throws -> StoredResult? {
    let isAway = left.withLock { left in
      defer { left = max(0, left - 1) }
      return left > 0
    }
    if isAway {
      throw InboxError(
        .records, operation: "look for room", detail: "the connection to its database was lost", isEnvironmental: true)
    }
    return try inner.result(of: making)
  }

  var isShared: Bool { inner.isShared }
  var workHome: FilePath { inner.workHome }
  var uses: BundleUses { inner.uses }
  func keep(_ bundle: InboxBundle, from path: FilePath) throws { try inner.keep(bundle, from: path) }
  func release(_ bundle: InboxBundle) throws { try inner.release(bundle) }
  func received(_ bundle: InboxBundle) throws -> FilePath { try inner.received(bundle) }
  func place(_ bundle: InboxBundle) throws { try inner.place(bundle) }
  func remove(_ id: String) throws { try inner.remove(id) }
  func keepingWords(at date: Timestamp) throws -> String? { try inner.keepingWords(at: date) }
  func removeResults(of id: String) throws { try inner.removeResults(of: id) }
  func fetch(
    _ bundle: InboxBundle, for kind: InboxJob.Kind, into folders: InboxFolders, goesOn: () -> Bool
  ) throws -> Bool { try inner.fetch(bundle, for: kind, into: folders, goesOn: goesOn) }
  func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult {
    try inner.keep(result, of: making)
  }
  func removeLeftovers(_ records: any InboxRecords) throws { try inner.removeLeftovers(records) }
  func removeCopies(_ records: any InboxRecords) throws { try inner.removeCopies(records) }
  func mark() throws -> String? { try inner.mark() }
  func makeMark(_ mark: String) throws -> String { try inner.makeMark(mark) }
  func isEmpty() throws -> Bool { try inner.isEmpty() }
}
