package import Platform

/// The backup to restore, and the newer ones passed over.
package struct BackupChoice: Sendable, Hashable {
  package struct PassedOver: Sendable, Hashable, Encodable {
    package enum Reason: String, Sendable, Hashable, Encodable {
      /// A file of it, or of one it needs, is missing.
      case broken

      /// Its store was damaged, or it is evidence.
      case apart

      /// Its last verification found damage.
      case failed

      /// It lost both manifests, and was not verified since; chosen only if there is no other.
      case unverified

      /// It is dated in the future, so its age is unknown.
      case future = "dated-in-the-future"
    }

    package var id: BackupIdentifier

    package var reason: Reason

    /// A predicate with the backup as subject, without a full stop.
    package var words: String

    private enum CodingKeys: String, CodingKey {
      case id
      case reason = "code"
      case words
    }
  }

  package var backup: StoredBackup

  /// The newer ones, newest first; empty for a named backup.
  package var passedOver: [PassedOver] = []
}

extension BackupRestorer {
  /// The tolerance for clocks of several machines, in seconds.
  private static let clockTolerance: Int64 = 300

  /// Chooses the named backup, or the newest whole, undamaged one of a sound store that is not dated in the future.
  ///
  /// - Parameters:
  ///   - id: the name; nil for the newest.
  ///   - time: the latest acceptable time.
  /// - Returns: the backup, with the newer ones up to that time and why each was passed over.
  /// - Throws: `no-such-backup`; `backup-of-other-store` for one of another store in the same folder.
  package func choice(_ id: BackupIdentifier? = nil, notLaterThan time: Timestamp? = nil) throws -> BackupChoice {
    let catalog = try BackupCatalog(of: place)
    if let id {
      let backup = try catalog.backup(id)
      if catalog.isOther(id) { throw BackupError.ofOtherStore(backup) }
      return BackupChoice(backup: backup)
    }
    var passedOver: [BackupChoice.PassedOver] = []
    for backup in catalog.backups where time.map({ backup.id.date <= $0 }) != false {
      guard let reason = obstacle(to: backup) else { return BackupChoice(backup: backup, passedOver: passedOver) }
      passedOver.append(reason)
    }
    // Better than no backup, as restoring checks every page.
    if let place = passedOver.firstIndex(where: { $0.reason == .unverified }) {
      return BackupChoice(backup: try catalog.backup(passedOver[place].id), passedOver: Array(passedOver[..<place]))
    }
    throw nothing(passedOver, isBefore: time != nil)
  }

  /// Returns why a backup is chosen only by name, if so.
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
  package static func ofOtherStore(_ backup: StoredBackup) -> BackupError {
    let path = backup.manifest?.store.path.text ?? ""
    return BackupError(
      .otherStore, operation: "find the backup",
      detail: path.isEmpty
        ? "it is not known of which store backup \(backup.id) is"
        : "backup \(backup.id) is of another store, \(printable(path))")
  }
}
