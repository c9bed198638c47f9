import Platform
import SQLiteFormat

/// Consecutive pages.
struct PageRun: Sendable, Hashable {
  var first: UInt32
  var count: UInt32
}

/// The pages changed since the parent, and the database's digest.
struct ContentComparison {
  /// Pages that differ or are new.
  var runs: [PageRun]

  /// Its block digests are empty, as the chain's files have their own.
  var content: BackupManifest.Content

  /// Whether less than half of the pages differ, in a limited number of runs.
  var isWorthDelta: Bool {
    let changed = runs.reduce(UInt64(0)) { $0 + UInt64($1.count) }
    return changed * 2 < UInt64(content.pageCount ?? 0) && runs.count <= 50_000
  }
}

extension BlockPacker {
  private struct Compared: Sendable {
    var content: [UInt8]
    var hashes: [UInt8]
    var changed: [PageRun]
  }

  /// Compares a database with the parent's page hashes; returns nil if those are invalid.
  ///
  /// - Parameter hashes: the destination of its own page hashes.
  func compare(
    _ content: DatabaseContent, with parent: StoredBackup, _ hashes: HashedPages
  ) throws -> ContentComparison? {
    guard let known = try KeptPageHashes(parent, in: job.place) else { return nil }
    let (snapshot, pageSize) = (snapshot, content.pageSize)
    let length = BackupManifest.blockLength
    let pagesPerBlock = length / pageSize
    let total = content.count
    let count = Int((total + Int64(length) - 1) / Int64(length))
    var result = ContentComparison(
      runs: [],
      content: .init(bytes: total, sha256: "", blocks: [], pageSize: pageSize, pageCount: content.pageCount))
    var whole = RunningDigest()
    let buffers = BlockBuffers()
    var last = DeliveredBlock(buffers)
    try BlockPipeline.run(count: count, threads: Self.threads(isInUse: snapshot.isInUse)) {
      () throws -> ((Int) throws -> Compared) in
      { (index) throws -> Compared in
        let bytes = try snapshot.block(index, of: content, in: buffers)
        let own = PageHash.hashes(of: bytes, pageSize: pageSize)
        let theirs = try known.hashes(ofPages: index * pagesPerBlock, count: bytes.count / pageSize)
        return Compared(
          content: bytes, hashes: own,
          changed: own == theirs ? [] : Self.runs(own, theirs, firstPage: UInt32(index * pagesPerBlock + 1)))
      }
    } deliver: { index, block in
      try check?.stopUselessWork()
      whole.add(block.content)
      last.replace(with: block.content)
      try hashes.append(block.hashes)
      for run in block.changed {
        if let last = result.runs.last, last.first + last.count == run.first {
          result.runs[result.runs.count - 1].count += run.count
        } else {
          result.runs.append(run)
        }
      }
      try job.advance(.comparing, min(total, Int64(index + 1) * Int64(length)), total)
    }
    result.content.sha256 = whole.hexadecimal
    return result
  }

  private static func runs(_ own: [UInt8], _ theirs: [UInt8], firstPage: UInt32) -> [PageRun] {
    var runs: [PageRun] = []
    let size = PageHash.length
    for index in 0..<(own.count / size) {
      let range = (index * size)..<((index + 1) * size)
      if range.upperBound <= theirs.count, own[range] == theirs[range] { continue }
      let page = firstPage + UInt32(index)
      if let last = runs.last, last.first + last.count == page {
        runs[runs.count - 1].count += 1
      } else {
        runs.append(PageRun(first: page, count: 1))
      }
    }
    return runs
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

/// The page hashes that find changed pages and verify chains: the first 16 bytes of each page's SHA-256.
///
/// The file begins with 16 bytes: `LAZPAGES`, the version (2) and the page size, both little-endian 32-bit numbers;
/// then follow the hashes, from page 1.
package enum PageHash {
  static let headerLength = 16

  static let length = 16

  package static func header(pageSize: Int) -> [UInt8] {
    var bytes = Array("LAZPAGES".utf8) + [UInt8](repeating: 0, count: 8)
    GzipMember.put(2, at: 8, in: &bytes)
    GzipMember.put(UInt32(truncatingIfNeeded: pageSize), at: 12, in: &bytes)
    return bytes
  }

  /// Returns the hashes of a block's pages.
  package static func hashes(of block: [UInt8], pageSize: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(block.count / pageSize * length)
    for start in stride(from: 0, to: block.count - pageSize + 1, by: pageSize) {
      result += SHA256.hash(data: block[start..<(start + pageSize)]).prefix(length)
    }
    return result
  }
}

/// Reusable memory of blocks.
///
/// Page faults of a fresh mebibyte take a fifth of a block's reading time.
final class BlockBuffers: Sendable {
  private let free = Mutex<[[UInt8]]>([])

  private static let most = 3

  /// Returns memory for a block, with undefined content.
  func take(count: Int) -> [UInt8] {
    if var bytes = free.withLock({ $0.popLast() }), bytes.count >= count {
      bytes.removeLast(bytes.count - count)
      return bytes
    }
    return [UInt8](repeating: 0, count: count)
  }

  func give(_ bytes: [UInt8]) {
    free.withLock { free in
      if free.count < Self.most { free.append(bytes) }
    }
  }
}

/// The last delivered block, reused after the next delivery.
struct DeliveredBlock {
  let buffers: BlockBuffers
  private var content: [UInt8] = []

  init(_ buffers: BlockBuffers) { self.buffers = buffers }

  mutating func replace(with block: [UInt8]) {
    if !content.isEmpty { buffers.give(content) }
    content = block
  }
}
