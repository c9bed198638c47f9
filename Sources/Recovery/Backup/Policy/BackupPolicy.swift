import AgeEncryption
import StoreFiles

/// When backups are taken by themselves, and which are kept.
///
/// Kept as `backup-policy.json` in the home: versioned JSON, described in `Documentation/BACKUP_POLICY.md`. Whatever it says,
/// a migration keeps the original, and what a restore or a salvaged store replaces is quarantined.
package struct BackupPolicy: Sendable, Hashable, Codable {
  /// The name of the file in the home.
  package static let fileName = "backup-policy.json"

  /// The hours after which an opening takes a backup; nil for never on this account.
  package var everyHours: Int?

  /// The openings after which one takes a backup; nil for never on this account.
  package var everyOpenings: Int?

  /// Which backups are kept.
  package var keep: RetentionPolicy

  /// The days for which a dropped backup stays in the trash.
  package var trashDays: Int

  /// How backups are packed.
  package var compression: BackupCompression

  /// How hard backups are packed: 1, 6 or 9 for gzip, 1 to 19 for Zstandard.
  package var level: Int

  /// To whom backups are encrypted, as age public keys; nil where they are not.
  package var encryptTo: [String]?

  /// Whether a migration is preceded by a packed, proven backup, besides keeping the original itself.
  package var beforeMigration: Bool

  /// Whether a sound store is backed up before a salvaged one takes its place, besides being quarantined.
  package var beforeInstall: Bool

  /// Whether a sound store is backed up before a backup takes its place, besides being quarantined.
  package var beforeRestore: Bool

  /// A policy: by default one backup a day, and those of `RetentionPolicy.usual` are kept.
  package init(
    everyHours: Int? = 24, everyOpenings: Int? = nil, keep: RetentionPolicy = .usual, trashDays: Int = 7,
    compression: BackupCompression = .gzip, level: Int? = nil, beforeMigration: Bool = false,
    beforeInstall: Bool = true, beforeRestore: Bool = true, encryptTo: [String]? = nil
  ) {
    self.everyHours = everyHours
    self.everyOpenings = everyOpenings
    self.keep = keep
    self.trashDays = trashDays
    self.compression = compression
    self.level = level ?? compression.usualLevel
    self.encryptTo = encryptTo
    self.beforeMigration = beforeMigration
    self.beforeInstall = beforeInstall
    self.beforeRestore = beforeRestore
  }

  /// How this process packs by the policy: with gzip where it lacks the compression, since a backup is better than none.
  package var usablePacking: (compression: BackupCompression, level: Int) {
    compression.isAvailable ? (compression, level) : (.gzip, BackupCompression.gzip.usualLevel)
  }

  /// To whom backups are encrypted; nil where they are not.
  package func encryption() throws(BackupError) -> BackupEncryption? {
    guard let encryptTo else { return nil }
    do throws(AgeError) {
      var recipients: [AgeRecipient] = []
      for text in encryptTo { recipients.append(try AgeRecipient(text)) }
      return BackupEncryption(to: recipients)
    } catch {
      throw BackupError(.policyUnreadable, because: error, operation: "read the backup policy")
    }
  }

  static let formatName = "lazaret-backup-policy"

  private enum CodingKeys: String, CodingKey, CaseIterable {
    case format, version, everyHours, everyOpenings, keep, trashDays, compression, level, beforeMigration,
      beforeInstall, beforeRestore, encryptTo
  }

  /// The keys that its JSON may have.
  static var knownKeys: Set<String> { Set(CodingKeys.allCases.map(\.rawValue)) }

  /// Reads a policy; what is missing is as usual, and `null` stands for never.
  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    let usual = BackupPolicy()
    func number(_ key: CodingKeys, _ usual: Int?) throws -> Int? {
      values.contains(key) ? try values.decodeIfPresent(Int.self, forKey: key) : usual
    }
    func word(_ key: CodingKeys, _ usual: Bool) throws -> Bool {
      try values.decodeIfPresent(Bool.self, forKey: key) ?? usual
    }
    self.init(
      everyHours: try number(.everyHours, usual.everyHours),
      everyOpenings: try number(.everyOpenings, usual.everyOpenings),
      keep: try values.decodeIfPresent(RetentionPolicy.self, forKey: .keep) ?? usual.keep,
      trashDays: try values.decodeIfPresent(Int.self, forKey: .trashDays) ?? usual.trashDays,
      compression: try values.decodeIfPresent(BackupCompression.self, forKey: .compression) ?? usual.compression,
      level: try values.decodeIfPresent(Int.self, forKey: .level),
      beforeMigration: try word(.beforeMigration, usual.beforeMigration),
      beforeInstall: try word(.beforeInstall, usual.beforeInstall),
      beforeRestore: try word(.beforeRestore, usual.beforeRestore),
      encryptTo: try values.decodeIfPresent([String].self, forKey: .encryptTo))
  }

  /// Writes a policy with all its keys.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "format": Self.formatName, "version": 1, "everyHours": JSON.orNull(everyHours),
      "everyOpenings": JSON.orNull(everyOpenings), "keep": keep, "trashDays": trashDays,
      "compression": compression == .gzip ? nil : compression, "level": JSON.orNull(level), "encryptTo": encryptTo,
      "beforeMigration": beforeMigration, "beforeInstall": beforeInstall, "beforeRestore": beforeRestore,
    ])
  }
}
