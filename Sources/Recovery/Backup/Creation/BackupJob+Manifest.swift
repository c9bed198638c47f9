import Examination
import ManagedObjectModel
import PersistentStore
import StoreFiles

extension BackupJob {
  /// The manifest as far as it is known before anything is packed.
  func manifest(
    _ kind: BackupManifest.Kind, _ snapshot: StoreSnapshot, _ examination: Examination
  ) -> BackupManifest {
    let isSound = examination.verdict != .damaged && !examination.isEncryptedOrRandom
    var manifest = BackupManifest(
      id: id, kind: kind, reason: request.reason,
      store: .init(
        path: PathText(files.main), kind: examination.kind.rawValue, uuid: examination.metadata?.uuid,
        journalMode: snapshot.manner == .rollback ? "delete" : "wal"),
      files: [],
      check: .init(
        isSound: isSound, code: isSound ? nil : examination.reason.code, words: isSound ? nil : examination.reason.words
      ),
      versions: .init(
        app: request.appVersion, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
        storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem))
    manifest.store.relativePath = place.owner?.path
    manifest.tags = request.tags
    manifest.lineage = request.lineage
    if let metadata = examination.metadata {
      manifest.model = .init(
        version: request.modelVersion, identifiers: metadata.versionIdentifiers, checksum: metadata.versionChecksum,
        entityHashes: metadata.versionHashes.mapValues(\.description))
    }
    if !examination.entities.isEmpty { manifest.entities = examination.entities }
    return manifest
  }
}

extension BackupManifest {
  /// Takes down what the check beside the packing found.
  mutating func note(_ outcome: StoreCheck.Outcome) {
    let counted = outcome.examination.entities
    entities = counted.isEmpty ? nil : counted
    check.schema = outcome.schema
    let unchecked = outcome.examination.unchecked.map(\.words)
    check.notChecked = unchecked.isEmpty ? nil : Array(unchecked.prefix(1000))
    check.uncompared = outcome.uncompared.isEmpty ? nil : Array(outcome.uncompared.sorted().prefix(1000))
  }
}
