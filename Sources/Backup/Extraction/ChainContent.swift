internal import Platform
internal import SystemPackage

/// The database of a backup chain, read by blocks on demand.
///
/// Each block's digest is verified; the last backup's page hashes prove that pages of several backups belong together.
/// Blocks are cached in an unnamed file, backup after backup.
final class ChainContent: ByteSource {
  let count: Int64

  private let links: [Link]
  private let kept: Mutex<Kept>

  /// The page hashes; nil for a full backup, which has block digests.
  private let hashes: (bytes: [UInt8], pageSize: Int)?
  private let total: Int64
  private let progress: BackupProgress

  private static let operation = "read the backup"

  private struct Link {
    let reader: MemberReader

    /// The database size in this backup.
    let bytes: Int64

    let pages: DeltaPages?

    /// The offset of its blocks in the cache.
    let offset: Int64
  }

  private struct Kept {
    let target: ExtractedFile
    let source: any ByteSource
    var blocks: [Set<Int>]
    var bytes: Int64 = 0
    var waited = Duration.zero
  }

  /// Opens a chain.
  ///
  /// - Parameter path: the name that the cache has for a moment.
  /// - Returns: nil if only the whole is verifiable: for originals, evidence, unsound stores, rebuilt manifests, and
  ///   deltas without page hashes.
  /// - Throws: `backup-chain-broken`, `compression-unavailable`, or file errors.
  init?(_ extraction: BackupExtraction, keepingIn path: FilePath) throws {
    let own = try extraction.manifest
    guard let database = own.database, own.check.isSound, extraction.section == .kept else { return nil }
    for backup in extraction.chain {
      guard let manifest = backup.manifest, manifest.rebuilt != true, [.full, .delta].contains(manifest.kind) else {
        return nil
      }
    }
    var (links, offset): ([Link], Int64) = ([], 0)
    for backup in extraction.chain {
      guard let manifest = backup.manifest, let bytes = manifest.database?.bytes else { return nil }
      var pages: DeltaPages?
      if manifest.file(.database) == nil {
        guard let runs = manifest.pages, let size = manifest.database?.pageSize,
          let delta = DeltaPages(runs, pageSize: size)
        else { throw Self.broken(manifest) }
        pages = delta
      }
      guard let file = manifest.file(.database) ?? manifest.file(.delta),
        let reader = try MemberReader(file, of: manifest, in: extraction.place, extraction.section)
      else { throw Self.broken(manifest) }
      links.append(Link(reader: reader, bytes: bytes, pages: pages, offset: offset))
      offset += Int64(reader.blockCount) * Int64(BackupManifest.blockLength)
    }
    // Validates the size in the untrusted manifest.
    guard links.first.map({ $0.pages == nil }) == true, (0...offset).contains(database.bytes) else {
      throw Self.broken(own)
    }
    if links.count > 1, let last = extraction.chain.last {
      guard let size = database.pageSize, let count = database.pageCount, size > 0,
        database.bytes == Int64(size) * Int64(count), links.allSatisfy({ $0.pages.map { $0.size == size } ?? true }),
        let known = try KeptPageHashes(last, in: extraction.place)
      else { return nil }
      hashes = (try known.hashes(ofPages: 0, count: Int(count)), size)
    } else {
      hashes = nil
    }
    let target = try ExtractedFile(path, isUnnamed: true, in: extraction.fileSystem)
    try target.truncate(to: offset)
    let source = try target.reading()
    kept = Mutex(Kept(target: target, source: source, blocks: [Set<Int>](repeating: [], count: links.count)))
    self.links = links
    count = database.bytes
    total = offset
    progress = extraction.progress
  }

  private static func broken(_ manifest: BackupManifest) -> BackupError {
    BackupError(
      .chainBroken, operation: operation, detail: "the manifest of backup \(manifest.id) does not say what it holds")
  }

  var waited: Duration { kept.withLock { $0.waited } }

  /// Completes the progress without the remaining blocks.
  func reportDone() throws {
    guard progress(.unpacking, total, total) else { throw BackupError.cancelled(Self.operation) }
  }

  // MARK: Reading

  /// Reads; the result is shorter only at the end.
  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let wanted = Int(min(Int64(min(length, buffer.count)), count - offset))
    guard let hashes else {
      buffer.replaceSubrange(0..<wanted, with: try content(at: offset, count: wanted))
      return wanted
    }
    var done = 0
    while done < wanted {
      let position = offset + Int64(done)
      let page = Int(position / Int64(hashes.pageSize))
      let bytes = try content(at: Int64(page) * Int64(hashes.pageSize), count: hashes.pageSize)
      let own = (page * PageHash.length)..<((page + 1) * PageHash.length)
      guard own.upperBound <= hashes.bytes.count,
        hashes.bytes[own].elementsEqual(PageHash.hashes(of: bytes, pageSize: hashes.pageSize))
      else { throw Self.told(Self.damaged("page \(page + 1) is not the one that was backed up")) }
      let start = Int(position % Int64(hashes.pageSize))
      let part = min(wanted - done, bytes.count - start)
      buffer.replaceSubrange(done..<(done + part), with: bytes[start..<(start + part)])
      done += part
    }
    return wanted
  }

  private func content(at offset: Int64, count wanted: Int) throws(FileError) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(wanted)
    while result.count < wanted {
      let (block, together) = place(of: offset + Int64(result.count))
      guard let block else { throw Self.told(Self.damaged("the chain has not all of its pages")) }
      let part = min(wanted - result.count, together)
      let bytes = try bytes(of: block.number, link: block.link, from: block.start, count: part)
      guard bytes.count == part else {
        throw FileError(.changed, operation: Self.operation, detail: "less of a block was kept than was read")
      }
      result += bytes
    }
    return result
  }

  /// Locates a byte in a block, if present, and counts the contiguous bytes.
  private func place(of position: Int64) -> (block: (link: Int, number: Int, start: Int)?, bytes: Int) {
    let blockLength = Int64(BackupManifest.blockLength)
    var together = blockLength
    for (index, link) in links.enumerated().reversed() {
      if let pages = link.pages {
        let inPage = Int(position % Int64(pages.size))
        // The next page may be in another backup.
        together = min(together, Int64(pages.size - inPage))
        if let place = pages.place(of: position / Int64(pages.size)) {
          let start = Int(place % Int64(pages.perBlock)) * pages.size + inPage
          return ((index, Int(place / Int64(pages.perBlock)), start), Int(together))
        }
        // Earlier pages past this size were truncated.
        guard position < link.bytes else { return (nil, Int(together)) }
      } else {
        guard position < link.bytes else { break }
        together = min(together, blockLength - position % blockLength, link.bytes - position)
        return ((index, Int(position / blockLength), Int(position % blockLength)), Int(together))
      }
    }
    return (nil, Int(together))
  }

  /// Returns bytes of a block, loaded on first use.
  private func bytes(of number: Int, link index: Int, from start: Int, count: Int) throws(FileError) -> [UInt8] {
    let link = links[index]
    let offset = link.offset + Int64(number) * Int64(BackupManifest.blockLength)
    // An untrusted page list must not exceed the block.
    guard start + count <= link.reader.length(of: number) else {
      throw Self.told(Self.damaged(block: number, link.reader))
    }
    return try kept.withLock { kept throws(FileError) in
      if !kept.blocks[index].contains(number) {
        let begun = ContinuousClock.now
        let bytes = try load(number, of: link.reader)
        kept.waited += .now - begun
        do { try kept.target.write(bytes[...], at: offset) } catch { throw Self.told(BackupError(any: error)) }
        kept.blocks[index].insert(number)
        kept.bytes += Int64(bytes.count)
        guard progress(.unpacking, min(kept.bytes, total), total) else {
          throw FileError(.other, because: BackupError.cancelled(Self.operation))
        }
      }
      return try kept.source.bytes(at: offset + Int64(start), length: count)
    }
  }

  private func load(_ number: Int, of reader: MemberReader) throws(FileError) -> [UInt8] {
    do {
      guard let bytes = try reader.block(number) else { throw Self.damaged(block: number, reader) }
      return bytes
    } catch { throw Self.told(BackupError(any: error)) }
  }

  private static func damaged(block number: Int, _ reader: MemberReader) -> BackupError {
    do {
      let name = try reader.place.nameOnDisk(reader.file.name, in: reader.section)
      return damaged("block \(number) of \(name) is damaged")
    } catch { return BackupError(any: error) }
  }

  private static func damaged(_ detail: String) -> BackupError {
    BackupError(
      .damaged, operation: operation, detail: detail, hint: "Restore another backup, \(BackupErrorKind.orWhatIsLeft)")
  }

  private static func told(_ error: BackupError) -> FileError { error.fileError ?? FileError(.other, because: error) }
}

/// The pages of a delta and their positions.
private struct DeltaPages {
  let size: Int

  let perBlock: Int

  /// In ascending order, from 0; `before` counts earlier pages of the delta.
  private var runs: [(first: Int64, count: Int64, before: Int64)] = []

  /// Fails for contradictory runs.
  init?(_ list: [UInt32], pageSize: Int) {
    guard (512...65_536).contains(pageSize), pageSize.nonzeroBitCount == 1, list.count.isMultiple(of: 2) else {
      return nil
    }
    var before: Int64 = 0
    for index in stride(from: 0, to: list.count, by: 2) {
      let (first, count) = (Int64(list[index]) - 1, Int64(list[index + 1]))
      guard first >= runs.last.map({ $0.first + $0.count }) ?? 0, count > 0 else { return nil }
      runs.append((first, count, before))
      before += count
    }
    size = pageSize
    perBlock = BackupManifest.blockLength / pageSize
  }

  /// Returns a page's position in the delta, from 0, if changed.
  func place(of page: Int64) -> Int64? {
    let next = runs.partitioningIndex { $0.first > page }
    guard next > 0 else { return nil }
    let run = runs[next - 1]
    return page < run.first + run.count ? run.before + page - run.first : nil
  }
}
