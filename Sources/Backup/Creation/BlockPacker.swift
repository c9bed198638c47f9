import Platform
import SQLiteFormat

/// Packs the sources of a job block by block on several threads.
struct BlockPacker {
  let job: BackupJob
  let snapshot: StoreSnapshot

  /// The parallel check, which stops the packing of a damaged store; nil for evidence.
  let check: StoreCheck?

  /// Returns the number of threads: two to limit memory, one to leave a processor to the app.
  static func threads(isInUse: Bool) -> Int { isInUse ? 1 : 2 }

  struct Packed {
    var file: BackupManifest.File
    var upload: any BackupUpload
  }

  private struct Block: Sendable {
    var content: [UInt8]
    var digest: String
    var member: [UInt8]
    var hashes: [UInt8]
  }

  /// Packs a source into a file of the backup.
  ///
  /// - Parameter hashes: the destination of page hashes; nil if known or not needed.
  func pack(
    _ source: any ByteSource, as role: BackupManifest.File.Role, hashes: HashedPages?
  ) throws -> Packed {
    let compression = job.request.compression
    let name = "\(job.id)\(role.suffix(packedBy: compression))"
    let upload = try job.place.begin(name)
    let length = BackupManifest.blockLength
    let total = source.count
    // Empty content gets a member too, for other programs.
    let count = max(1, Int((total + Int64(length) - 1) / Int64(length)))
    let phase: BackupPhase = role == .externalData ? .externalData : .packing
    let (level, snapshot, pageSize) = (job.request.chosenLevel, snapshot, hashes?.pageSize)
    var file = BackupManifest.File(role: role, name: name, bytes: 0, sha256: "", members: [])
    file.packing = compression
    var (whole, content) = (RunningDigest(), RunningDigest())
    var blocks: [String] = []
    try BlockPipeline.run(count: count, threads: Self.threads(isInUse: snapshot.isInUse)) {
      () throws -> ((Int) throws -> Block) in
      let pack = try compression.packer(level: level)
      return { (index) throws -> Block in
        let bytes = try snapshot.block(index, of: source)
        return Block(
          content: bytes, digest: FileDigest(of: bytes).hexadecimal,
          member: try pack(bytes, index),
          hashes: pageSize.map { PageHash.hashes(of: bytes, pageSize: $0) } ?? [])
      }
    } deliver: { index, block in
      try check?.stopUselessWork()
      content.add(block.content)
      if !block.content.isEmpty { blocks.append(block.digest) }
      whole.add(block.member)
      try upload.append(block.member[...])
      try hashes?.append(block.hashes)
      file.members?.append(block.member.count)
      file.bytes += Int64(block.member.count)
      try job.advance(phase, min(total, Int64(index + 1) * Int64(length)), total)
    }
    file.sha256 = whole.hexadecimal
    file.content = BackupManifest.Content(bytes: total, sha256: content.hexadecimal, blocks: blocks)
    return Packed(file: file, upload: upload)
  }
}

extension StoreSnapshot {
  /// Reads a block while the store is held still.
  ///
  /// - Parameter buffers: reusable memory.
  func block(
    _ index: Int, of source: any ByteSource, in buffers: BlockBuffers? = nil
  ) throws -> [UInt8] {
    try giveWay()
    let start = Int64(index) * Int64(BackupManifest.blockLength)
    let wanted = max(0, min(Int64(BackupManifest.blockLength), source.count - start))
    var bytes = buffers?.take(count: Int(wanted)) ?? [UInt8](repeating: 0, count: Int(wanted))
    guard try source.read(at: start, length: Int(wanted), into: &bytes) == Int(wanted) else {
      throw FileError(.changed, operation: "read the store", path: files.main)
    }
    return bytes
  }
}

extension BackupError {
  static func memory() -> BackupError {
    BackupError(
      .packing, operation: "pack the backup", detail: "there is not enough memory",
      hint: "Free some memory and run the same command again; nothing was lost.")
  }
}

/// The page hash file being written.
final class HashedPages {
  let pageSize: Int
  let upload: any BackupUpload
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

  func finish() throws -> BackupManifest.File {
    BackupManifest.File(role: .pageHashes, name: name, bytes: bytes, sha256: digest.hexadecimal)
  }
}
