package import StoreFiles

/// A backup in the trash.
package struct TrashedBackup: Sendable, Hashable {
  /// What it is called.
  package var id: BackupIdentifier

  /// When and why it was dropped; nil where its record is missing or cannot be read, when it stays until a person looks.
  package var record: TrashRecord?

  /// What its manifest says; nil where there is none, or none that can be read.
  package var manifest: BackupManifest?

  /// What of it is in the trash, its record left out.
  package var objects: [BackupObject]

  /// Whether all of it is there, so that it can be brought back.
  package var isWhole: Bool {
    guard let record else { return manifest != nil }
    let names = Set(objects.map(\.name))
    return record.objects.allSatisfy { names.contains($0.name) }
  }

  /// When it was dropped; nil where that is not known.
  package var dropped: Timestamp? { record.flatMap { Timestamp($0.date) } }

  /// The size of what is there, in bytes.
  package var bytes: Int64 { objects.reduce(0) { $0 + $1.bytes } }

  /// The backups that it cannot be restored without.
  var needs: [BackupIdentifier] {
    StoredBackup(id: id, manifest: manifest, proof: nil, objects: [], problems: []).needs
  }

  /// Whether the note of the records that are only in it lies with it.
  var hasNote: Bool {
    objects.contains { BackupCatalog.originalRole(of: $0.name, id) == .originalOnlyHere }
  }

  /// The manifest, where it is in the trash.
  var manifestObject: BackupObject? { objects.first { $0.name == "\(id)\(BackupManifest.suffix)" } }
}
