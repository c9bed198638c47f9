package import Foundation
package import Platform
internal import Salvage
package import SystemPackage

/// Unpacks a backup: database, external values, or evidence.
///
/// Damaged parts are zeroed and named. The caller synchronizes files that are to stay.
package struct BackupExtraction: Sendable {
  /// The losses of an extraction.
  package struct Result: Sendable, Hashable {
    /// The lost blocks of the restored file, from 0.
    package var lostBlocks = IndexSet()

    package var damage: [String: [Int]] = [:]

    /// Whether the digest of the whole matches.
    package var isDigestRight = true

    var lostItems: [String] = []

    /// Whether a restored database is exact, even if an earlier backup lost replaced blocks.
    package var isContentRight: Bool { lostBlocks.isEmpty && isDigestRight }

    /// Whether the result is exact, and no input damaged.
    package var isWhole: Bool { lostBlocks.isEmpty && damage.isEmpty && isDigestRight && lostItems.isEmpty }
  }

  /// The chain, full backup first; a single one for evidence.
  let chain: [StoredBackup]

  let place: any BackupPlace

  let section: BackupSection
  let fileSystem: FileSystem
  let progress: BackupProgress

  /// The first unreadable block of an archive not listed in a manifest, by file.
  let archiveDamage: [String: [Int]]

  private let catalog: BackupCatalog

  /// - Parameter isTolerant: whether to read a broken chain as far as possible.
  /// - Throws: `no-such-backup`, `backup-damaged`, `backup-chain-broken`, `backup-encrypted`.
  package init(
    _ id: BackupIdentifier, in catalog: BackupCatalog, isTolerant: Bool = false, fileSystem: FileSystem,
    progress: @escaping BackupProgress = { _, _, _ in true }
  ) throws {
    var chain = try isTolerant ? catalog.remains(of: id) : catalog.chain(of: id)
    var archiveDamage: [String: [Int]] = [:]
    for backup in chain where backup.manifest?.isLocked == true {
      throw BackupError.locked(backup.id, "unpack the backup")
    }
    if let last = chain.indices.last, let manifest = chain[last].manifest {
      let rebuilt = RebuiltManifest(place: catalog.place, section: catalog.section)
      (chain[last].manifest, archiveDamage) = try rebuilt.withExternalData(manifest)
    }
    self.chain = chain
    self.archiveDamage = archiveDamage
    self.catalog = catalog
    place = catalog.place
    section = catalog.section
    self.fileSystem = fileSystem
    self.progress = progress
  }

  package var manifest: BackupManifest {
    get throws {
      guard let manifest = chain.last?.manifest else {
        throw BackupError(
          .manifestUnreadable, operation: "unpack the backup", detail: "it has no manifest that can be read",
          hint: "Unpack its file with gunzip.")
      }
      return manifest
    }
  }

  func recoveryKit() throws -> RecoveryKit? {
    guard let last = chain.last else { return nil }
    return try catalog.recoveryKit(of: last)
  }

  // MARK: The database

  /// Writes the database into a new file; damage is in the result.
  ///
  /// - Throws: `backup-request` for evidence; errors of file system and place.
  package func writeDatabase(to path: FilePath) throws -> Result {
    try writeDatabase(to: try ExtractedFile(path, in: fileSystem))
  }

  /// Writes the database, or the files of evidence, into unnamed files.
  ///
  /// - Parameter files: the names that they have for a moment.
  func writeUnnamed(at files: StoreFileSet) throws -> (result: Result, files: OpenedFiles) {
    if try manifest.kind == .evidence { return try writeEvidence(to: files, isUnnamed: true) }
    let file = try ExtractedFile(files.main, isUnnamed: true, in: fileSystem)
    let result = try writeDatabase(to: file)
    return (result, OpenedFiles([.main: try file.reading()]))
  }

  private func writeDatabase(to file: ExtractedFile) throws -> Result {
    let own = try manifest
    if own.kind == .original { return try writeOriginal(own, to: file) }
    guard let database = own.database else {
      throw BackupError(
        .request, operation: "unpack the backup", path: file.path, detail: "it holds the raw files of a store",
        hint: "Restore it to a path of its own, and salvage that.")
    }
    var result = Result()
    var digest: String?
    // Without the full backup, bytes missing in deltas are lost.
    var lost = LostRanges(chain.first?.manifest?.file(.database) == nil ? database.bytes : 0)
    var extent = Extent(chain.map { Self.packed($0.manifest) })
    for backup in chain {
      guard let manifest = backup.manifest else { continue }
      defer { extent.done &+= Self.packed(manifest) }
      if let packed = manifest.file(.database) {
        digest = try write(packed, of: manifest, to: file, extent, &result)
        for block in result.damage[packed.name] ?? [] { lost.lose(block: block) }
      } else if let packed = manifest.file(.delta), let pages = manifest.pages {
        try writeDelta(packed, pages, of: manifest, to: file, extent, &result, &lost)
        digest = nil
      }
    }
    // A later backup may have fewer pages.
    try file.truncate(to: database.bytes)
    result.lostBlocks = lost.blocks(of: database.bytes)
    // A rebuilt manifest has only block checksums.
    if result.lostBlocks.isEmpty, !database.sha256.isEmpty {
      let whole = if let digest { digest } else { try FileDigest(of: file.reading()).hexadecimal }
      result.isDigestRight = whole == database.sha256
    }
    return result
  }

  /// Progress across several files, in unpacked bytes.
  private struct Extent {
    var done: Int64 = 0
    let total: Int64

    init(_ parts: [Int64]) { total = parts.reduce(0, &+) }
  }

  private static func packed(_ manifest: BackupManifest?) -> Int64 {
    guard let manifest else { return 0 }
    if manifest.file(.database) != nil { return max(0, manifest.database?.bytes ?? 0) }
    return max(0, manifest.file(.delta)?.content?.bytes ?? 0)
  }

  /// Unpacks each block to its offset on several threads; returns the digest unless blocks are lost.
  private func write(
    _ packed: BackupManifest.File, of manifest: BackupManifest, to file: ExtractedFile, _ extent: Extent,
    _ result: inout Result
  ) throws -> String? {
    var whole = RunningDigest()
    let damaged = try unpack(packed, of: manifest, extent) { block, bytes in
      guard let bytes else { return }
      whole.add(bytes)
      try file.write(bytes[...], at: Int64(block) * Int64(BackupManifest.blockLength))
    }
    if !damaged.isEmpty { result.damage[packed.name] = damaged }
    return damaged.isEmpty ? whole.hexadecimal : nil
  }

  /// Applies a delta; lost pages become zeros, so that no old content remains.
  private func writeDelta(
    _ packed: BackupManifest.File, _ pages: [UInt32], of manifest: BackupManifest, to file: ExtractedFile,
    _ extent: Extent, _ result: inout Result, _ lost: inout LostRanges
  ) throws {
    guard let size = manifest.database?.pageSize, let bytes = manifest.database?.bytes else { return }
    try file.truncate(to: bytes)
    var index = 0
    var usedPages = 0
    let pagesPerBlock = BackupManifest.blockLength / size
    var left = Int((packed.content?.bytes ?? 0) / Int64(size))
    let damaged = try unpack(packed, of: manifest, extent) { _, content in
      let count = min(pagesPerBlock, left)
      left -= count
      let isLost = content == nil
      let content = content ?? [UInt8](repeating: 0, count: count * size)
      var done = 0
      while done < count, index + 1 < pages.count {
        let run = min(Int(pages[index + 1]) - usedPages, count - done)
        let first = Int64(pages[index]) - 1 + Int64(usedPages)
        try file.write(content[(done * size)..<((done + run) * size)], at: first * Int64(size))
        lost.set((first * Int64(size))..<((first + Int64(run)) * Int64(size)), isLost: isLost)
        done += run
        usedPages += run
        if usedPages == Int(pages[index + 1]) {
          index += 2
          usedPages = 0
        }
      }
    }
    if !damaged.isEmpty { result.damage[packed.name] = damaged }
  }

  /// Delivers the unpacked blocks in order, with nil for a lost one.
  ///
  /// - Returns: the lost blocks.
  private func unpack(
    _ packed: BackupManifest.File, of manifest: BackupManifest, _ extent: Extent,
    deliver: (Int, [UInt8]?) throws -> Void
  ) throws -> [Int] {
    guard let reader = try MemberReader(packed, of: manifest, in: place, section) else { return [] }
    var damaged: [Int] = []
    let own = reader.content.bytes
    try BlockPipeline.run(count: reader.blockCount, threads: BlockPacker.threads(isInUse: false)) {
      () throws -> ((Int) throws -> [UInt8]?) in
      { (block) throws -> [UInt8]? in try reader.block(block) }
    } deliver: { block, bytes in
      if bytes == nil { damaged.append(block) }
      try deliver(block, bytes)
      let done = min(own, Int64(block + 1) * Int64(BackupManifest.blockLength))
      try advance(.unpacking, min(extent.done &+ done, extent.total), extent.total)
    }
    return damaged
  }

  func advance(_ phase: BackupPhase, _ done: Int64, _ total: Int64) throws {
    guard progress(phase, done, total) else { throw BackupError.cancelled("unpack the backup") }
  }

  // MARK: Evidence

  /// Writes the files of evidence, without external values.
  ///
  /// - Throws: `backup-request` for any other backup; errors of file system and place.
  package func writeEvidence(to files: StoreFileSet) throws -> Result {
    try writeEvidence(to: files, isUnnamed: false).result
  }

  /// - Returns: unnamed files also opened.
  private func writeEvidence(to files: StoreFileSet, isUnnamed: Bool) throws -> (result: Result, files: OpenedFiles) {
    let manifest = try manifest
    guard manifest.kind == .evidence else {
      throw BackupError(
        .request, operation: "unpack the backup", path: files.main, detail: "it holds a database, and no raw files",
        hint: "Restore it as a database.")
    }
    var result = Result()
    var opened: [StoreFileSet.Part: ReadableFile] = [:]
    let parts = manifest.files.filter { $0.role.part != nil }
    var extent = Extent(parts.map { max(0, $0.content?.bytes ?? 0) })
    for packed in parts {
      guard let part = packed.role.part else { continue }
      defer { extent.done &+= max(0, packed.content?.bytes ?? 0) }
      let file = try ExtractedFile(files.path(of: part), isUnnamed: isUnnamed, in: fileSystem)
      _ = try write(packed, of: manifest, to: file, extent, &result)
      try file.truncate(to: packed.content?.bytes ?? 0)
      if isUnnamed { opened[part] = try file.reading() }
      if part == .main { result.lostBlocks = IndexSet(result.damage[packed.name] ?? []) }
    }
    return (result, OpenedFiles(opened))
  }
}

final class ExtractedFile {
  let path: FilePath
  private let file: WritableFile
  private let isUnnamed: Bool
  private let fileSystem: FileSystem

  init(_ path: FilePath, isUnnamed: Bool = false, in fileSystem: FileSystem) throws {
    self.path = path
    self.isUnnamed = isUnnamed
    self.fileSystem = fileSystem
    file = isUnnamed ? try fileSystem.createUnnamed(path) : try fileSystem.create(path)
  }

  func reading() throws -> ReadableFile { return isUnnamed ? try file.reading() : try fileSystem.open(path) }

  func write(_ bytes: ArraySlice<UInt8>, at offset: Int64) throws { try file.write(bytes, at: offset) }

  func truncate(to count: Int64) throws { try file.truncate(to: count) }
}

/// The lost bytes of a database during the unpacking of its chain.
struct LostRanges {
  private var ranges = IndexSet()

  /// - Parameter count: the number of leading bytes lost at the start.
  init(_ count: Int64) { if count > 0 { ranges.insert(integersIn: 0..<Int(count)) } }

  mutating func lose(block: Int) {
    let length = BackupManifest.blockLength
    ranges.insert(integersIn: (block * length)..<((block + 1) * length))
  }

  mutating func set(_ range: Range<Int64>, isLost: Bool) {
    let range = Int(range.lowerBound)..<Int(range.upperBound)
    if isLost { ranges.insert(integersIn: range) } else if !ranges.isEmpty { ranges.remove(integersIn: range) }
  }

  /// Returns the damaged blocks among the first `count` bytes.
  func blocks(of count: Int64) -> IndexSet {
    var blocks = IndexSet()
    let length = BackupManifest.blockLength
    // rangeView(of:) is empty on Linux for partial ranges.
    for range in ranges.rangeView where range.lowerBound < count {
      let end = min(range.upperBound, Int(count))
      blocks.insert(integersIn: (range.lowerBound / length)...((end - 1) / length))
    }
    return blocks
  }
}
