import Backup
import RecoveryKit
import SQLiteFormat
import StoreFiles
import SystemPackage

extension BackupProver {
  /// Makes the helpers anew that are not what was written, of what the backup restores to.
  ///
  /// - Returns: the warnings, with what was done about each.
  func mended(
    _ warnings: [BackupProof.Problem], of manifest: BackupManifest, in place: any BackupPlace,
    from store: ReadableFile
  ) throws(BackupError) -> [BackupProof.Problem] {
    var told: [BackupProof.Problem] = []
    for var warning in warnings {
      defer { told.append(warning) }
      guard let file = manifest.files.first(where: { $0.name == warning.file }), file.role.isHelper else { continue }
      if try write(file, of: manifest, in: place, from: store) {
        warning.code = "helper-made-anew"
        warning.words = "\(file.name) was not what was written, and was made anew"
      } else {
        warning.code = "helper-damaged"
        warning.words = "\(file.name) is not what was written; the backup restores without it"
      }
    }
    return told
  }

  /// Writes a helper as it was; false where it cannot be made as it was.
  private func write(
    _ file: BackupManifest.File, of manifest: BackupManifest, in place: any BackupPlace, from content: ReadableFile
  ) throws(BackupError) -> Bool {
    // What is encrypted is never written anew: nothing says to whom.
    if try place.isSealed(manifest.id, in: .kept) { return false }
    let bytes: [UInt8]
    do throws(FileError) {
      switch file.role {
      case .pageHashes:
        guard let pageSize = manifest.database?.pageSize else { return false }
        bytes = try Self.hashes(of: content, pageSize: pageSize)
      case .recoveryKit:
        guard let made = Self.kit(of: content, manifest, file) else { return false }
        bytes = made
      case .database, .delta, .manifest, .externalData, .evidenceMain, .evidenceLog, .evidenceSharedMemory,
        .evidenceJournal, .originalMain, .originalLog, .originalSharedMemory, .originalJournal, .originalSupport,
        .originalOnlyHere, .originalSetAside:
        return false
      }
    } catch {
      throw BackupError(error)
    }
    guard Int64(bytes.count) == file.bytes, FileDigest(of: bytes).hexadecimal == file.sha256 else { return false }
    let lock = try place.lock()
    defer { withExtendedLifetime(lock) {} }
    // A pruning may have taken the backup away meanwhile.
    let manifestName = "\(manifest.id)\(BackupManifest.suffix)"
    guard try place.list(.kept).contains(where: { $0.name == manifestName }) else { return false }
    try place.replace(file.name, with: bytes, in: .kept)
    return true
  }

  private static func hashes(of content: any ByteSource, pageSize: Int) throws(FileError) -> [UInt8] {
    var bytes = PageHash.header(pageSize: pageSize)
    var offset: Int64 = 0
    while offset < content.count {
      let block = try content.bytes(at: offset, length: BackupManifest.blockLength)
      if block.isEmpty { break }
      bytes += PageHash.hashes(of: block, pageSize: pageSize)
      offset += Int64(block.count)
    }
    return bytes
  }

  /// The kit as it was made; nil where none can be, such as by another version of this software.
  private static func kit(
    of content: any ByteSource, _ manifest: BackupManifest, _ file: BackupManifest.File
  ) -> [UInt8]? {
    do throws(RecoveryKitError) {
      var kit = try RecoveryKit(reading: content, at: manifest.id.date)
      kit.generation = manifest.lineage?.generation
      for level in RecoveryKit.levels {
        let bytes = try kit.bytes(level: level)
        if FileDigest(of: bytes).hexadecimal == file.sha256 { return bytes }
      }
      return nil
    } catch {
      // The backup restores without a kit.
      return nil
    }
  }
}
