import Platform
import SQLiteFormat

/// Consecutive pages.
struct PageRun: Sendable, Hashable {
  var first: UInt32
  var count: UInt32
}

extension [PageRun] {
  /// Adds a run behind the others.
  fileprivate mutating func add(_ run: PageRun) {
    if let last, last.first + last.count == run.first { self[count - 1].count += run.count } else { append(run) }
  }
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
    let count = BackupManifest.blockCount(of: total)
    var result = ContentComparison(
      runs: [], content: .init(bytes: total, sha256: "", blocks: [], pageSize: pageSize, pageCount: content.pageCount))
    var whole = RunningDigest()
    let buffers = BlockBuffers()
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
      buffers.reuse(after: block.content)
      try hashes.append(block.hashes)
      for run in block.changed { result.runs.add(run) }
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
      runs.add(PageRun(first: firstPage + UInt32(index), count: 1))
    }
    return runs
  }
}

/// The pages of a delta, concatenated.
struct ChangedPages: ByteSource {
  private let content: DatabaseContent
  private let runs: [PageRun]
  /// The position of each run in the delta, in pages.
  private var starts: [Int64] = []
  let count: Int64

  init(content: DatabaseContent, runs: [PageRun]) {
    self.content = content
    self.runs = runs
    var pages: Int64 = 0
    for run in runs {
      starts.append(pages)
      pages += Int64(run.count)
    }
    count = pages * Int64(content.pageSize)
  }

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let wanted = Int(min(Int64(min(length, buffer.count)), count - offset))
    let size = Int64(content.pageSize)
    var index = place(of: offset / size)
    var done = 0
    while done < wanted, index < runs.count {
      let position = offset + Int64(done) - starts[index] * size
      let length = min(Int64(runs[index].count) * size - position, Int64(wanted - done))
      let bytes = try content.bytes(at: Int64(runs[index].first - 1) * size + position, length: Int(length))
      guard bytes.count == Int(length) else { return done }
      buffer.replaceSubrange(done..<(done + bytes.count), with: bytes)
      done += bytes.count
      index += 1
    }
    return done
  }

  private func place(of page: Int64) -> Int { max(0, starts.partitioningIndex { $0 > page } - 1) }
}

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
