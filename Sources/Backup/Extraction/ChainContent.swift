package import Platform
package import SystemPackage

/// The database that a chain of backups restores to, of which only those blocks are read that are asked for; each is proven by
/// its own digest, and read once.
///
/// That pages of several backups belong together is proven by the hashes that were taken of the last one's pages: nothing else speaks for
/// the whole where not all of it is read.
///
/// What was read is kept in a file, at the place of each block behind those of the backups before.
package final class ChainContent: ByteSource {
  package let count: Int64

  private let links: [Link]
  private let kept: Mutex<Kept>

  /// The hashes of all pages, and the size of a page; nil for a full backup, whose digests say it.
  private let hashes: (bytes: [UInt8], pageSize: Int)?
  /// How many bytes all blocks of the chain have.
  private let total: Int64
  private let progress: BackupProgress

  private static let operation = "read the backup"

  private struct Link {
    let reader: MemberReader

    /// The bytes that the database has with it.
    let bytes: Int64

    /// The pages of a delta; nil for a full backup, which has all of them in order.
    let pages: DeltaPages?

    /// Where its blocks are kept.
    let offset: Int64
  }

  private struct Kept {
    let target: ExtractedFile
    let source: any ByteSource
    var blocks: [Set<Int>]
    var bytes: Int64 = 0
    var waited = Duration.zero
  }

  /// The content of a chain.
  ///
  /// - Parameter path: the file to keep blocks in, which is made.
  /// - Returns: nil where only the whole can be proven: of originals and evidence, of a store that was not sound, of manifests that
  ///   were made anew, and of a delta without hashes of its pages.
  /// - Throws: `backup-chain-broken`, `compression-unavailable`, or what the file system says.
  package init?(_ extraction: BackupExtraction, keepingIn path: FilePath) throws(BackupError) {
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
    // No more than the blocks hold, and in whole pages: a manifest is written by whoever made the backup.
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
    let target = try ExtractedFile(path, in: extraction.fileSystem)
    try target.truncate(to: offset)
    do throws(FileError) {
      let blocks = [Set<Int>](repeating: [], count: links.count)
      kept = Mutex(Kept(target: target, source: try extraction.fileSystem.open(path), blocks: blocks))
    } catch {
      throw BackupError(error)
    }
    self.links = links
    count = database.bytes
    total = offset
    progress = extraction.progress
  }

  private static func broken(_ manifest: BackupManifest) -> BackupError {
    BackupError(
      .chainBroken, operation: operation, detail: "the manifest of backup \(manifest.id) does not say what it holds")
  }

  /// How long was waited for blocks.
  package var waited: Duration { kept.withLock { $0.waited } }

  /// Says that no more is asked for, so that the blocks that were not read are done with too.
  package func finish() throws(BackupError) {
    guard progress(.unpacking, total, total) else { throw .cancelled(Self.operation) }
  }

  // MARK: Reading

  /// Reads of the database; shorter only at its end.
  package func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
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

  /// Where a byte of the database is: a place in a block of a backup, or nowhere; and how many bytes lie there
  /// together.
  private func place(of position: Int64) -> (block: (link: Int, number: Int, start: Int)?, bytes: Int) {
    let blockLength = Int64(BackupManifest.blockLength)
    var together = blockLength
    for (index, link) in links.enumerated().reversed() {
      if let pages = link.pages {
        let inPage = Int(position % Int64(pages.size))
        // Another page may lie in another backup.
        together = min(together, Int64(pages.size - inPage))
        if let place = pages.place(of: position / Int64(pages.size)) {
          let start = Int(place % Int64(pages.perBlock)) * pages.size + inPage
          return ((index, Int(place / Int64(pages.perBlock)), start), Int(together))
        }
        // An earlier one may have had more, which was gone with this one.
        guard position < link.bytes else { return (nil, Int(together)) }
      } else {
        guard position < link.bytes else { break }
        together = min(together, blockLength - position % blockLength, link.bytes - position)
        return ((index, Int(position / blockLength), Int(position % blockLength)), Int(together))
      }
    }
    return (nil, Int(together))
  }

  /// Bytes of a block, which is read where it was not yet.
  private func bytes(of number: Int, link index: Int, from start: Int, count: Int) throws(FileError) -> [UInt8] {
    let link = links[index]
    let offset = link.offset + Int64(number) * Int64(BackupManifest.blockLength)
    // What a manifest says of pages may not lead behind what a block holds.
    guard start + count <= link.reader.length(of: number) else {
      throw Self.told(Self.damaged(block: number, link.reader))
    }
    return try kept.withLock { kept throws(FileError) in
      if !kept.blocks[index].contains(number) {
        let begun = ContinuousClock.now
        let bytes = try load(number, of: link.reader)
        kept.waited += .now - begun
        do throws(BackupError) { try kept.target.write(bytes[...], at: offset) } catch { throw Self.told(error) }
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
    do throws(BackupError) {
      guard let bytes = try reader.block(number) else { throw Self.damaged(block: number, reader) }
      return bytes
    } catch {
      throw Self.told(error)
    }
  }

  private static func damaged(block number: Int, _ reader: MemberReader) -> BackupError {
    damaged("block \(number) of \(reader.file.name) is damaged")
  }

  private static func damaged(_ detail: String) -> BackupError {
    BackupError(
      .damaged, operation: operation, detail: detail,
      hint: "Restore another backup, or what is left of this one with --salvage.")
  }

  private static func told(_ error: BackupError) -> FileError { error.fileError ?? FileError(.other, because: error) }
}

/// The pages of a delta, and where each of them lies among the others.
private struct DeltaPages {
  let size: Int

  /// How many lie in a block.
  let perBlock: Int

  /// The first page of each run, from 0, in ascending order, and how many pages lie before it.
  private let runs: [(first: Int64, count: Int64, before: Int64)]

  /// The pages by the runs of a manifest; nil for runs that contradict themselves.
  init?(_ list: [UInt32], pageSize: Int) {
    guard (512...65_536).contains(pageSize), pageSize.nonzeroBitCount == 1, list.count.isMultiple(of: 2) else {
      return nil
    }
    var runs: [(first: Int64, count: Int64, before: Int64)] = []
    var before: Int64 = 0
    for index in stride(from: 0, to: list.count, by: 2) {
      let (first, count) = (Int64(list[index]) - 1, Int64(list[index + 1]))
      guard first >= runs.last.map({ $0.first + $0.count }) ?? 0, count > 0 else { return nil }
      runs.append((first, count, before))
      before += count
    }
    self.runs = runs
    size = pageSize
    perBlock = BackupManifest.blockLength / pageSize
  }

  /// The place of a page among those of the delta, both from 0; nil where it has not changed.
  func place(of page: Int64) -> Int64? {
    // The first run that begins behind the page.
    var (low, high) = (0, runs.count)
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].first > page { high = middle } else { low = middle + 1 }
    }
    guard low > 0 else { return nil }
    let run = runs[low - 1]
    return page < run.first + run.count ? run.before + page - run.first : nil
  }
}
