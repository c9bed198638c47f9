import Foundation
package import Platform
package import SystemPackage

/// The rules for automatic backups.
///
/// Stored as `backup-policy.json` in the home: versioned JSON, described in `Documentation/BACKUP_POLICY.md`.
/// Regardless of it, migrations keep the original, and replaced stores are quarantined.
package struct BackupPolicy: Sendable, Hashable, Codable {
  package static let fileName = "backup-policy.json"

  /// The hours between automatic backups, if limited.
  package var everyHours: Int?

  /// The openings between automatic backups, if limited.
  package var everyOpenings: Int?

  package var keep: RetentionPolicy

  /// The days in the trash.
  package var trashDays: Int

  package var compression: BackupCompression

  /// The level: 1, 6 or 9 for gzip, 1 to 19 for Zstandard.
  package var level: Int

  /// The age public keys of recipients; nil for plain backups.
  var encryptTo: [String]?

  /// Whether to take a packed, proven backup before a migration, besides the original.
  package var beforeMigration: Bool

  /// Whether to back up a sound store before installing a salvaged one.
  package var beforeInstall: Bool

  /// Whether to back up a sound store before a restore.
  package var beforeRestore: Bool

  /// By default, one backup a day is kept by `RetentionPolicy.usual`.
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

  /// Gzip if this process lacks the compression, as a backup matters more.
  package var usablePacking: (compression: BackupCompression, level: Int) {
    compression.isAvailable ? (compression, level) : (.gzip, BackupCompression.gzip.usualLevel)
  }

  package func encryption() throws -> BackupEncryption? {
    guard let encryptTo else { return nil }
    do throws(FileError) {
      return BackupEncryption(to: try encryptTo.map { (text) throws(FileError) in try AgeRecipient(text) })
    } catch { throw BackupError(.policyUnreadable, because: error, operation: "read the backup policy") }
  }

  static let formatName = "lazaret-backup-policy"

  private enum CodingKeys: String, CodingKey, CaseIterable {
    case format, version, everyHours, everyOpenings, keep, trashDays, compression, level, beforeMigration,
      beforeInstall, beforeRestore, encryptTo
  }

  static var knownKeys: Set<String> { Set(CodingKeys.allCases.map(\.rawValue)) }

  /// Missing keys get defaults; `null` means never.
  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    let usual = BackupPolicy()
    func number(_ key: CodingKeys, _ usual: Int?) throws -> Int? {
      values.contains(key) ? try values.decodeIfPresent(Int.self, forKey: key) : usual
    }
    func value<Value: Decodable>(_ key: CodingKeys, _ usual: Value) throws -> Value {
      try values.decodeIfPresent(Value.self, forKey: key) ?? usual
    }
    self.init(
      everyHours: try number(.everyHours, usual.everyHours),
      everyOpenings: try number(.everyOpenings, usual.everyOpenings),
      keep: try value(.keep, usual.keep), trashDays: try value(.trashDays, usual.trashDays),
      compression: try value(.compression, usual.compression),
      level: try values.decodeIfPresent(Int.self, forKey: .level),
      beforeMigration: try value(.beforeMigration, usual.beforeMigration),
      beforeInstall: try value(.beforeInstall, usual.beforeInstall),
      beforeRestore: try value(.beforeRestore, usual.beforeRestore),
      encryptTo: try values.decodeIfPresent([String].self, forKey: .encryptTo))
  }

  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "format": Self.formatName, "version": 1, "everyHours": JSON.orNull(everyHours),
      "everyOpenings": JSON.orNull(everyOpenings), "keep": keep, "trashDays": trashDays,
      "compression": compression == .gzip ? nil : compression, "level": JSON.orNull(level), "encryptTo": encryptTo,
      "beforeMigration": beforeMigration, "beforeInstall": beforeInstall, "beforeRestore": beforeRestore,
    ])
  }

  /// Loads the home's policy, or the default.
  ///
  /// - Throws: `backup-policy-unreadable`; no part of an invalid file is used.
  package static func load(home: FilePath, in fileSystem: FileSystem = FileSystem()) throws -> BackupPolicy {
    let file = home.appending(fileName)
    guard try fileSystem.status(of: file) != nil else { return BackupPolicy() }
    return try BackupPolicy(json: fileSystem.contents(of: file, limit: 1 << 20), at: file)
  }

  /// Writes the policy into a home.
  package func save(home: FilePath, in fileSystem: FileSystem = FileSystem()) throws {
    let file = home.appending(Self.fileName)
    if let words = contradiction { throw BackupError.policy(words, at: file) }
    let bytes = try JSON.bytes(of: self, to: "write the policy", at: file)
    try fileSystem.makeDirectory(home)
    try fileSystem.writeAtomically(bytes, to: file, replacing: true)
  }

  /// Parses a policy, and rejects unknown keys: a misspelled rule would keep no backups.
  ///
  /// - Parameter path: for errors.
  package init(json bytes: [UInt8], at path: FilePath? = nil) throws {
    let decoder = JSONDecoder()
    do {
      let head = try decoder.decode(FormatHead.self, from: Data(bytes))
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
      throw BackupError.policy(error.plainWords, at: path)
    } catch { throw BackupError.policy("it is not JSON", at: path) }
    if let words = contradiction { throw BackupError.policy(words, at: path) }
  }

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
      do { _ = try encryption() } catch { return "encryptTo: \(BackupError(any: error).detail)" }
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

  private struct Ignored: Decodable { init(from decoder: any Decoder) throws {} }
}

extension BackupError {
  fileprivate static func policy(_ detail: String, at path: FilePath?) -> BackupError {
    BackupError(.policyUnreadable, operation: "read the backup policy", path: path, detail: detail)
  }
}

extension DecodingError {
  /// The problem, without the file's values.
  fileprivate var plainWords: String {
    func place(_ path: [any CodingKey]) -> String {
      path.isEmpty ? "it" : printable(path.map(\.stringValue).joined(separator: "."))
    }
    switch self {
    case .keyNotFound(let key, let context): return "\(place(context.codingPath + [key])) is missing"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      return "\(place(context.codingPath)) is of the wrong kind"
    case .dataCorrupted(let context):
      return context.codingPath.isEmpty
        ? "it is not JSON" : "\(place(context.codingPath)): \(printable(context.debugDescription))"
    @unknown default: return "it cannot be read"
    }
  }
}

/// The time rules of automatic backups.
package struct BackupSchedule: Sendable, Hashable {
  var policy: BackupPolicy

  package init(_ policy: BackupPolicy) { self.policy = policy }

  /// Returns whether a backup is due.
  ///
  /// Backups dated in the future are ignored, as a clock is or was wrong; without others, one is due.
  ///
  /// - Parameter openings: the number since the last backup, including this one.
  package func isDue(_ backups: [Timestamp], openings: Int, now: Timestamp) -> Bool {
    if let every = policy.everyOpenings, openings >= every { return true }
    guard let hours = policy.everyHours else { return false }
    // Clocks of several machines differ.
    let latest = backups.filter { $0.secondsSince1970 <= now.secondsSince1970 &+ 300 }.max()
    guard let latest else { return true }
    return now.secondsSince1970 &- latest.secondsSince1970 >= Int64(hours) * 3600
  }
}
