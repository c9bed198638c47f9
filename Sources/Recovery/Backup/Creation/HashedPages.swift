import SQLiteFormat
import StoreFiles

/// The file with a hash of each page that is being written beside a backup.
final class HashedPages {
  let pageSize: Int
  let upload: any BackupUpload
  private let name: String
  private var digest = RunningDigest()
  private var bytes: Int64 = 0

  init(_ id: BackupIdentifier, _ content: DatabaseContent, in place: any BackupPlace) throws(BackupError) {
    pageSize = content.pageSize
    name = "\(id)\(BackupManifest.File.Role.pageHashes.suffix)"
    upload = try place.begin(name)
    try append(PageHash.header(pageSize: pageSize))
  }

  func append(_ hashes: [UInt8]) throws(BackupError) {
    try upload.append(hashes[...])
    digest.add(hashes)
    bytes += Int64(hashes.count)
  }

  /// The file as the manifest names it.
  func finish() throws(BackupError) -> BackupManifest.File {
    BackupManifest.File(role: .pageHashes, name: name, bytes: bytes, sha256: digest.hexadecimal)
  }
}
