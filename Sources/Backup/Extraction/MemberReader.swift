import Platform

/// Reads a packed file by blocks and detects damage.
struct MemberReader: Sendable {
  let place: any BackupPlace
  let section: BackupSection
  let file: BackupManifest.File
  let content: BackupManifest.Content

  private var offsets: [Int64] = []

  /// Members at unexpected offsets.
  private let found: FoundMembers

  /// Fails for an unpacked file.
  ///
  /// - Throws: `compression-unavailable`.
  init?(
    _ file: BackupManifest.File, of manifest: BackupManifest?, in place: any BackupPlace, _ section: BackupSection
  ) throws {
    guard let members = file.members, let content = file.content ?? manifest?.database else { return nil }
    try file.packing.requireAvailable(to: "unpack the backup", file: file.name)
    self.place = place
    self.section = section
    found = FoundMembers(in: file.name, packedBy: file.packing, of: place, section)
    self.file = file
    self.content = content
    var offset: Int64 = 0
    for member in members {
      offsets.append(offset)
      offset += Int64(member)
    }
  }

  var blockCount: Int { content.blocks.count }

  func length(of block: Int) -> Int {
    let length = Int64(BackupManifest.blockLength)
    return Int(max(0, min(length, content.bytes - Int64(block) * length)))
  }

  /// Reads a block's member; shorter if truncated, nil if missing.
  func member(_ block: Int) throws -> [UInt8]? {
    guard let members = file.members, members.indices.contains(block) else { return nil }
    // A rebuilt manifest may give one member the size of several.
    let length = min(members[block], BackupManifest.longestMember)
    return try place.readIfThere(file.name, in: section, at: offsets[block], length: length)
  }

  /// Unpacks a block, unless it is damaged or missing.
  ///
  /// - Throws: the place's read errors, which are not damage.
  func block(_ block: Int) throws -> [UInt8]? {
    guard let member = try member(block) else { return nil }
    if let bytes = unpack(member, block) { return bytes }
    guard let length = file.members?[block] else { return nil }
    // An altered encrypted chunk may span two blocks; the digest shows the intact one.
    if content.blocks.indices.contains(block), !content.blocks[block].isEmpty {
      let unproven = try place.readUnproven(
        file.name, in: section, at: offsets[block], length: min(length, BackupManifest.longestMember))
      if unproven != member, let bytes = unpack(unproven, block) { return bytes }
    }
    for offset in try found.places(of: block) where offset != offsets[block] {
      let member = try place.read(file.name, in: section, at: offset, length: min(length, BackupManifest.longestMember))
      let bytes = unpack(member, block)
      if let bytes { return bytes }
    }
    return nil
  }

  /// Unpacks a member, unless it differs from the packed block.
  func unpack(_ member: [UInt8], _ block: Int) -> [UInt8]? {
    guard content.blocks.indices.contains(block),
      let bytes = file.packing.unpack(member: member, count: length(of: block))
    else { return nil }
    let digest = content.blocks[block]
    if digest.isEmpty {
      // Without a manifest, its checksum and number must do.
      return file.packing.memberHeader(member[...])?.number == block ? bytes : nil
    }
    return FileDigest(of: bytes).hexadecimal == digest ? bytes : nil
  }
}

/// The members found by their headers, for a file with parts cut out or inserted.
///
/// The file is searched once, on the first missing member.
final class FoundMembers: Sendable {
  private let search: @Sendable () throws -> [Int: [Int64]]
  private let found = Mutex<[Int: [Int64]]?>(nil)

  /// The limit of offsets per number.
  private static let limit = 4

  init(in name: String, packedBy compression: BackupCompression, of place: any BackupPlace, _ section: BackupSection) {
    search = { try Self.search(name, compression, place, section) }
  }

  func places(of number: Int) throws -> [Int64] {
    if let known = found.withLock({ $0 }) { return known[number] ?? [] }
    let all = try search()
    found.withLock { $0 = all }
    return all[number] ?? []
  }

  private static func search(
    _ name: String, _ compression: BackupCompression, _ place: any BackupPlace, _ section: BackupSection
  ) throws -> [Int: [Int64]] {
    var result: [Int: [Int64]] = [:]
    let length = 1 << 20
    var offset: Int64 = 0
    while true {
      // Overlapping pieces keep headers whole.
      let bytes = try place.read(name, in: section, at: offset, length: length + compression.memberHeaderLength)
      for start in compression.memberStarts(in: bytes, before: length) {
        guard let header = compression.memberHeader(bytes[start...]) else { continue }
        if (result[header.number]?.count ?? 0) < limit {
          result[header.number, default: []].append(offset + Int64(start))
        }
      }
      if bytes.count <= length { return result }
      offset += Int64(length)
    }
  }
}
