internal import Lazaret
internal import Platform
internal import SystemPackage

/// The retention rules; bundles outside every rule stay.
package struct InboxRetention: Sendable, Hashable {
  /// The days to keep bundles after arrival.
  package var days: Int?

  /// The newest bundles to keep per damage.
  package var last: Int?

  /// The most bytes of bundles and results; the oldest go first.
  package var bytes: Int64?

  /// Whether to keep the newest bundle of each damage in any case.
  package var keepsOneOfEach: Bool

  package init(days: Int? = nil, last: Int? = nil, bytes: Int64? = nil, keepsOneOfEach: Bool = true) {
    self.days = days
    self.last = last
    self.bytes = bytes
    self.keepsOneOfEach = keepsOneOfEach
  }

  package var hasRules: Bool { days != nil || last != nil || bytes != nil }

  /// The newer bundles of the same damage to count.
  var newerKnown: Int { max(1, last ?? 1) }
}

enum RetentionVerdict: Sendable, Hashable {
  case kept(InboxKeepingReason)

  case removed(InboxRemoval.Rule)
}

package enum InboxKeepingReason: String, Sendable, Hashable, Codable, CaseIterable {
  /// It is in use, or waits for a job.
  case work

  /// It is the newest of its damage.
  case newest

  /// It arrived within the kept days.
  case days

  /// It is among the newest kept of its damage.
  case last

  /// It is outside every rule.
  case none
}

package struct RetentionCandidate: Sendable, Hashable {
  var id: String

  var sender: String

  /// The arrival, in RFC 3339.
  var date: String

  /// The received file's SHA-256.
  var sha256: String

  var group: String?

  /// The size of the received file and results.
  var bytes: Int64

  /// The counted newer bundles of the same damage; 0 without damage.
  ///
  /// For a store in quarantine, only those with quarantined stores.
  package var newer: Int

  /// Whether it has a waiting or running job, or waits to be opened.
  var isAtWork: Bool

  /// The last time it was sent, in RFC 3339.
  var received: String

  var key: InboxKey { InboxKey(date: date, id: id) }
}

extension InboxRetention {
  /// Applies the rules on days and damage; that on bytes concerns all bundles together.
  ///
  /// - Parameter oldest: see ``oldest(at:)``.
  func verdict(on bundle: RetentionCandidate, oldest: String?) -> RetentionVerdict {
    if let reason = reasonToStay(bundle) { return .kept(reason) }
    if let oldest, bundle.received >= oldest { return .kept(.days) }
    if let last, bundle.group != nil {
      if bundle.newer < last { return .kept(.last) }
      return .removed(oldest == nil ? .last : .days)
    }
    return oldest == nil ? .kept(.none) : .removed(.days)
  }

  /// The earliest arrival kept by days, in RFC 3339.
  func oldest(at now: Timestamp) -> String? {
    days.map { Timestamp(secondsSince1970: now.secondsSince1970 - Int64($0) * 86_400).rfc3339 }
  }

  /// Whether a rule still removes a bundle.
  ///
  /// - Parameters:
  ///   - seen: the bundle as the rules saw it.
  ///   - oldest: see ``oldest(at:)``.
  func stillRemoves(
    _ bundle: RetentionCandidate, by rule: InboxRemoval.Rule, seen: RetentionCandidate?, oldest: String?
  ) -> Bool {
    guard let seen, seen.received == bundle.received else { return false }
    if case .removed = verdict(on: bundle, oldest: oldest) { return true }
    return rule == .bytes && reasonToStay(bundle) == nil
  }

  /// The reason to keep a bundle regardless of the rules.
  func reasonToStay(_ bundle: RetentionCandidate) -> InboxKeepingReason? {
    if bundle.isAtWork { return .work }
    return keepsOneOfEach && bundle.group != nil && bundle.newer == 0 ? .newest : nil
  }
}

package struct InboxRemoval: Sendable, Hashable, Encodable {
  package enum Rule: String, Sendable, Hashable, Codable, CaseIterable {
    /// It was too old.
    case days

    /// Enough newer bundles had its damage.
    case last

    /// All bundles were too large, and it was among the oldest.
    case bytes

    case discarded
  }

  /// In order of removal; 0 until recorded.
  package var number: Int64

  package var bundle: String

  /// The removal, in RFC 3339.
  package var date: String

  package var rule: Rule

  package var sender: String

  /// The bundle's arrival, in RFC 3339.
  package var arrived: String

  /// The received file's SHA-256.
  package var sha256: String

  package var group: String?

  /// The bundle's bytes; a bucket with versions or object lock still has them.
  package var bytes: Int64

  /// Whether the files were removed as far as storage allows; otherwise retried.
  package var isCleared: Bool

  /// All but ``number``.
  private enum CodingKeys: String, CodingKey {
    case bundle, date, rule, sender, arrived, sha256, group, bytes
    case isCleared = "cleared"
  }
}

extension InboxRemoval {
  /// Creates a bundle's removal.
  ///
  /// - Parameter placed: the size of its results.
  init(of bundle: InboxBundle, placed: Int64, by rule: Rule, at date: Timestamp) {
    self.init(
      number: 0, bundle: bundle.id, date: date.rfc3339, rule: rule, sender: bundle.sender, arrived: bundle.date,
      sha256: bundle.sha256, group: bundle.fingerprint?.group, bytes: bundle.bytes + placed, isCleared: false)
  }

  init(of bundle: RetentionCandidate, by rule: Rule, date: String) {
    self.init(
      number: 0, bundle: bundle.id, date: date, rule: rule, sender: bundle.sender, arrived: bundle.date,
      sha256: bundle.sha256, group: bundle.group, bytes: bundle.bytes, isCleared: false)
  }
}

/// The retention rules' effects, done or planned.
package struct InboxPruning: Sendable {
  /// A bundle with files that could not be removed.
  package struct Failure: Sendable, Hashable, Encodable {
    package var bundle: String

    var code: String

    /// The message as a sentence.
    package var words: String

    /// Whether storage is at fault, not the bundle.
    var isEnvironmental: Bool

    private enum CodingKeys: CodingKey { case bundle, code, words }

    init(_ bundle: String, _ error: any ReportableError) {
      self.bundle = bundle
      code = error.code
      words = error.detail + "."
      isEnvironmental = !(error is FileError) && error.isEnvironmental
    }
  }

  /// Bundles removed or to remove, oldest first.
  package var removed: [InboxRemoval] = []

  package var kept: [InboxKeepingReason: Int] = [:]

  /// Bundles spared because they were in use by then.
  package var spared: [String] = []

  /// Also from earlier removals; retried the next time.
  package var failures: [Failure] = []

  /// The bundles to remove, as the rules saw them.
  var seen: [String: RetentionCandidate] = [:]

  /// The bytes removed; see ``InboxRemoval/bytes``.
  package var bytes: Int64 { removed.reduce(0) { $0 + $1.bytes } }
}

extension Inbox {
  private static let batch = 500

  /// Returns the removals due, without doing them.
  ///
  /// - Parameters:
  ///   - limit: if reached, kept bundles are not all counted.
  ///   - isCancelled: polled to stop early.
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
        let bundles = try records.retentionCandidates(after: key, newer: retention.newerKnown, limit: Self.batch)
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
      // The total size needs all bundles.
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
      InboxRemoval(of: bundle, by: goes[bundle.id] ?? .days, date: now.rfc3339)
    }
    return plan
  }

  /// Removes bundles by the rules, each wholly or not at all, even if interrupted.
  ///
  /// Spares bundles in use, also since the check, and those that the rules meanwhile keep.
  ///
  /// - Parameters:
  ///   - limit: oldest first.
  ///   - isCancelled: polled; finished removals stay.
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
      // Storage is unavailable: continue later.
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
        // One failure must not stop the others.
        pruning.failures.append(.init(removal.bundle, error))
      }
    }
    if !pruning.removed.isEmpty { changes.tell() }
    return pruning
  }

  /// Removes a bundle and records the removal.
  ///
  /// - Parameters:
  ///   - newer: the most newer bundles of the same damage to count.
  ///   - mayGo: checks the current bundle.
  /// - Returns: the removal and any error on files, which are retried; nil if missing, in use or to be kept.
  func remove(
    _ removal: InboxRemoval, sparing states: Set<InboxJob.State>, newer: Int, where mayGo: (RetentionCandidate) -> Bool
  ) throws -> (removal: InboxRemoval, failure: (any ReportableError)?)? {
    if storage.uses.isBeingUsed(removal.bundle) { return nil }
    let quarantine = QuarantineFolder(
      folders.bundle(removal.bundle).appending(QuarantineFolder.name), surroundings: surroundings)
    // A salvage started on the pages holds this lock; it is not a job.
    var lock: FolderLock?
    if try fileSystem.status(of: quarantine.path, followingLinks: false)?.kind == .directory {
      do {
        lock = try quarantine.salvageLock()
      } catch {
        guard error.kind == .locked else { throw error }
        return nil
      }
    }
    // Records first: after a kill they know the files to remove.
    guard let removed = try records.remove(removal, sparing: states, newer: newer, where: mayGo) else { return nil }
    let failure = try clear(removal.bundle)
    lock.take()?.release()
    return (removed, failure)
  }

  /// Removes files left by a kill.
  ///
  /// - Parameter isCancelled: polled to stop early.
  /// - Returns: the bundles with remaining files.
  @discardableResult
  package func clearRemoved(
    limit: Int = .max, isCancelled: () -> Bool = { false }
  ) throws(InboxError) -> [InboxPruning.Failure] {
    var failures: [InboxPruning.Failure] = []
    for bundle in try records.removalsNotCleared().prefix(limit) where !isCancelled() {
      guard let error = try clear(bundle) else { continue }
      let failure = InboxPruning.Failure(bundle, error)
      failures.append(failure)
      // With unavailable storage the others would fail too.
      if failure.isEnvironmental { break }
    }
    return failures
  }

  /// Removes a removed bundle's files; returns the error, if any.
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

  /// Removes a folder, also if another process is removing it.
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
