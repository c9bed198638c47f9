import SQLiteFormat
import StoreFiles

extension BackupJob {
  /// The most that a kit may take of what it is of: a thirty-second part, or 64 KiB.
  static func kitLimit(_ content: DatabaseContent) -> Int64 { max(64 << 10, content.count / 32) }

  /// Writes the recovery kit that the check has made as a file of the backup.
  func write(kit bytes: [UInt8]) throws(BackupError) -> BlockPacker.Packed {
    let name = "\(id)\(BackupManifest.File.Role.recoveryKit.suffix)"
    let upload = try place.begin(name)
    try upload.append(bytes[...])
    let file = BackupManifest.File(
      role: .recoveryKit, name: name, bytes: Int64(bytes.count), sha256: FileDigest(of: bytes).hexadecimal)
    return BlockPacker.Packed(file: file, upload: upload)
  }
}
