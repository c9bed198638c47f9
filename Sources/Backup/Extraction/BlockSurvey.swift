import Platform
import SQLiteFormat
import SystemPackage

/// What the headers of a packed file's blocks tell, where both manifests of a backup are lost.
///
/// Only headers are read, and the first block of a database. Digests of blocks are not known then; each has a checksum of its own.
struct BlockSurvey {
  /// The bytes of each member; where members are lost the first of them has all that is between those that are there.
  private(set) var members: [Int] = []

  /// The bytes that all blocks unpack to.
  private(set) var contentBytes: Int64 = 0

  private let name: String
  private let packing: BackupCompression
  private let place: any BackupPlace
  private let section: BackupSection

  /// Reads the headers of a file; nil where no block of ours is in it.
  init?(
    _ name: String, packedBy packing: BackupCompression, size: Int64, in place: any BackupPlace,
    _ section: BackupSection
  ) throws(BackupError) {
    (self.name, self.packing, self.place, self.section) = (name, packing, place, section)
    var offset: Int64 = 0
    var end: Int64 = 0
    while offset < size, let found = try next(at: offset, size) {
      // What is between two blocks that follow each other is no block.
      let missing = found.header.number - members.count
      if missing > 0 {
        members.append(Int(clamping: found.offset - end))
        members += [Int](repeating: 0, count: missing - 1)
      } else if found.offset > end, let last = members.indices.last {
        members[last] += Int(clamping: found.offset - end)
      }
      members.append(found.header.length)
      contentBytes =
        Int64(found.header.number) * Int64(BackupManifest.blockLength) + Int64(found.header.contentLength)
      offset = found.offset + Int64(found.header.length)
      end = offset
    }
    guard !members.isEmpty, end <= size else { return nil }
  }

  private struct Found {
    var offset: Int64
    var header: (number: Int, contentLength: Int, length: Int)
  }

  /// The next header from a place on; nil where none is left.
  private func next(at offset: Int64, _ size: Int64) throws(BackupError) -> Found? {
    let length = packing.memberHeaderLength
    let there = try place.read(name, in: section, at: offset, length: length)
    if let header = known(there[...], at: offset, size) { return Found(offset: offset, header: header) }
    // The copy of a manifest, or the seek table, has no blocks behind it.
    if ManifestCopy.Part(there[...], packing) != nil || there.starts(with: ZstandardMember.tableMagic) { return nil }
    var start = offset + 1
    while start < size {
      let bytes = try place.read(name, in: section, at: start, length: BackupManifest.blockLength + length)
      for index in packing.memberStarts(in: bytes, before: BackupManifest.blockLength) {
        if let header = known(bytes[index...], at: start + Int64(index), size) {
          return Found(offset: start + Int64(index), header: header)
        }
      }
      start += Int64(BackupManifest.blockLength)
    }
    return nil
  }

  /// A header that can be that of the next block, or of a later one.
  private func known(
    _ bytes: ArraySlice<UInt8>, at offset: Int64, _ size: Int64
  ) -> (number: Int, contentLength: Int, length: Int)? {
    guard let header = packing.memberHeader(bytes), offset + Int64(header.length) <= size else { return nil }
    let number = Int(header.number)
    guard number >= members.count, Int64(number) * Int64(packing.leastMemberLength) <= offset else { return nil }
    return (number, header.contentLength, header.length)
  }

  private var content: BackupManifest.Content {
    let count = contentBytes == 0 ? 0 : members.count
    return .init(bytes: contentBytes, sha256: "", blocks: [String](repeating: "", count: count))
  }

  private func file(_ role: BackupManifest.File.Role, of id: BackupIdentifier) -> BackupManifest.File {
    var file = BackupManifest.File(
      role: role, name: name, bytes: members.reduce(Int64(0)) { $0 + Int64($1) }, sha256: "", members: members,
      content: content)
    file.packing = packing
    return file
  }

  // MARK: Whole backups

  /// What is known of a backup without manifest: of a full one, or of evidence; nil where that cannot be told.
  static func manifest(
    of id: BackupIdentifier, _ sizes: [String: Int64], _ place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) -> BackupManifest? {
    func survey(_ role: BackupManifest.File.Role) throws(BackupError) -> BlockSurvey? {
      guard let (name, packing) = role.packedFile(of: id, among: sizes), let size = sizes[name], packing.isAvailable
      else { return nil }
      return try BlockSurvey(name, packedBy: packing, size: size, in: place, section)
    }
    guard let main = try survey(.database) else { return nil }
    let raw: [BackupManifest.File.Role] = [.evidenceLog, .evidenceSharedMemory, .evidenceJournal]
    let isEvidence = raw.contains { $0.packedFile(of: id, among: sizes) != nil }
    let pageSize = isEvidence ? nil : try main.pageSize(of: id)
    // Nothing in it says of which store it is, nor what was found when the store was checked.
    var manifest = BackupManifest(
      id: id, kind: pageSize == nil ? .evidence : .full, reason: .manual,
      store: .init(path: PathText(""), kind: "unknown"), files: [], check: .init(isSound: true),
      versions: .init(library: "", operatingSystem: ""))
    manifest.rebuilt = true
    if let pageSize {
      var file = main.file(.database, of: id)
      file.content = nil
      manifest.files.append(file)
      manifest.database = main.content
      manifest.database?.pageSize = pageSize
      manifest.database?.pageCount = UInt32(clamping: main.contentBytes / Int64(pageSize))
    } else {
      manifest.files.append(main.file(.evidenceMain, of: id))
      for role in raw {
        if let survey = try survey(role) { manifest.files.append(survey.file(role, of: id)) }
      }
    }
    if let archive = try survey(.externalData) { manifest.files.append(archive.file(.externalData, of: id)) }
    return manifest
  }

  /// The page size of the database that the first block begins with; nil where that is none whose pages fill the content.
  private func pageSize(of id: BackupIdentifier) throws(BackupError) -> Int? {
    let file = file(.database, of: id)
    guard let reader = try MemberReader(file, content: content, in: place, section), let block = try reader.block(0),
      let pageSize = DatabaseHeader(Array(block.prefix(DatabaseHeader.length)))?.pageSize, pageSize > 0,
      contentBytes % Int64(pageSize) == 0
    else { return nil }
    return pageSize
  }
}
