import Foundation
package import Platform

/// The result of the last proving of a backup, kept beside it as `<id>.proof.json`.
package struct BackupProof: Sendable, Hashable, Codable {
  /// How it ended.
  package enum Result: String, Sendable, Hashable, Codable {
    /// Everything that was looked at is as it should be.
    case proven

    case failed

    /// It could not be told: the surroundings were at fault, or time ran out.
    case inconclusive
  }

  /// How far it went; each includes those before.
  package enum Depth: String, Sendable, Hashable, Codable, Comparable, CaseIterable {
    /// The files that were written were read back, and their digests are right.
    case files

    /// It was restored, opened, passed SQLite's integrity check, and has the records that the manifest says.
    case restored

    /// The restored store was migrated to the app's current model too.
    case migrated

    /// Whether one goes less far than another.
    package static func < (left: Depth, right: Depth) -> Bool { left.rank < right.rank }

    private var rank: Int {
      switch self {
      case .files: 0
      case .restored: 1
      case .migrated: 2
      }
    }
  }

  /// Something that is not as it should be.
  package struct Problem: Sendable, Hashable, Codable {
    /// A stable word, such as `block-damaged`.
    package var code: String

    /// The problem in plain words, one sentence without a full stop.
    package var words: String

    /// The file of the backup that it is in, where it is in one.
    package var file: String?

    /// The blocks that are affected, counted from 0, at most 1000.
    package var blocks: [Int]?

    /// A problem in words.
    package init(code: String, words: String, file: String? = nil, blocks: [Int]? = nil) {
      self.code = code
      self.words = words
      self.file = file
      self.blocks = blocks
    }
  }

  /// The name of the format: always `lazaret-backup-proof`.
  package var format = "lazaret-backup-proof"

  /// The version of the format: 1.
  package var version = 1

  /// The backup that was proven.
  package var id: BackupIdentifier

  /// When, in RFC 3339.
  package var date: String

  /// How it ended.
  package var result: Result

  /// How far it went.
  package var depth: Depth

  /// What was found where it was not proven.
  package var problems: [Problem]

  /// What was found in files that restoring does not need, such as the hashes of pages; nil where nothing was.
  package var warnings: [Problem]?

  /// The digest of the manifest that this is the proof of: the manifest's own, or the SHA-256 of its text where it has none;
  /// nil in proofs of earlier versions, and for an original.
  package var manifest: String?

  /// The SHA-256 of the text as it is without this key, in hexadecimal digits; nil in proofs of earlier versions.
  package var digest: String?

  /// When it last was restored and found right, in RFC 3339; kept where a later look went less far.
  package var lastRestored: String?

  /// A result.
  package init(
    id: BackupIdentifier, date: Timestamp, result: Result, depth: Depth, problems: [Problem] = [],
    warnings: [Problem] = [], lastRestored: String? = nil, manifest: String? = nil
  ) {
    self.id = id
    self.date = date.rfc3339
    self.result = result
    self.depth = depth
    self.problems = problems
    self.warnings = warnings.isEmpty ? nil : warnings
    self.manifest = manifest
    self.lastRestored = result == .proven && depth >= .restored ? date.rfc3339 : lastRestored
  }

  /// The code of the warning that what was proven is the evidence of a store that was not sound.
  package static let evidenceCode = "evidence"

  /// Whether its files are as they were kept, and the store in them is damaged.
  package var isOfEvidence: Bool { warnings?.contains { $0.code == Self.evidenceCode } == true }

  /// What the name of a proof has behind the identifier.
  package static let suffix = ".proof.json"

  /// Reads a proof; nil where it is none, which is as if there were none.
  package init?(json bytes: [UInt8], of id: BackupIdentifier) {
    // A proof that cannot be read proves nothing; the backup is then taken for one that was never proven.
    guard let proof = try? JSONDecoder().decode(BackupProof.self, from: Data(bytes)),
      proof.format == "lazaret-backup-proof", proof.version == 1, proof.id == id
    else { return nil }
    switch DigestedText.verdict(bytes) {
    case .right: break
    case .changed: return nil
    case .none:
      // Each byte counts: what an earlier version wrote has no digest, and no key that is not known.
      guard proof.digest == nil, (try? proof.text()) == bytes else { return nil }
    }
    self = proof
    digest = nil
  }

  /// The proof as the JSON text that is written, with its own digest and a final newline.
  package func json() throws(BackupError) -> [UInt8] {
    var proof = self
    proof.digest = nil
    return DigestedText.adding(to: try proof.text())
  }

  private func text() throws(BackupError) -> [UInt8] {
    try BackupError.json(self, to: "write the proof of backup \(id)")
  }
}
