import Platform
import SQLiteFormat

/// The page hashes that find changed pages and verify chains: the first 16 bytes of each page's SHA-256.
///
/// The file begins with 16 bytes: `LAZPAGES`, the version (2) and the page size, both little-endian 32-bit numbers;
/// then follow the hashes, from page 1.
enum PageHash {
  static let headerLength = 16

  static let length = 16

  static func header(pageSize: Int) -> [UInt8] {
    var bytes = Array("LAZPAGES".utf8) + [UInt8](repeating: 0, count: 8)
    GzipMember.put(2, at: 8, in: &bytes)
    GzipMember.put(UInt32(truncatingIfNeeded: pageSize), at: 12, in: &bytes)
    return bytes
  }

  /// Returns the hashes of a block's pages.
  static func hashes(of block: [UInt8], pageSize: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(block.count / pageSize * length)
    for start in stride(from: 0, to: block.count - pageSize + 1, by: pageSize) {
      result += SHA256.hash(data: block[start..<(start + pageSize)]).prefix(length)
    }
    return result
  }
}

/// The page hash file being written.
final class HashedPages {
  let pageSize: Int
  private let upload: any BackupUpload
  private let name: String
  private var digest = RunningDigest()
  private var bytes: Int64 = 0

  init(_ id: BackupIdentifier, _ content: DatabaseContent, in place: any BackupPlace) throws {
    pageSize = content.pageSize
    name = "\(id)\(BackupManifest.File.Role.pageHashes.suffix)"
    upload = try place.begin(name)
    try append(PageHash.header(pageSize: pageSize))
  }

  func append(_ hashes: [UInt8]) throws {
    try upload.append(hashes[...])
    digest.add(hashes)
    bytes += Int64(hashes.count)
  }

  var packed: BlockPacker.Packed {
    .init(file: .init(role: .pageHashes, name: name, bytes: bytes, sha256: digest.hexadecimal), upload: upload)
  }
}

/// The page hashes in a backup.
struct KeptPageHashes: Sendable {
  let place: any BackupPlace
  let name: String
  let pageCount: Int

  /// Fails if they differ from the manifest.
  init?(_ backup: StoredBackup, in place: any BackupPlace) throws {
    guard !backup.warnings.contains(where: { $0.code != .largeValueMissing }),
      let manifest = backup.manifest, let file = manifest.file(.pageHashes), let database = manifest.database,
      let pageSize = database.pageSize, let pageCount = database.pageCount,
      file.bytes == Int64(PageHash.headerLength) + Int64(PageHash.length) * Int64(pageCount)
    else { return nil }
    self.place = place
    name = file.name
    self.pageCount = Int(pageCount)
    var digest = RunningDigest()
    var offset: Int64 = 0
    while offset < file.bytes {
      let bytes = try place.read(file.name, in: .kept, at: offset, length: 1 << 20)
      if offset == 0, Array(bytes.prefix(PageHash.headerLength)) != PageHash.header(pageSize: pageSize) { return nil }
      guard !bytes.isEmpty else { return nil }
      digest.add(bytes)
      offset += Int64(bytes.count)
    }
    guard digest.hexadecimal == file.sha256 else { return nil }
  }

  /// Returns the hashes of pages counted from 0.
  func hashes(ofPages first: Int, count: Int) throws -> [UInt8] {
    let there = max(0, min(count, pageCount - first))
    guard there > 0 else { return [] }
    return try place.read(
      name, in: .kept, at: Int64(PageHash.headerLength + first * PageHash.length), length: there * PageHash.length)
  }
}
