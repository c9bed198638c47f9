internal import StoreFiles

extension Inbox {
  /// Begins to salvage the bundles of a damage again whose last result is of an earlier version of this software.
  ///
  /// - Returns: the batch; nil where there is no such bundle.
  /// - Throws: `inbox-not-now` where an earlier batch of the damage is not over.
  package func salvageAgain(_ group: String) throws -> SalvageBatch? {
    let batch = try records.beginBatch(of: group, version: LibraryVersion.current, at: surroundings.now())
    changes.tell()
    return batch
  }
}

extension InboxError {
  /// Another batch of the damage is not over.
  package static let batchIsRunning = InboxError(
    .notNow, operation: "salvage the bundles again", detail: "an earlier batch of this damage is not over")
}
