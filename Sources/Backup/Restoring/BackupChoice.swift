package import Platform

/// The backup that is to be restored, and the newer ones that are not.
package struct BackupChoice: Sendable, Hashable {
  /// A newer backup that was not taken.
  package struct PassedOver: Sendable, Hashable, Encodable {
    /// Why it was not taken.
    package enum Reason: String, Sendable, Hashable, Encodable {
      /// A file of it, or of one that it needs, is missing.
      case broken

      /// It is of a store that was damaged, or is kept as evidence.
      case apart

      /// It was found damaged when it was last verified.
      case failed

      /// Both of its manifests are lost, and it was not verified since; taken where there is no other.
      case unverified

      /// It is dated in the future, so that it cannot be told how old it is.
      case future = "dated-in-the-future"
    }

    /// What it is called.
    package var id: BackupIdentifier

    /// Why it was not taken.
    package var reason: Reason

    /// The reason in plain words, one sentence without a full stop that has the backup as its subject.
    package var words: String

    private enum CodingKeys: String, CodingKey {
      case id
      case reason = "code"
      case words
    }
  }

  /// The backup.
  package var backup: StoredBackup

  /// The newer ones, newest first; empty where the backup was named.
  package var passedOver: [PassedOver] = []
}

extension BackupRestorer {
  /// How far clocks of several machines differ, in seconds.
  private static let clockTolerance: Int64 = 300

  /// The backup to restore: the one of that name, or the newest that is whole, of a sound store, not found damaged, and not
  /// dated in the future.
  ///
  /// - Parameters:
  ///   - id: its name; nil for the newest.
  ///   - time: a moment that it must not be later than.
  /// - Returns: the backup, with those that are newer, and no later than the moment, and why each was passed over.
  /// - Throws: `no-such-backup`; `backup-of-other-store` for one that lies in the same folder and is not of the place's store.
  package func choice(
    _ id: BackupIdentifier? = nil, notLaterThan time: Timestamp? = nil
  ) throws(BackupError) -> BackupChoice {
    let catalog = try BackupCatalog(of: place)
    if let id {
      let backup = try catalog.backup(id)
      if catalog.isOther(id) { throw .ofOtherStore(backup) }
      return BackupChoice(backup: backup)
    }
    var passedOver: [BackupChoice.PassedOver] = []
    for backup in catalog.backups where time.map({ backup.id.date <= $0 }) != false {
      guard let reason = obstacle(to: backup) else { return BackupChoice(backup: backup, passedOver: passedOver) }
      passedOver.append(reason)
    }
    // Restoring checks every page: better than nothing.
    if let place = passedOver.firstIndex(where: { $0.reason == .unverified }) {
      return BackupChoice(
        backup: try catalog.backup(passedOver[place].id), passedOver: Array(passedOver[..<place]))
    }
    throw nothing(passedOver, isBefore: time != nil)
  }

  /// Why a backup is not restored unless it is named; nil for one that is.
  private func obstacle(to backup: StoredBackup) -> BackupChoice.PassedOver? {
    func passed(_ reason: BackupChoice.PassedOver.Reason, _ words: String) -> BackupChoice.PassedOver {
      .init(id: backup.id, reason: reason, words: words)
    }
    if let problem = backup.problems.first { return passed(.broken, "is not whole: \(problem.words)") }
    if backup.isApart {
      let isEvidence = backup.manifest?.kind == .evidence
      let what = backup.manifest?.check.isSound == true && isEvidence ? "is kept as evidence" : "is of a damaged store"
      return passed(.apart, what)
    }
    if backup.proof?.result == .failed {
      let words = backup.proof?.problems.first.map { ": \($0.words)" } ?? ""
      return passed(.failed, "was found damaged when it was verified\(words)")
    }
    if backup.manifestSource == .rebuilt {
      return passed(.unverified, "has lost its manifest, and was not verified since")
    }
    if backup.id.date.secondsSince1970 > surroundings.now().secondsSince1970 &+ Self.clockTolerance {
      return passed(.future, "is dated in the future")
    }
    return nil
  }

  private func nothing(_ passedOver: [BackupChoice.PassedOver], isBefore: Bool) -> BackupError {
    var detail =
      isBefore
      ? "no backup that can be restored is so old in \(printable(place.location))"
      : "no backup that can be restored lies in \(printable(place.location))"
    if let first = passedOver.first {
      detail += "; \(first.id) \(printable(first.words))"
      if passedOver.count > 1 { detail += ", and \(passedOver.count - 1) more cannot be restored either" }
    }
    let isFuture = passedOver.contains { $0.reason == .future }
    return BackupError(
      .notFound, operation: "find the backup", detail: detail,
      hint: isFuture
        ? "Check the clock, or name the backup: lazaret backup restore ID"
        : "List what there is with: lazaret backup list")
  }
}

extension BackupError {
  /// The error for a backup that is not of the store that was named.
  package static func ofOtherStore(_ backup: StoredBackup) -> BackupError {
    let path = backup.manifest?.store.path.text ?? ""
    return BackupError(
      .otherStore, operation: "find the backup",
      detail: path.isEmpty
        ? "it is not known of which store backup \(backup.id) is"
        : "backup \(backup.id) is of another store, \(printable(path))")
  }
}
