import StoreFiles
import SystemPackage

/// The writing of what a backup holds into files of their own, each block proven before it is written.
///
/// Memory is bounded by a few blocks, whatever the size of the store.
struct BackupExtraction {
  /// What is done about a block that is lost.
  enum Manner {
    /// The extraction fails.
    case strict

    /// What was in it becomes zeros, and is counted.
    case salvage
  }

  /// What could not be written as it was.
  struct Losses: Sendable, Hashable {
    /// The pages that are zeros now.
    var pages: Set<UInt32> = []

    /// The files with large values that are missing or not what they were.
    var values: [String] = []

    /// The blocks that are lost, as the names of their files and their numbers.
    var blocks: [RestoreReport.LostBlock] = []

    var isEmpty: Bool { pages.isEmpty && values.isEmpty && blocks.isEmpty }
  }

  let place: any BackupPlace
  let fileSystem: FileSystem
  let manner: Manner

  /// Called with the bytes done; false ends the extraction.
  let progress: (Int64) -> Bool

  private(set) var losses = Losses()
  private var done: Int64 = 0

  init(
    from place: any BackupPlace, in fileSystem: FileSystem, manner: Manner, progress: @escaping (Int64) -> Bool
  ) {
    self.place = place
    self.fileSystem = fileSystem
    self.manner = manner
    self.progress = progress
  }

  private mutating func advance(_ bytes: Int) throws(BackupError) {
    done += Int64(bytes)
    guard progress(done) else { throw .cancelled("restore the backup") }
  }

  private mutating func lose(_ block: Int, of file: BackupManifest.File, _ id: BackupIdentifier) throws(BackupError) {
    guard manner == .salvage else {
      throw BackupError(
        .damaged, operation: "restore backup \(id)", detail: "block \(block) of \(file.name) is damaged",
        hint: "Restore another backup, or what is left of this one with --salvage.")
    }
    losses.blocks.append(.init(file: file.name, block: block))
  }

  // MARK: The database

  /// Writes the database of the last backup of a chain.
  ///
  /// - Parameter chain: the full backup first.
  mutating func writeDatabase(_ chain: [StoredBackup], to path: FilePath) throws(BackupError) {
    guard let last = chain.last?.manifest, let database = last.database, let pageSize = database.pageSize else {
      throw Self.incomplete(chain.last?.id)
    }
    let file = try create(path)
    for backup in chain { try write(backup, pageSize: pageSize, to: file) }
    do throws(FileError) { try file.truncate(to: database.bytes) } catch { throw BackupError(error) }
    try commit(file)
    losses.pages = losses.pages.filter { Int64($0) <= database.bytes / Int64(pageSize) }
    try verify(path, database, last.id)
  }

  private mutating func write(
    _ backup: StoredBackup, pageSize: Int, to file: borrowing WritableFile
  ) throws(BackupError) {
    guard let manifest = backup.manifest, let database = manifest.database else { throw Self.incomplete(backup.id) }
    if manifest.kind == .full {
      guard let part = manifest.file(.database) else { throw Self.incomplete(backup.id) }
      let reader = BlockReader(part, content: database, in: place)
      for block in 0..<reader.count {
        let offset = Int64(block) * Int64(BackupManifest.blockLength)
        let length = reader.length(of: block)
        if let bytes = try reader.block(block) {
          try write(bytes[...], at: offset, to: file)
        } else {
          try lose(block, of: part, backup.id)
          try write([UInt8](repeating: 0, count: length)[...], at: offset, to: file)
          let first = offset / Int64(pageSize)
          for page in first..<((offset + Int64(length) + Int64(pageSize) - 1) / Int64(pageSize)) {
            losses.pages.insert(UInt32(clamping: page + 1))
          }
        }
        try advance(length)
      }
      return
    }
    guard let part = manifest.file(.delta), let content = part.content, let runs = manifest.pages else {
      throw Self.incomplete(backup.id)
    }
    let reader = BlockReader(part, content: content, in: place)
    var pages = PageRuns(runs)
    for block in 0..<reader.count {
      let length = reader.length(of: block)
      let bytes = try reader.block(block)
      if bytes == nil { try lose(block, of: part, backup.id) }
      // Blocks are a multiple of every page size, so that no page lies in two.
      for start in stride(from: 0, to: length, by: pageSize) {
        guard let page = pages.next() else { break }
        let offset = (Int64(page) - 1) * Int64(pageSize)
        if let bytes {
          try write(bytes[start..<min(start + pageSize, length)], at: offset, to: file)
          losses.pages.remove(page)
        } else {
          // The parent's page would be of another time than those around it.
          try write([UInt8](repeating: 0, count: pageSize)[...], at: offset, to: file)
          losses.pages.insert(page)
        }
      }
      try advance(length)
    }
  }

  func write(
    _ bytes: ArraySlice<UInt8>, at offset: Int64, to file: borrowing WritableFile
  ) throws(BackupError) {
    do throws(FileError) { try file.write(bytes, at: offset) } catch { throw BackupError(error) }
  }

  func create(_ path: FilePath) throws(BackupError) -> WritableFile {
    do throws(FileError) {
      return try fileSystem.create(path, permissions: .ownerReadWrite)
    } catch {
      throw BackupError(error)
    }
  }

  func commit(_ file: consuming WritableFile) throws(BackupError) {
    do throws(FileError) { try file.commit() } catch { throw BackupError(error) }
  }

  /// Reads back what was written and compares it with the manifest, block by block.
  private func verify(
    _ path: FilePath, _ database: BackupManifest.Content, _ id: BackupIdentifier
  ) throws(BackupError) {
    guard losses.isEmpty else { return }
    do throws(FileError) {
      let file = try fileSystem.open(path)
      var digest = RunningDigest()
      var offset: Int64 = 0
      while offset < file.count {
        let block = try file.bytes(at: offset, length: BackupManifest.blockLength)
        if block.isEmpty { break }
        digest.add(block)
        offset += Int64(block.count)
      }
      guard file.count == database.bytes, digest.hexadecimal == database.sha256 else {
        throw FileError(
          .verificationFailed, operation: "restore backup \(id)", path: path,
          detail: "what was restored is not what the manifest says",
          hint: "Restore another backup, and prove this one with: lazaret backup verify")
      }
    } catch {
      throw BackupError(error)
    }
  }

  // MARK: Others

  /// Writes a packed file as it was.
  mutating func copy(_ reader: BlockReader, to path: FilePath, _ id: BackupIdentifier) throws(BackupError) {
    let file = try create(path)
    for block in 0..<reader.count {
      let bytes = try reader.block(block)
      if bytes == nil { try lose(block, of: reader.file, id) }
      let length = reader.length(of: block)
      try write(
        (bytes ?? [UInt8](repeating: 0, count: length))[...], at: Int64(block) * Int64(BackupManifest.blockLength),
        to: file)
      try advance(length)
    }
    try commit(file)
  }

  /// Notes a large value that is lost.
  mutating func lose(value name: String) { losses.values.append(name) }

  /// A block of an archive; the one that was read last is remembered, for small values lie together.
  mutating func cached(_ block: Int, of reader: BlockReader) throws(BackupError) -> [UInt8]? {
    if let last, last.file == reader.file.name, last.block == block { return last.bytes }
    let bytes = try reader.block(block)
    last = (reader.file.name, block, bytes)
    if let bytes { try advance(bytes.count) }
    return bytes
  }

  private var last: (file: String, block: Int, bytes: [UInt8]?)?

  private static func incomplete(_ id: BackupIdentifier?) -> BackupError {
    BackupError(
      .damaged, operation: "restore the backup",
      detail: "the manifest of backup \(id?.description ?? "?") does not say what is to be restored",
      hint: "Restore another backup.")
  }
}

/// The pages of a delta, one after the other.
private struct PageRuns {
  private let runs: [UInt32]
  private var index = 0
  private var within: UInt32 = 0

  init(_ runs: [UInt32]) { self.runs = runs }

  mutating func next() -> UInt32? {
    guard index + 1 < runs.count else { return nil }
    let page = runs[index] &+ within
    within += 1
    if within >= runs[index + 1] {
      index += 2
      within = 0
    }
    return page
  }
}
