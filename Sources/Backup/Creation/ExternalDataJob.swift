import ManagedObjectModel
import Platform
import SQLiteFormat
import SystemPackage

/// Packs external values: large values in files of their own.
///
/// These files never change, so those in the parent are omitted.
struct ExternalDataJob {
  let job: BackupJob
  let packer: BlockPacker
  let parent: StoredBackup?

  private var fileSystem: FileSystem { job.surroundings.fileSystem }

  /// Packs the external values, if any are present or referenced.
  ///
  /// - Parameters:
  ///   - content: the database with the references; nil for evidence.
  ///   - model: its model, if known.
  /// - Returns: the values, and the archive of those new in the chain.
  /// - Throws: `changed-meanwhile` if referenced files have disappeared.
  func run(
    _ content: DatabaseContent?, model: ManagedObjectModel?
  ) throws -> (data: BackupManifest.ExternalData, archive: BlockPacker.Packed?)? {
    let found = try job.files.largeValues(in: fileSystem).files.filter { $0.status.kind == .regular }
    let referenced = try content.map { try ReferencedValues.read(in: $0, of: job.files.main, model: model).names }
    let names = Set(found.compactMap { $0.relative.last?.string })
    let missing = (referenced ?? []).subtracting(names).sorted()
    if !missing.isEmpty, packer.snapshot.isInUse, job.attempt < 3 {
      throw BackupError(
        FileError(.changed, operation: "copy the store's large values", path: job.files.path(of: .externalData)))
    }
    if found.isEmpty, missing.isEmpty { return nil }
    var data = BackupManifest.ExternalData(items: [], missing: missing)
    var archive = TarArchive(date: job.id.date, folder: job.files.path(of: .externalData).lastComponent, fileSystem)
    let known = knownItems()
    let total = found.reduce(Int64(0)) { $0 + $1.status.size }
    var done: Int64 = 0
    for file in found {
      let name = PathText(file.relative.reduce(into: FilePath("")) { $0.append($1) })
      let digest = try FileDigest(of: fileSystem.open(file.path)) { bytes in
        try job.advance(.externalData, done + bytes, total * 2)
      }.hexadecimal
      done += file.status.size
      if let item = known[name], item.bytes == file.status.size, item.sha256 == digest {
        data.items.append(item)
      } else {
        let offset = archive.append(file)
        data.items.append(.init(name: name, bytes: file.status.size, sha256: digest, offset: offset))
      }
      if file.isLink { data.links = (data.links ?? []) + [name] }
    }
    archive.addEnd()
    return (data, archive.isEmpty ? nil : try packer.pack(archive, as: .externalData, hashes: nil))
  }

  private func knownItems() -> [PathText: BackupManifest.ExternalData.Item] {
    guard let parent else { return [:] }
    var known: [PathText: BackupManifest.ExternalData.Item] = [:]
    for var item in parent.manifest?.externalData?.items ?? [] {
      item.backup = item.backup ?? parent.id
      known[item.name] = item
    }
    return known
  }
}

/// A tar archive (POSIX.1-1988 `ustar`, with POSIX.1-2001 extended headers) that reads its files on demand.
struct TarArchive: ByteSource {
  private struct Entry {
    var file: FileSystem.Descendant
    var start: Int64
    var content: Int64
  }

  private(set) var count: Int64 = 0
  private var entries: [Entry] = []
  private let date: Timestamp
  private let folder: FilePath.Component?
  private let fileSystem: FileSystem

  init(date: Timestamp, folder: FilePath.Component?, _ fileSystem: FileSystem) {
    self.date = date
    self.folder = folder
    self.fileSystem = fileSystem
  }

  var isEmpty: Bool { entries.isEmpty }

  /// Adds a file; returns its content's offset.
  mutating func append(_ file: FileSystem.Descendant) -> Int64 {
    let content = count + Int64(headers(of: file).count)
    entries.append(Entry(file: file, start: count, content: content))
    count = content + Self.padded(file.status.size)
    return content
  }

  /// Adds two blocks of zeros.
  mutating func addEnd() { count += 1024 }

  private static func padded(_ size: Int64) -> Int64 { (size + 511) / 512 * 512 }

  // MARK: Reading

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let wanted = Int(min(Int64(min(length, buffer.count)), count - offset))
    for index in 0..<wanted { buffer[index] = 0 }
    let end = offset + Int64(wanted)
    var index = place(of: offset)
    while index < entries.count, entries[index].start < end {
      let entry = entries[index]
      if entry.content > offset {
        Self.copy(headers(of: entry.file), at: entry.start, into: &buffer, from: offset, wanted)
      }
      let first = max(entry.content, offset)
      let last = min(entry.content + entry.file.status.size, end)
      if first < last {
        let bytes = try fileSystem.open(entry.file.path).bytes(at: first - entry.content, length: Int(last - first))
        guard bytes.count == Int(last - first) else {
          throw FileError(.changed, operation: "copy the store's large values", path: entry.file.path)
        }
        Self.copy(bytes, at: first, into: &buffer, from: offset, wanted)
      }
      index += 1
    }
    return wanted
  }

  /// Copies the bytes at `start` that overlap the window.
  private static func copy(
    _ bytes: [UInt8], at start: Int64, into buffer: inout [UInt8], from offset: Int64, _ length: Int
  ) {
    let first = max(start, offset)
    let last = min(start + Int64(bytes.count), offset + Int64(length))
    guard first < last else { return }
    buffer.replaceSubrange(
      Int(first - offset)..<Int(last - offset), with: bytes[Int(first - start)..<Int(last - start)])
  }

  private func place(of offset: Int64) -> Int { max(0, entries.partitioningIndex { $0.start > offset } - 1) }

  // MARK: Headers

  private func headers(of file: FileSystem.Descendant) -> [UInt8] {
    var name: [UInt8] = []
    for component in (folder.map { [$0] } ?? []) + file.relative {
      if !name.isEmpty { name.append(UInt8(ascii: "/")) }
      name += component.platformBytes
    }
    var headers: [UInt8] = []
    var records: [UInt8] = []
    if name.count > 100 { records += TarWriter.record("path", name) }
    if file.status.size >= 1 << 33 { records += TarWriter.record("size", String(file.status.size).utf8) }
    if !records.isEmpty {
      headers += header(name: Array("PaxHeader".utf8), size: Int64(records.count), type: "x")
      headers += records
      headers += [UInt8](repeating: 0, count: Int(Self.padded(Int64(records.count))) - records.count)
    }
    let size = file.status.size < 1 << 33 ? file.status.size : 0
    return headers + header(name: Array(name.prefix(100)), size: size, type: "0")
  }

  private func header(name: [UInt8], size: Int64, type: Character) -> [UInt8] {
    TarWriter.header(name: name, size: size, type: type, seconds: date.secondsSince1970)
  }
}
