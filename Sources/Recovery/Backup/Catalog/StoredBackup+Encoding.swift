package import StoreFiles

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
