package import Platform

/// The name of a backup: `b-`, its UTC time, and a number if several share a second.
///
/// `b-2026-11-21-10-11-12`, then `b-2026-11-21-10-11-12-2`. The mark `b-` distinguishes backups from quarantined
/// stores; earlier versions wrote none.
package struct BackupIdentifier: Sendable, Hashable, Comparable, CustomStringConvertible {
  package let date: Timestamp

  /// 1 for the first of its second.
  let number: Int

  /// Whether it has the mark `b-`.
  package let isMarked: Bool

  package init(date: Timestamp, number: Int = 1) { self.init(date: date, number: number, isMarked: true) }

  private init(date: Timestamp, number: Int, isMarked: Bool) {
    self.date = Timestamp(secondsSince1970: date.secondsSince1970)
    self.number = max(1, number)
    self.isMarked = isMarked
  }

  package init?(_ text: String) {
    let isMarked = text.hasPrefix(Timestamp.backupMark)
    let digits = Array(text.utf8.dropFirst(isMarked ? Timestamp.backupMark.utf8.count : 0))
    guard digits.count >= 19, digits.count <= 29, let date = Timestamp(String(decoding: digits[..<19], as: UTF8.self))
    else { return nil }
    var number = 1
    if digits.count > 19 {
      let rest = digits[20...]
      guard digits[19] == UInt8(ascii: "-"), !rest.isEmpty, rest.allSatisfy({ (48...57).contains($0) }),
        let given = Int(String(decoding: rest, as: UTF8.self)), given > 1
      else { return nil }
      number = given
    }
    self.init(date: date, number: number, isMarked: isMarked)
    // Impossible dates, such as 31 April, would be second names.
    guard description == text else { return nil }
  }

  package var description: String {
    let name = isMarked ? date.backupName : date.fileName
    return number == 1 ? name : "\(name)-\(number)"
  }

  /// Within a second, unmarked identifiers come first.
  package static func < (left: BackupIdentifier, right: BackupIdentifier) -> Bool {
    (left.date, left.isMarked ? 1 : 0, left.number) < (right.date, right.isMarked ? 1 : 0, right.number)
  }
}

extension BackupIdentifier: Codable {
  package init(from decoder: any Decoder) throws {
    guard let identifier = BackupIdentifier(try String(from: decoder)) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "not the identifier of a backup"))
    }
    self = identifier
  }

  package func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}

/// A backup in a place, by its names, sizes and manifest; its content is unchecked.
package struct StoredBackup: Sendable, Hashable {
  /// A reason why a backup is not whole, or a warning.
  package struct Problem: Sendable, Hashable, Encodable {
    package enum Code: String, Sendable, Hashable, Encodable {
      /// It was not finished, or its manifest was removed.
      case manifestMissing = "manifest-missing"

      case manifestUnreadable = "manifest-unreadable"

      /// The manifest differs from the written one.
      case manifestChanged = "manifest-changed"

      /// The manifest copy differs from the written one.
      case manifestCopyDamaged = "manifest-copy-damaged"

      /// The seek table, used only by other programs, is damaged.
      case seekTableDamaged = "seek-table-damaged"

      case fileMissing = "file-missing"

      /// A file's length differs from the manifest.
      case fileSizeWrong = "file-size-wrong"

      /// External values were missing at backup time.
      case largeValueMissing = "large-value-missing"

      /// The proof is unreadable or changed.
      case proofUnreadable = "proof-unreadable"

      case parentMissing = "parent-missing"

      /// The parent is not whole, or not the one that the delta was made for.
      case parentBroken = "parent-broken"
    }

    package var code: Code

    package var words: String

    package var file: String?

    static func unreadableProof(_ file: String, _ words: String) -> Problem {
      Problem(code: .proofUnreadable, words: "its proof \(words), and counts as none", file: file)
    }
  }

  /// The origin of the manifest.
  package enum ManifestSource: String, Sendable, Hashable {
    /// Beside the backup, with a correct digest; or an original itself.
    case own

    case copy

    /// Of an earlier version, without a digest.
    case earlier

    /// Rebuilt from the blocks.
    case rebuilt
  }

  package var id: BackupIdentifier

  package var manifest: BackupManifest?

  package var proof: BackupProof?

  package var manifestSource = ManifestSource.own

  /// The digest that a proof refers to; nil for an original.
  var manifestDigest: String?

  var manifestLength = 0

  /// A migration's note of records only in this original.
  ///
  /// It keeps the original until released, even if unreadable.
  package var onlyHere: OnlyHereNote?

  /// Its objects, including manifest, proof and note.
  package var objects: [BackupObject]

  package var problems: [Problem]

  /// Problems of page hashes, recovery kit and proof, and missing values.
  package var warnings: [Problem] = []

  /// Whether only a key shows its state, as its label, or that of one it builds on, is missing or unreadable.
  var isUndecided = false

  /// Whether no label is readable, and no key opens its files, which then have their stored names.
  var isUnlabelled: Bool {
    manifest == nil && objects.contains { $0.name.hasSuffix(BackupManifest.Encryption.fileEnding) }
  }

  /// Whether a user released it from being kept for a drop in records.
  package var isReleased: Bool { objects.contains { $0.name == "\(id)\(BackupCatalog.releaseSuffix)" } }

  /// Whether names, sizes and manifests are complete.
  package var isWhole: Bool { problems.isEmpty }

  /// Whether it is evidence or of an unsound store.
  package var isApart: Bool { manifest.map { $0.kind == .evidence || !$0.check.isSound } ?? true }

  var damage: (code: String, words: String)? {
    guard let check = manifest?.check, !check.isSound else { return nil }
    return (check.code ?? "damaged", check.words ?? "The store is damaged.")
  }

  package var isSound: Bool { manifest?.check.isSound == true && proof?.result != .failed }

  /// Whether its manifest has no digest or was rebuilt, without a successful restore since.
  package var isUnverified: Bool {
    guard manifestSource == .earlier || manifestSource == .rebuilt || manifest?.rebuilt == true else { return false }
    return manifestDigest == nil || proof?.manifest != manifestDigest || proof?.lastRestored == nil
  }

  /// Whether it is whole, of a sound store, and proven; retention counts these, and always keeps one.
  package var isProvenGood: Bool { isWhole && !isApart && proof?.result == .proven && !isUnverified }

  /// Why its generation or date excludes it as evidence.
  package func exclusion(from scope: EvidenceScope) -> EvidenceScope.Exclusion? {
    scope.exclusion(generation: manifest?.lineage?.generation, date: id.date)
  }

  package var bytes: Int64 { objects.reduce(0) { $0 + $1.bytes } }

  /// Its state in one word: `broken`, `apart`, `proven`, `failed`, `inconclusive` or `unproven`.
  package var state: String {
    if !isWhole { return "broken" }
    if proof?.result == .failed { return "failed" }
    if isApart { return "apart" }
    // The proof relied on the unconfirmed manifest.
    if isUnverified { return "unproven" }
    return proof?.result.rawValue ?? "unproven"
  }

  /// The ratio of packed to restored size.
  package var ratio: Double? {
    guard let manifest, manifest.contentBytes > 0 else { return nil }
    return (Double(manifest.totalBytes) / Double(manifest.contentBytes) * 1000).rounded() / 1000
  }
}

extension StoredBackup: Encodable {
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
      "manifest": manifest.kind == .original ? nil : manifestSource.rawValue,
      "unverified": isUnverified ? true : nil, "kind": manifest.kind, "reason": manifest.reason, "tags": manifest.tags,
      "parent": manifest.parent, "depth": manifest.depth, "ratio": ratio,
      "modelVersion": manifest.model?.version ?? manifest.model?.identifiers.first,
      "modelChecksum": manifest.model?.checksum, "entities": manifest.entities, "isSound": isSound,
      "check": manifest.check, "lineage": manifest.lineage,
      // Only key holders see these.
      "contentBytes": manifest.isLocked ? nil : manifest.contentBytes,
      "falls": manifest.isLocked ? nil : manifest.falls, "locked": manifest.isLocked ? true : nil,
    ])
  }
}

extension OnlyHereNote {
  /// The JSON of the note.
  package var account: JSON.Object { ["step": step, "entities": entities] }
}
