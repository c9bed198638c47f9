import Backup
import Examination
import ManagedObjectModel
import PersistentStore
import StoreFiles
import SystemPackage

extension BackupProver {
  /// Writes a manifest anew that was lost or changed, where the copy in the backup's file is whole; what is to be said of it.
  func mendedManifest(
    of backup: StoredBackup, in place: any BackupPlace, _ found: BackupFileCheck.Found
  ) throws(BackupError) -> [BackupProof.Problem] {
    guard try !place.isSealed(backup.id, in: .kept), backup.manifestSource == .copy,
      let carrier = backup.manifest?.carrier,
      let object = backup.objects.first(where: { $0.name == carrier.name })
    else { return [] }
    let name = "\(backup.id)\(BackupManifest.suffix)"
    guard
      let copy = try ManifestCopy.read(carrier.name, packedBy: carrier.packing, size: object.bytes, in: place, .kept),
      DigestedText.digest(of: copy) == backup.manifestDigest, try write(copy, as: name, of: backup, in: place)
    else { return backup.warnings.filter { $0.file == name }.map { .init($0) } }
    let isThere = backup.objects.contains { $0.name == name }
    return [
      .init(
        code: "manifest-made-anew",
        words: "\(name) was \(isThere ? "not what was written" : "missing"), and was made anew of its copy", file: name)
    ]
  }

  /// Writes a manifest anew of a backup that has lost both, and that was restored and checked.
  ///
  /// - Returns: its digest; nil where there was none to write.
  func writeAnew(
    _ backup: StoredBackup, in place: any BackupPlace, from store: ReadableFile
  ) throws(BackupError) -> String? {
    guard try !place.isSealed(backup.id, in: .kept), backup.manifestSource == .rebuilt, let known = backup.manifest,
      var manifest = try RebuiltManifest(place: place, section: .kept).withDigests(known)
    else { return nil }
    if let owner = place.owner {
      manifest.store.relativePath = owner.path
      manifest.store.path = owner.present.map { PathText($0) } ?? manifest.store.path
    }
    // The store was examined a moment ago; what cannot be told of it now is left out.
    let examination = try? Examiner(fileSystem: surroundings.fileSystem).examine(
      main: store, log: nil, journal: nil, of: StoreFileSet(main: store.path), members: [],
      options: .init(countsRecords: true))
    if let examination { manifest.note(examination) }
    let name = "\(backup.id)\(BackupManifest.suffix)"
    let json = try manifest.json()
    let written = try BackupManifest(json: json, of: backup.id)
    return try write(json, as: name, of: backup, in: place) ? written.digest : nil
  }

  /// Writes a manifest in the place of what the catalogue has found there; false where that is not there any more.
  private func write(
    _ bytes: [UInt8], as name: String, of backup: StoredBackup, in place: any BackupPlace
  ) throws(BackupError) -> Bool {
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    let now = try place.list(.kept)
    let objects = backup.objects.filter { !$0.name.hasSuffix(BackupProof.suffix) }
    // A pruning may have taken it away meanwhile, and another process may have made the manifest anew.
    let names = Set(now.map(\.name))
    guard objects.allSatisfy({ names.contains($0.name) }), try !place.unfinished().contains(name) else { return false }
    guard names.contains(name) == objects.contains(where: { $0.name == name }) else { return false }
    try place.replace(name, with: bytes, in: .kept)
    return true
  }
}

extension BackupManifest {
  /// Takes down what a look at the restored store tells, where both manifests were lost.
  fileprivate mutating func note(_ examination: Examination) {
    store.kind = examination.kind.rawValue
    store.uuid = examination.metadata?.uuid
    if let metadata = examination.metadata {
      model = .init(
        identifiers: metadata.versionIdentifiers, checksum: metadata.versionChecksum,
        entityHashes: metadata.versionHashes.mapValues(\.description))
    }
    entities = examination.entities.isEmpty ? nil : examination.entities
    versions.library = LibraryVersion.current
    versions.operatingSystem = LibraryVersion.operatingSystem
    versions.storeWrittenBySQLite = examination.health.writtenBySQLite
  }
}
