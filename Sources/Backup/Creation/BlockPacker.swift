import Platform

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
  func pack(_ source: any ByteSource, as role: BackupManifest.File.Role, hashes: HashedPages?) throws -> Packed {
    let compression = job.request.compression
    let name = "\(job.id)\(role.suffix(packedBy: compression))"
    let upload = try job.place.begin(name)
    let length = BackupManifest.blockLength
    let total = source.count
    // Empty content gets a member too, for other programs.
    let count = max(1, BackupManifest.blockCount(of: total))
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
          content: bytes, digest: FileDigest(of: bytes).hexadecimal, member: try pack(bytes, index),
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
  func block(_ index: Int, of source: any ByteSource, in buffers: BlockBuffers? = nil) throws -> [UInt8] {
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

/// Reusable memory of blocks.
///
/// Page faults of a fresh mebibyte take a fifth of a block's reading time.
final class BlockBuffers: Sendable {
  private let state = Mutex((free: [[UInt8]](), last: [UInt8]()))

  private static let most = 3

  /// Returns memory for a block, with undefined content.
  func take(count: Int) -> [UInt8] {
    if var bytes = state.withLock({ $0.free.popLast() }), bytes.count >= count {
      bytes.removeLast(bytes.count - count)
      return bytes
    }
    return [UInt8](repeating: 0, count: count)
  }

  /// Frees the block delivered before this one.
  func reuse(after block: [UInt8]) {
    state.withLock { state in
      if !state.last.isEmpty, state.free.count < Self.most { state.free.append(state.last) }
      state.last = block
    }
  }
}
