package import Platform

/// A backup that lies in a place, as far as its names, sizes and manifest tell; its bytes have not been looked at.
package struct StoredBackup: Sendable, Hashable {
  /// Why a backup is not whole.
  package struct Problem: Sendable, Hashable, Encodable {
    /// What kind of problem it is.
    package enum Code: String, Sendable, Hashable, Encodable {
      /// Its files are there, and no manifest: it was never finished, or the manifest was removed.
      case manifestMissing = "manifest-missing"

      /// The manifest cannot be read.
      case manifestUnreadable = "manifest-unreadable"

      /// The manifest is not what was written.
      case manifestChanged = "manifest-changed"

      /// The copy of the manifest in a file is not what was written.
      case manifestCopyDamaged = "manifest-copy-damaged"

      /// The seek table of a file, which only other programs use, is not what was written.
      case seekTableDamaged = "seek-table-damaged"

      case fileMissing = "file-missing"

      /// A file has another length than the manifest says.
      case fileSizeWrong = "file-size-wrong"

      /// Large values that records refer to are not in it: their files were not there when it was taken.
      case largeValueMissing = "large-value-missing"

      /// The proof cannot be read, or is not what was written: it counts as none.
      case proofUnreadable = "proof-unreadable"

      /// The parent is not there.
      case parentMissing = "parent-missing"

      /// The parent is there and is not whole, or is not what the delta was made for.
      case parentBroken = "parent-broken"
    }

    /// What kind of problem it is.
    package var code: Code

    /// The problem in plain words, one sentence without a full stop.
    package var words: String

    /// The file that it is in, where it is in one.
    package var file: String?

    /// A proof that counts as none.
    static func unreadableProof(_ file: String, _ words: String) -> Problem {
      Problem(code: .proofUnreadable, words: "its proof \(words), and counts as none", file: file)
    }
  }

  /// Where what is known of a backup was read.
  package enum ManifestSource: String, Sendable, Hashable {
    /// In the manifest beside it, whose digest is right; of an original in the original itself.
    case own

    /// In the copy at the end of its file.
    case copy

    /// In a manifest of an earlier version, which has no digest.
    case earlier

    /// In the headers of its blocks: both manifests are lost.
    case rebuilt
  }

  /// What it is called.
  package var id: BackupIdentifier

  /// What its manifest says; nil where there is none, or none that can be read.
  package var manifest: BackupManifest?

  /// The result of the last proving; nil where there was none.
  package var proof: BackupProof?

  /// Where the manifest was read.
  package var manifestSource = ManifestSource.own

  /// The digest of the manifest, by which a proof names it; nil for an original, and for one that has no manifest.
  package var manifestDigest: String?

  /// The bytes of the manifest's text.
  var manifestLength = 0

  /// What a migration has noted of the records that are only in this original, which pruning keeps until it is released;
  /// nil for any other backup.
  ///
  /// A note that cannot be read names no entity, and keeps the original all the same.
  package var onlyHere: OnlyHereNote?

  /// All objects of it that are there, manifest, proof and note included.
  package var objects: [BackupObject]

  /// Why it is not whole; empty for one that is.
  package var problems: [Problem]

  /// What is wrong with files that restoring does not need (the hashes of pages, the recovery kit, the proof), and what it
  /// does not have.
  package var warnings: [Problem] = []

  /// Whether a person has said that no fall of records keeps it any more.
  package var isReleased: Bool { objects.contains { $0.name == "\(id)\(BackupCatalog.releaseSuffix)" } }

  /// Whether nothing is lacking, as far as names, sizes and manifests tell.
  package var isWhole: Bool { problems.isEmpty }

  /// Whether it is kept apart from the good ones: evidence, or of a store that was not sound.
  package var isApart: Bool { manifest.map { $0.kind == .evidence || !$0.check.isSound } ?? true }

  /// Why its store was not sound when it was taken, as what is restored of it is not; nil where that was sound, or nothing
  /// tells.
  package var damage: (code: String, words: String)? {
    guard let check = manifest?.check, !check.isSound else { return nil }
    return (check.code ?? "damaged", check.words ?? "The store is damaged.")
  }

  /// Whether its store was sound when it was taken, and no verification has failed since.
  package var isSound: Bool { manifest?.check.isSound == true && proof?.result != .failed }

  /// Whether nothing speaks for what its manifest says: an earlier version wrote it without a digest, or it was made of
  /// blocks alone, and it has not been restored and checked since.
  package var isUnverified: Bool {
    guard manifestSource == .earlier || manifestSource == .rebuilt || manifest?.rebuilt == true else { return false }
    return manifestDigest == nil || proof?.manifest != manifestDigest || proof?.lastRestored == nil
  }

  /// Whether it is whole, of a sound store, and was proven when last looked at: what retention counts, and never loses the
  /// last of.
  package var isProvenGood: Bool { isWhole && !isApart && proof?.result == .proven && !isUnverified }

  /// Why it says nothing of a store; nil where it counts, as far as generations and dates tell.
  package func exclusion(from scope: EvidenceScope) -> EvidenceScope.Exclusion? {
    scope.exclusion(generation: manifest?.lineage?.generation, date: id.date)
  }

  /// The size of everything of it that is there, in bytes.
  package var bytes: Int64 { objects.reduce(0) { $0 + $1.bytes } }
}

extension StoredBackup {
  /// What can be said of it in one word: `broken`, `apart`, `proven`, `failed`, `inconclusive` or `unproven`.
  package var state: String {
    if !isWhole { return "broken" }
    if proof?.result == .failed { return "failed" }
    if isApart { return "apart" }
    // What a proof of an earlier version says is as good as the manifest that it trusted.
    if isUnverified { return "unproven" }
    return proof?.result.rawValue ?? "unproven"
  }

  /// The size of its files in parts of what it restores to; nil for what restores to nothing.
  package var ratio: Double? {
    guard let manifest, manifest.contentBytes > 0 else { return nil }
    return (Double(manifest.totalBytes) / Double(manifest.contentBytes) * 1000).rounded() / 1000
  }
}

extension StoredBackup: Encodable {
  /// Writes what is known of it, as far as its manifest and its proof can be read.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": id, "state": state, "date": id.date, "bytes": bytes, "problems": problems, "warnings": warnings,
      "released": isReleased ? true : nil, "onlyHere": onlyHere?.account,
    ])
    if let proof {
      let members: JSON.Object = [
        "result": proof.result, "depth": proof.depth, "date": proof.date, "lastRestored": proof.lastRestored,
        "problems": proof.problems, "warnings": proof.warnings,
      ]
      try encoder.encode(["proof": members])
    }
    guard let manifest else { return }
    try encoder.encode([
      // Where what is known of it was read.
      "manifest": manifest.kind == .original ? nil : manifestSource.rawValue,
      // Nothing speaks for what its manifest says until it is verified.
      "unverified": isUnverified ? true : nil, "kind": manifest.kind, "reason": manifest.reason, "tags": manifest.tags,
      "parent": manifest.parent, "depth": manifest.depth, "ratio": ratio,
      "modelVersion": manifest.model?.version ?? manifest.model?.identifiers.first,
      "modelChecksum": manifest.model?.checksum, "entities": manifest.entities, "isSound": isSound,
      "check": manifest.check, "lineage": manifest.lineage,
      // Of an encrypted one only its key tells more.
      "contentBytes": manifest.isLocked ? nil : manifest.contentBytes,
      "falls": manifest.isLocked ? nil : manifest.falls, "locked": manifest.isLocked ? true : nil,
    ])
  }
}

extension OnlyHereNote {
  /// What programs are told of the records that a migration removed.
  package var account: JSON.Object { ["step": step, "entities": entities] }
}
