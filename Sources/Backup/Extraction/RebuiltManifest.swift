import Platform
import SQLiteFormat
import SystemPackage

/// Completes a rebuilt manifest, with digests and external values, by reading all blocks.
struct RebuiltManifest {
  let place: any BackupPlace
  let section: BackupSection

  /// Adds the archive's external values; also returns its first unreadable block, by file.
  func withExternalData(_ manifest: BackupManifest) throws -> (manifest: BackupManifest, damage: [String: [Int]]) {
    guard manifest.rebuilt == true, manifest.externalData == nil, let file = manifest.file(.externalData),
      let reader = try MemberReader(file, of: manifest, in: place, section)
    else { return (manifest, [:]) }
    var manifest = manifest
    var listing = ArchiveListing()
    var whole = 0
    // After a lost block no value's start is known.
    while whole < reader.blockCount, let bytes = try reader.block(whole), listing.read(bytes) { whole += 1 }
    manifest.externalData = .init(items: listing.items.sorted { $0.name.text < $1.name.text })
    // The end marker shows whether blocks are missing.
    return (manifest, whole == reader.blockCount && listing.isWhole ? [:] : [file.name: [whole]])
  }

  /// Returns the manifest with all digests, unless a block is damaged.
  func withDigests(_ manifest: BackupManifest) throws -> BackupManifest? {
    let (listed, damage) = try withExternalData(manifest)
    guard damage.isEmpty else { return nil }
    var manifest = listed
    for index in manifest.files.indices {
      let file = manifest.files[index]
      guard let reader = try MemberReader(file, of: manifest, in: place, section), let members = file.members else {
        return nil
      }
      var (whole, content) = (RunningDigest(), RunningDigest())
      var blocks: [String] = []
      for block in members.indices {
        guard let member = try reader.member(block) else { return nil }
        whole.add(member)
        guard reader.blockCount > 0 else { continue }
        guard let bytes = reader.unpack(member, block) else { return nil }
        content.add(bytes)
        blocks.append(FileDigest(of: bytes).hexadecimal)
      }
      manifest.files[index].sha256 = whole.hexadecimal
      if file.content != nil {
        manifest.files[index].content?.sha256 = content.hexadecimal
        manifest.files[index].content?.blocks = blocks
      } else {
        manifest.database?.sha256 = content.hexadecimal
        manifest.database?.blocks = blocks
      }
    }
    return manifest
  }
}

/// The files of an archive, read from its start.
private struct ArchiveListing {
  private(set) var items: [BackupManifest.ExternalData.Item] = []

  private var reader = TarReader(limits: .init(bytes: .max, ratio: .max, entries: 10_000_000))
  private var position: Int64 = 0
  private var entry: (name: PathText, bytes: Int64, offset: Int64)?
  private var digest = RunningDigest()

  /// The tar block size.
  private static let block = 512

  var isWhole: Bool { (try? reader.finish()) != nil }

  /// Reads a piece; returns false if it is invalid.
  mutating func read(_ bytes: [UInt8]) -> Bool {
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + Self.block)
      // A header's file content starts here.
      position += Int64(end - start)
      do {
        var found: [TarReader.Event] = []
        try reader.read(bytes[start..<end]) { found.append($0) }
        for event in found { note(event) }
      } catch { return false }
      start = end
    }
    return true
  }

  private mutating func note(_ event: TarReader.Event) {
    switch event {
    case .entry(let found):
      // The first component is the support folder.
      let components = found.components.dropFirst().compactMap { FilePath.Component($0) }
      let isItem = !found.isFolder && !components.isEmpty && components.count == found.components.count - 1
      entry = isItem ? (PathText(FilePath(root: nil, components)), found.size, position) : nil
      digest = RunningDigest()
    case .content(let bytes): digest.add(bytes)
    case .end:
      guard let entry else { return }
      items.append(.init(name: entry.name, bytes: entry.bytes, sha256: digest.hexadecimal, offset: entry.offset))
      self.entry = nil
    }
  }
}

/// The block headers of a packed file, for a backup without manifests.
///
/// Only headers and a database's first block are read, so block digests are unknown.
struct BlockSurvey {
  /// The first lost member has all bytes of its gap.
  private(set) var members: [Int] = []

  private(set) var contentBytes: Int64 = 0

  private let name: String
  private let packing: BackupCompression
  private let place: any BackupPlace
  private let section: BackupSection

  /// Reads the headers; fails if there is no block.
  init?(
    _ name: String, packedBy packing: BackupCompression, size: Int64, in place: any BackupPlace,
    _ section: BackupSection
  ) throws {
    (self.name, self.packing, self.place, self.section) = (name, packing, place, section)
    var offset: Int64 = 0
    var end: Int64 = 0
    while offset < size, let found = try next(at: offset, size) {
      // Consecutive blocks have no lost member between them.
      let missing = found.header.number - members.count
      if missing > 0 {
        members.append(Int(clamping: found.offset - end))
        members += [Int](repeating: 0, count: missing - 1)
      } else if found.offset > end, let last = members.indices.last {
        members[last] += Int(clamping: found.offset - end)
      }
      members.append(found.header.length)
      contentBytes = Int64(found.header.number) * Int64(BackupManifest.blockLength) + Int64(found.header.contentLength)
      offset = found.offset + Int64(found.header.length)
      end = offset
    }
    guard !members.isEmpty, end <= size else { return nil }
  }

  private func next(at offset: Int64, _ size: Int64) throws -> (offset: Int64, header: MemberHeader)? {
    let length = packing.memberHeaderLength
    let there = try place.read(name, in: section, at: offset, length: length)
    if let header = known(there[...], at: offset, size) { return (offset, header) }
    // These follow all blocks.
    if ManifestCopy.Part(there[...], packing) != nil || there.starts(with: ZstandardMember.tableMagic) { return nil }
    var start = offset + 1
    while start < size {
      let bytes = try place.read(name, in: section, at: start, length: BackupManifest.blockLength + length)
      for index in packing.memberStarts(in: bytes, before: BackupManifest.blockLength) {
        if let header = known(bytes[index...], at: start + Int64(index), size) { return (start + Int64(index), header) }
      }
      start += Int64(BackupManifest.blockLength)
    }
    return nil
  }

  /// Parses the header of the next block or a later one.
  private func known(_ bytes: ArraySlice<UInt8>, at offset: Int64, _ size: Int64) -> MemberHeader? {
    guard let header = packing.memberHeader(bytes), offset + Int64(header.length) <= size,
      header.number >= members.count, Int64(header.number) * Int64(packing.leastMemberLength) <= offset
    else { return nil }
    return header
  }

  private var content: BackupManifest.Content {
    let count = contentBytes == 0 ? 0 : members.count
    return .init(bytes: contentBytes, sha256: "", blocks: [String](repeating: "", count: count))
  }

  private func file(_ role: BackupManifest.File.Role) -> BackupManifest.File {
    var file = BackupManifest.File(
      role: role, name: name, bytes: members.reduce(Int64(0)) { $0 + Int64($1) }, sha256: "", members: members,
      content: content)
    file.packing = packing
    return file
  }

  // MARK: Whole backups

  /// Makes the manifest of a full backup or evidence from its blocks, if possible.
  static func manifest(
    of id: BackupIdentifier, _ sizes: [String: Int64], _ place: any BackupPlace, _ section: BackupSection
  ) throws -> BackupManifest? {
    func survey(_ role: BackupManifest.File.Role) throws -> BlockSurvey? {
      guard let (name, packing) = role.packedFile(of: id, among: sizes), let size = sizes[name], packing.isAvailable
      else { return nil }
      return try BlockSurvey(name, packedBy: packing, size: size, in: place, section)
    }
    guard let main = try survey(.database) else { return nil }
    let raw: [BackupManifest.File.Role] = [.evidenceLog, .evidenceSharedMemory, .evidenceJournal]
    let isEvidence = raw.contains { $0.packedFile(of: id, among: sizes) != nil }
    let pageSize = isEvidence ? nil : try main.pageSize()
    // Blocks contain neither the store's identity nor its check.
    var manifest = BackupManifest(
      id: id, kind: pageSize == nil ? .evidence : .full, reason: .manual, files: [], check: .init(isSound: true))
    manifest.rebuilt = true
    if let pageSize {
      var file = main.file(.database)
      file.content = nil
      manifest.files.append(file)
      manifest.database = main.content
      manifest.database?.pageSize = pageSize
      manifest.database?.pageCount = UInt32(clamping: main.contentBytes / Int64(pageSize))
    } else {
      manifest.files.append(main.file(.evidenceMain))
      manifest.files += try raw.compactMap { role in try survey(role)?.file(role) }
    }
    if let archive = try survey(.externalData) { manifest.files.append(archive.file(.externalData)) }
    return manifest
  }

  /// Reads the page size from the first block; nil if pages do not fill the content.
  private func pageSize() throws -> Int? {
    guard let reader = try MemberReader(file(.database), of: nil, in: place, section), let block = try reader.block(0),
      let pageSize = DatabaseHeader(Array(block.prefix(DatabaseHeader.length)))?.pageSize, pageSize > 0,
      contentBytes % Int64(pageSize) == 0
    else { return nil }
    return pageSize
  }
}
