package import RecoveryKit
import StoreFiles

extension BackupCatalog {
  /// The largest kit that is read, in bytes.
  private static let kitLimit: Int64 = 256 << 20

  /// The recovery kit that lies in a backup; nil where it has none, or one that is not what was written.
  ///
  /// - Throws: what the place says where it cannot be read.
  package func recoveryKit(of backup: StoredBackup) throws(BackupError) -> RecoveryKit? {
    guard let file = backup.manifest?.file(.recoveryKit), file.bytes <= Self.kitLimit,
      backup.objects.contains(where: { $0.name == file.name })
    else { return nil }
    let bytes = try place.read(file.name, in: section, at: 0, length: Int(file.bytes))
    guard FileDigest(of: bytes).hexadecimal == file.sha256 else { return nil }
    // Its digest is right, so that it can only be of a later version, and no use here.
    return try? RecoveryKit(bytes: bytes)
  }
}
