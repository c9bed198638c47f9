import Platform
import SQLiteFormat

/// Pages that follow each other.
struct PageRun: Sendable, Hashable {
  var first: UInt32
  var count: UInt32
}

/// What a database has that its backup's parent has not, and its digest.
struct ContentComparison {
  /// The pages that differ, or that the parent lacks.
  var runs: [PageRun]

  /// The database's digest, without those of its blocks: the blocks of the chain's files have their own.
  var content: BackupManifest.Content

  /// Whether less than half of the pages differ, in runs that a manifest can name.
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

  /// Compares a database with the hashes of a backup's pages; nil where those cannot be trusted.
  ///
  /// - Parameter hashes: where the hashes of the database's own pages go.
  func compare(
    _ content: DatabaseContent, with parent: StoredBackup, _ hashes: HashedPages
  ) throws(BackupError) -> ContentComparison? {
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
      () throws(BackupError) -> ((Int) throws(BackupError) -> Compared) in
      { (index) throws(BackupError) -> Compared in
        let bytes = try snapshot.block(index, of: content, in: buffers)
        let own = PageHash.hashes(of: bytes, pageSize: pageSize)
        let theirs = try known.hashes(ofPages: index * pagesPerBlock, count: bytes.count / pageSize)
        return Compared(
          content: bytes, hashes: own,
          changed: own == theirs ? [] : Self.runs(own, theirs, firstPage: UInt32(index * pagesPerBlock + 1)))
      }
    } deliver: { (index, block) throws(BackupError) in
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

/// The hashes of a backup's pages, as they were written.
struct KeptPageHashes: Sendable {
  let place: any BackupPlace
  let name: String
  let pageCount: Int

  /// Opens them; nil where they are not what the backup's manifest says.
  init?(_ backup: StoredBackup, in place: any BackupPlace) throws(BackupError) {
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

  /// The hashes of pages, counted from 0; fewer where the backup has fewer.
  func hashes(ofPages first: Int, count: Int) throws(BackupError) -> [UInt8] {
    let there = max(0, min(count, pageCount - first))
    guard there > 0 else { return [] }
    return try place.read(
      name, in: .kept, at: Int64(PageHash.headerLength + first * PageHash.length), length: there * PageHash.length)
  }
}

/// The hashes by which changed pages are found, and by which the pages of a chain are checked: the first 16 bytes of the
/// SHA-256 of each page.
///
/// The file begins with 16 bytes: `LAZPAGES`, the version (2) and the page size, little-endian, of 32 bits; then comes the hash
/// of each page, beginning with page 1.
package enum PageHash {
  /// The bytes of the file's header.
  static let headerLength = 16

  /// The bytes of one page's hash.
  static let length = 16

  /// The file's header.
  package static func header(pageSize: Int) -> [UInt8] {
    var bytes = Array("LAZPAGES".utf8) + [UInt8](repeating: 0, count: 8)
    GzipMember.put(2, at: 8, in: &bytes)
    GzipMember.put(UInt32(truncatingIfNeeded: pageSize), at: 12, in: &bytes)
    return bytes
  }

  /// The hashes of all pages of a block, one behind the other.
  package static func hashes(of block: [UInt8], pageSize: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(block.count / pageSize * length)
    for start in stride(from: 0, to: block.count - pageSize + 1, by: pageSize) {
      result += SHA256.hash(data: block[start..<(start + pageSize)]).prefix(length)
    }
    return result
  }
}

/// The memory of blocks that were delivered, used again for the next ones.
///
/// Fresh memory of a mebibyte costs the system a fault for each of its pages, a fifth of the time of reading a block.
final class BlockBuffers: Sendable {
  private let free = Mutex<[[UInt8]]>([])

  private static let most = 3

  /// A block's memory; what it holds is of an earlier block.
  func take(count: Int) -> [UInt8] {
    if var bytes = free.withLock({ $0.popLast() }), bytes.count >= count {
      bytes.removeLast(bytes.count - count)
      return bytes
    }
    return [UInt8](repeating: 0, count: count)
  }

  /// Takes the memory of a block back that nothing reads any more.
  func give(_ bytes: [UInt8]) {
    free.withLock { free in
      if free.count < Self.most { free.append(bytes) }
    }
  }
}

/// The block that was delivered last, whose memory is used again once the next one is delivered.
struct DeliveredBlock {
  let buffers: BlockBuffers
  private var content: [UInt8] = []

  init(_ buffers: BlockBuffers) { self.buffers = buffers }

  /// Keeps a block in the place of the one before.
  mutating func replace(with block: [UInt8]) {
    if !content.isEmpty { buffers.give(content) }
    content = block
  }
}
