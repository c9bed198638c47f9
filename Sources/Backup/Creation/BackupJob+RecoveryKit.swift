import RecoveryKit
import StoreFiles

extension BackupJob {
  /// The most that a kit may take of what it is of: a thirty-second part, or 64 KiB.
  static func kitLimit(_ content: SnapshotContent) -> Int64 { max(64 << 10, content.count / 32) }

  /// Notes a recovery kit of what is backed up, as a file of the backup; nil for a store that none can be made of, or whose
  /// kit would be too large.
  func recoveryKit(
    of content: SnapshotContent, _ snapshot: StoreSnapshot
  ) throws(BackupError) -> BlockPacker.Packed? {
    try wrapping { () throws(FileError) in try snapshot.giveWay() }
    let bytes: [UInt8]
    do throws(RecoveryKitError) {
      var kit = try RecoveryKit(reading: content, at: id.date)
      kit.generation = request.lineage?.generation
      bytes = try kit.bytes()
    } catch {
      if let fileError = error.fileError { throw BackupError(fileError) }
      // The backup is as good without: proving it tells what is wrong with the store, if anything is.
      return nil
    }
    guard Int64(bytes.count) <= Self.kitLimit(content) else { return nil }
    let name = "\(id)\(BackupManifest.File.Role.recoveryKit.suffix)"
    let upload = try place.begin(name)
    try upload.append(bytes[...])
    let file = BackupManifest.File(
      role: .recoveryKit, name: name, bytes: Int64(bytes.count), sha256: FileDigest(of: bytes).hexadecimal)
    return BlockPacker.Packed(file: file, upload: upload)
  }
}
