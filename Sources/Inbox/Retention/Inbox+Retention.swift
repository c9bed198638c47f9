internal import Lazaret
internal import Platform
internal import SystemPackage

/// What became of the bundles of an inbox by its rules, or would.
package struct InboxPruning: Sendable {
  /// That the files of a bundle could not be removed, or not all of them.
  package struct Failure: Sendable, Hashable, Encodable {
    /// The bundle's identifier.
    package var bundle: String

    /// The stable word of the error.
    package var code: String

    /// What went wrong, as a sentence.
    package var words: String

    /// Whether it lies at where the files are, and not at the bundle.
    var isEnvironmental: Bool

    private enum CodingKeys: CodingKey {
      case bundle
      case code
      case words
    }

    /// What kept the files of a bundle.
    init(_ bundle: String, _ error: any ReportableError) {
      self.bundle = bundle
      code = error.code
      words = error.detail + "."
      isEnvironmental = !(error is FileError) && error.isEnvironmental
    }
  }

  /// The bundles that were removed, or would be, oldest first.
  package var removed: [InboxRemoval] = []

  /// How many bundles stay, for each reason.
  package var kept: [InboxKeepingReason: Int] = [:]

  /// Those that the rules would have removed and that were taken up meanwhile: something is being done to them.
  package var spared: [String] = []

  /// Those whose files could not be removed, also of earlier removals; it is tried again the next time.
  package var failures: [Failure] = []

  /// What the rules saw of the bundles that they remove, by identifier.
  var seen: [String: RetentionCandidate] = [:]

  /// How many bytes were kept of them; see ``InboxRemoval/bytes``.
  package var bytes: Int64 { removed.reduce(0) { $0 + $1.bytes } }
}

extension Inbox {
  private static let batch = 500

  /// What the rules would remove now; nothing is changed.
  ///
  /// - Parameters:
  ///   - limit: the most bundles that are found; where there are as many, not all that stay were counted.
  ///   - isCancelled: whether it is to end at once.
  package func retentionPlan(
    _ retention: InboxRetention, limit: Int = .max, isCancelled: () -> Bool = { false }
  ) throws(InboxError) -> InboxPruning {
    guard retention.hasRules else { return InboxPruning() }
    let now = surroundings.now()
    let oldest = retention.oldest(at: now)
    var plan = InboxPruning()
    var (goes, stays) = ([String: InboxRemoval.Rule](), Int64(0))
    func eachBundle(_ body: (RetentionCandidate) -> Bool) throws(InboxError) {
      var key: InboxKey?
      while !isCancelled() {
        let bundles = try records.retentionCandidates(
          after: key, newer: retention.newerKnown, limit: Self.batch)
        for bundle in bundles { guard body(bundle) else { return } }
        guard bundles.count == Self.batch, let last = bundles.last else { return }
        key = last.key
      }
    }
    var removed: [RetentionCandidate] = []
    try eachBundle { bundle in
      switch retention.verdict(on: bundle, oldest: oldest) {
      case .kept(let reason):
        plan.kept[reason, default: 0] += 1
        stays += bundle.bytes
      case .removed(let rule):
        goes[bundle.id] = rule
        removed.append(bundle)
      }
      // How much stays is known only of all.
      return removed.count < limit || retention.bytes != nil
    }
    if let bytes = retention.bytes, stays > bytes {
      try eachBundle { bundle in
        guard goes[bundle.id] == nil, retention.reasonToStay(bundle) == nil else { return true }
        if case .kept(let reason) = retention.verdict(on: bundle, oldest: oldest) { plan.kept[reason, default: 1] -= 1 }
        goes[bundle.id] = .bytes
        removed.append(bundle)
        stays -= bundle.bytes
        return stays > bytes
      }
    }
    plan.kept = plan.kept.filter { $0.value > 0 }
    plan.seen = Dictionary(removed.map { ($0.id, $0) }) { first, _ in first }
    plan.removed = removed.sorted { ($0.date, $0.id) < ($1.date, $1.id) }.map { bundle in
      InboxRemoval(of: bundle, by: goes[bundle.id] ?? .days, at: now)
    }
    return plan
  }

  /// Removes what the rules no longer keep; each bundle wholly or not at all, whenever it is ended.
  ///
  /// A bundle that is being worked on is left alone, also where that began after the rules were looked at, and so is one of
  /// which the rules say something else by then.
  ///
  /// - Parameters:
  ///   - limit: the most bundles that are removed, the oldest first; the others the next time.
  ///   - isCancelled: whether it is to end at once; what was removed until then stays removed.
  package func prune(
    _ retention: InboxRetention, limit: Int = .max, isCancelled: () -> Bool = { false }
  ) throws -> InboxPruning {
    let failures = try clearRemoved(limit: limit, isCancelled: isCancelled)
    let oldest = retention.oldest(at: surroundings.now())
    var pruning = try retentionPlan(retention, limit: limit, isCancelled: isCancelled)
    let planned = pruning.removed
    pruning.removed = []
    pruning.failures = failures
    for removal in planned {
      // Where the storage cannot be used, the rest has time too.
      if isCancelled() || pruning.removed.count >= limit || pruning.failures.contains(where: \.isEnvironmental) {
        break
      }
      let seen = pruning.seen[removal.bundle]
      do {
        let removed = try remove(removal, sparing: [.waiting, .running], newer: retention.newerKnown) { bundle in
          retention.stillRemoves(bundle, by: removal.rule, seen: seen, oldest: oldest)
        }
        if let removed {
          pruning.removed.append(removed.removal)
          if let failure = removed.failure { pruning.failures.append(.init(removal.bundle, failure)) }
        } else {
          pruning.spared.append(removal.bundle)
        }
      } catch let error as FileError {
        // One bundle does not keep the others.
        pruning.failures.append(.init(removal.bundle, error))
      }
    }
    if !pruning.removed.isEmpty { changes.tell() }
    return pruning
  }

  /// Removes a bundle with a record of it.
  ///
  /// - Parameters:
  ///   - newer: up to how many newer bundles of the same damage are counted.
  ///   - mayGo: whether the bundle as it is then is still to be removed.
  /// - Returns: what was recorded, and what kept its files, which go at the next chance; nil where it is gone already, is to
  ///   stay, or something is being done to it.
  func remove(
    _ removal: InboxRemoval, sparing states: Set<InboxJob.State>, newer: Int, where mayGo: (RetentionCandidate) -> Bool
  ) throws -> (removal: InboxRemoval, failure: (any ReportableError)?)? {
    if storage.uses.isBeingUsed(removal.bundle) { return nil }
    let quarantine = QuarantineFolder(
      folders.bundle(removal.bundle).appending(QuarantineFolder.name), surroundings: surroundings)
    // A salvage that was begun on the pages holds this lock; it is no job of the inbox.
    var lock: FolderLock?
    if try fileSystem.status(of: quarantine.path, followingLinks: false)?.kind == .directory {
      do {
        lock = try quarantine.salvageLock()
      } catch {
        guard error.kind == .locked else { throw error }
        return nil
      }
    }
    // First the records know it no more, and know that its files are to go: a kill leaves files that are removed later.
    guard let removed = try records.remove(removal, sparing: states, newer: newer, where: mayGo) else { return nil }
    let failure = try clear(removal.bundle)
    _ = consume lock
    return (removed, failure)
  }

  /// Removes the files of bundles that are known to be removed, which a kill left.
  ///
  /// - Parameters:
  ///   - limit: the most bundles.
  ///   - isCancelled: whether it is to end at once.
  /// - Returns: those whose files could not be removed, or not all of them.
  @discardableResult
  package func clearRemoved(
    limit: Int = .max, isCancelled: () -> Bool = { false }
  ) throws(InboxError) -> [InboxPruning.Failure] {
    var failures: [InboxPruning.Failure] = []
    for bundle in try records.removalsNotCleared().prefix(limit) where !isCancelled() {
      guard let error = try clear(bundle) else { continue }
      let failure = InboxPruning.Failure(bundle, error)
      failures.append(failure)
      // Where the storage cannot be used, the others would fare no better.
      if failure.isEnvironmental { break }
    }
    return failures
  }

  /// Removes the files of a bundle that is known to be removed.
  ///
  /// - Returns: what kept them; nil where they are gone.
  private func clear(_ bundle: String) throws(InboxError) -> (any ReportableError)? {
    if InboxFolders.isID(bundle) {
      do {
        if storage.isShared { try storage.remove(bundle) }
        for folder in [folders.bundle(bundle), folders.work(bundle)] { try removeAll(of: folder) }
      } catch let error as any ReportableError {
        return error
      } catch {
        return InboxError(.records, operation: "remove the files of a bundle", detail: "an unforeseen failure")
      }
    }
    try records.noteCleared(bundle)
    return nil
  }

  /// Removes a folder, which another process may be removing too.
  private func removeAll(of folder: FilePath) throws(FileError) {
    for _ in 0..<100 {
      do {
        return try fileSystem.removeTree(folder)
      } catch {
        guard error.kind == .notFound else { throw error }
      }
    }
  }
}
