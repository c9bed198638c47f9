import Foundation
package import Platform

/// The last proving of a backup, kept as `<id>.proof.json`.
package struct BackupProof: Sendable, Hashable, Codable {
  package enum Result: String, Sendable, Hashable, Codable {
    case proven, failed

    /// The environment or a time limit prevented a result.
    case inconclusive
  }

  /// Each depth includes those before.
  package enum Depth: String, Sendable, Hashable, Codable, Comparable, CaseIterable {
    /// The digests of the files are correct.
    case files

    /// It was restored, and passed SQLite's integrity check and the count of records.
    case restored

    /// It was also migrated to the app's current model.
    case migrated

    package static func < (left: Depth, right: Depth) -> Bool { left.rank < right.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
  }

  package struct Problem: Sendable, Hashable, Codable {
    /// A stable code, such as `block-damaged`.
    package var code: String

    /// One plain sentence without a full stop.
    package var words: String

    package var file: String?

    /// From 0, at most 1000.
    package var blocks: [Int]?

    package init(code: String, words: String, file: String? = nil, blocks: [Int]? = nil) {
      self.code = code
      self.words = words
      self.file = file
      self.blocks = blocks
    }
  }

  var format = "lazaret-backup-proof"

  var version = 1

  package var id: BackupIdentifier

  package var date: String

  package var result: Result

  package var depth: Depth

  package var problems: [Problem]

  /// The problems of files not needed for restoring.
  package var warnings: [Problem]?

  /// The digest of the manifest, or of its text if it has none; nil in earlier proofs and for an original.
  var manifest: String?

  /// The SHA-256 of the text without this key; nil in earlier proofs.
  var digest: String?

  /// The last successful restore, in RFC 3339; shallower provings keep it.
  package var lastRestored: String?

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

  /// The warning's code for a backup of an unsound store.
  static let evidenceCode = "evidence"

  /// Whether the files are intact, but their store is damaged.
  package var isOfEvidence: Bool { warnings?.contains { $0.code == Self.evidenceCode } == true }

  static let suffix = ".proof.json"

  /// Fails for an invalid proof, which is ignored.
  package init?(json bytes: [UInt8], of id: BackupIdentifier) {
    guard let proof = try? JSONDecoder().decode(BackupProof.self, from: Data(bytes)),
      proof.format == "lazaret-backup-proof", proof.version == 1, proof.id == id
    else { return nil }
    switch DigestedText.verdict(bytes) {
    case .right: break
    case .changed: return nil
    case .none:
      // Earlier proofs have no digest, so every byte must match.
      guard proof.digest == nil, (try? proof.text()) == bytes else { return nil }
    }
    self = proof
    digest = nil
  }

  package func json() throws -> [UInt8] {
    var proof = self
    proof.digest = nil
    return DigestedText.adding(to: try proof.text())
  }

  private func text() throws -> [UInt8] { try JSON.bytes(of: self, to: "write the proof of backup \(id)") }
}
