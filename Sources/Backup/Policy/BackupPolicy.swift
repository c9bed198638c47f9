import Foundation
package import Platform
package import SystemPackage

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

extension BackupPolicy {
  /// The policy of a home: its file's, or the usual one where there is none.
  ///
  /// - Throws: `backup-policy-unreadable` for a file that says something that cannot be meant; nothing of it is guessed.
  package static func load(
    home: FilePath, in fileSystem: FileSystem = FileSystem()
  ) throws(BackupError) -> BackupPolicy {
    let file = home.appending(fileName)
    let bytes: [UInt8]
    do throws(FileError) {
      guard try fileSystem.status(of: file) != nil else { return BackupPolicy() }
      bytes = try fileSystem.contents(of: file, limit: 1 << 20)
    } catch {
      throw BackupError(error)
    }
    return try BackupPolicy(json: bytes, at: file)
  }

  /// Writes the policy into a home, in place of the one that is there.
  package func save(home: FilePath, in fileSystem: FileSystem = FileSystem()) throws(BackupError) {
    let file = home.appending(Self.fileName)
    if let words = contradiction { throw .policy(words, at: file) }
    do throws(FileError) {
      let bytes = try JSON.bytes(of: self, to: "write the policy", at: file)
      try fileSystem.makeDirectory(home)
      try fileSystem.writeAtomically(bytes, to: file, replacing: true)
    } catch {
      throw BackupError(error)
    }
  }

  /// Reads a policy, and refuses what it does not know: a rule with a slip in its name would otherwise keep nothing.
  ///
  /// - Parameter path: the file, for errors.
  package init(json bytes: [UInt8], at path: FilePath? = nil) throws(BackupError) {
    struct Head: Decodable {
      var format: String
      var version: Int
    }
    let decoder = JSONDecoder()
    do {
      let head = try decoder.decode(Head.self, from: Data(bytes))
      guard head.format == Self.formatName else { throw BackupError.policy("it is no backup policy", at: path) }
      guard head.version == 1 else {
        throw BackupError.policy("it is of version \(head.version), and this software knows version 1", at: path)
      }
      if let key = try Self.unknownKey(in: bytes) {
        throw BackupError.policy("it has a key \"\(printable(key))\" that no policy has", at: path)
      }
      self = try decoder.decode(BackupPolicy.self, from: Data(bytes))
    } catch let error as BackupError {
      throw error
    } catch let error as DecodingError {
      throw .policy(error.plainWords, at: path)
    } catch {
      throw .policy("it is not JSON", at: path)
    }
    if let words = contradiction { throw .policy(words, at: path) }
  }

  /// What in it cannot be meant; nil for a sound policy.
  private var contradiction: String? {
    for (name, number) in [("everyHours", everyHours), ("everyOpenings", everyOpenings)] {
      if let number, !(1...1_000_000).contains(number) { return "\(name) must be from 1 to 1000000, or null for never" }
    }
    guard (0...36500).contains(trashDays) else { return "trashDays must be from 0 to 36500" }
    guard compression.has(level: level) else {
      return "level must be \(compression.levelWords)" + (compression == .gzip ? "" : " for \(compression.rawValue)")
    }
    if let encryptTo {
      guard (1...100).contains(encryptTo.count) else { return "encryptTo must name from 1 to 100 keys, or be left out" }
      do throws(BackupError) { _ = try encryption() } catch { return "encryptTo: \(error.detail)" }
    }
    return nil
  }

  private static func unknownKey(in bytes: [UInt8]) throws -> String? {
    let all = try JSONDecoder().decode([String: Ignored].self, from: Data(bytes))
    if let key = all.keys.sorted().first(where: { !knownKeys.contains($0) }) { return key }
    struct Nested: Decodable { var keep: [String: Ignored]? }
    let keep = try JSONDecoder().decode(Nested.self, from: Data(bytes)).keep ?? [:]
    return keep.keys.sorted().first { !RetentionPolicy.knownKeys.contains($0) }.map { "keep.\($0)" }
  }

  private struct Ignored: Decodable {
    init(from decoder: any Decoder) throws {}
  }
}

extension BackupError {
  fileprivate static func policy(_ detail: String, at path: FilePath?) -> BackupError {
    BackupError(.policyUnreadable, operation: "read the backup policy", path: path, detail: detail)
  }
}

extension DecodingError {
  /// What is wrong, without a value of the file.
  fileprivate var plainWords: String {
    func place(_ path: [any CodingKey]) -> String {
      path.isEmpty ? "it" : printable(path.map(\.stringValue).joined(separator: "."))
    }
    switch self {
    case .keyNotFound(let key, let context):
      return "\(place(context.codingPath + [key])) is missing"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      return "\(place(context.codingPath)) is of the wrong kind"
    case .dataCorrupted(let context):
      return context.codingPath.isEmpty
        ? "it is not JSON" : "\(place(context.codingPath)): \(printable(context.debugDescription))"
    @unknown default: return "it cannot be read"
    }
  }
}

/// When the next backup by itself is due.
package struct BackupSchedule: Sendable, Hashable {
  /// The policy.
  package var policy: BackupPolicy

  /// A schedule by a policy.
  package init(_ policy: BackupPolicy) { self.policy = policy }

  /// Whether a backup is due.
  ///
  /// A backup that is dated in the future tells nothing, for a clock is or was wrong; without another one a backup is due.
  ///
  /// - Parameters:
  ///   - backups: the dates of the backups there are.
  ///   - openings: how many times the store was opened since the last backup, this one included.
  ///   - now: what the clock says.
  package func isDue(_ backups: [Timestamp], openings: Int, now: Timestamp) -> Bool {
    if let every = policy.everyOpenings, openings >= every { return true }
    guard let hours = policy.everyHours else { return false }
    // Clocks of several machines differ by some minutes.
    let latest = backups.filter { $0.secondsSince1970 <= now.secondsSince1970 &+ 300 }.max()
    guard let latest else { return true }
    return now.secondsSince1970 &- latest.secondsSince1970 >= Int64(hours) * 3600
  }
}
