import Platform

/// How the blocks of a backup's files are packed.
package enum BackupCompression: String, Sendable, Hashable, Codable, CaseIterable {
  /// Gzip (RFC 1952): a member for each block. Every gunzip opens it; the usual one.
  case gzip

  /// Zstandard (RFC 8878) in its seekable format: a frame for each block. Every zstd opens it.
  ///
  /// It needs libzstd, which the command `lazaret` brings and the library does not.
  case zstd

  /// The level that is used where none is said.
  package var usualLevel: Int {
    switch self {
    case .gzip: 6
    case .zstd: 3
    }
  }

  /// The levels there are, in words.
  package var levelWords: String {
    switch self {
    case .gzip: "1, 6 or 9"
    case .zstd: "1 to 19"
    }
  }

  /// Whether there is such a level.
  package func has(level: Int) -> Bool {
    switch self {
    case .gzip: [1, 6, 9].contains(level)
    case .zstd: (1...19).contains(level)
    }
  }

  /// Whether this process can pack and unpack so.
  package var isAvailable: Bool { self == .gzip || ZstandardSupport.current != nil }

  /// What the name of a packed file ends in.
  var fileEnding: String {
    switch self {
    case .gzip: ".gz"
    case .zstd: ".zst"
    }
  }
}

// MARK: - Members

extension BackupCompression {
  /// Where members may begin, as far as the first two bytes tell.
  func memberStarts(in bytes: [UInt8], before end: Int) -> [Int] {
    let (first, second): (UInt8, UInt8) =
      switch self {
      case .gzip: (0x1f, 0x8b)
      case .zstd: (ZstandardMember.magic[0], ZstandardMember.magic[1])
      }
    let span = bytes.span
    var starts: [Int] = []
    var index = 0
    while index < min(end, span.count - 1) {
      if span[index] == first, span[index + 1] == second { starts.append(index) }
      index += 1
    }
    return starts
  }

  /// The bytes at the beginning of a member that say which block it is.
  var memberHeaderLength: Int {
    switch self {
    case .gzip: GzipMember.headerLength
    case .zstd: ZstandardMember.headerLength
    }
  }

  /// Fewer bytes than any member has.
  var leastMemberLength: Int {
    switch self {
    case .gzip: GzipMember.headerLength + GzipMember.trailerLength
    case .zstd: ZstandardMember.headerLength + 8
    }
  }

  /// What a member's header says of it; nil where it is none of ours.
  func memberHeader(_ bytes: ArraySlice<UInt8>) -> GzipMember.Header? {
    switch self {
    case .gzip: GzipMember.Header(bytes)
    case .zstd: ZstandardMember.header(bytes)
    }
  }

  /// What stands behind the last member: the copy of the manifest, and what other programs need.
  ///
  /// - Parameters:
  ///   - file: the file as the manifest names it.
  ///   - content: the bytes that its members unpack to.
  ///   - manifest: the text of the manifest; nil where the file has no copy of it.
  func tail(of file: BackupManifest.File, content: Int64, manifest: [UInt8]?) -> [UInt8] {
    let copy = manifest.map { ManifestCopy.members(of: $0, packedBy: self) } ?? []
    switch self {
    case .gzip: return copy
    case .zstd:
      let parts = manifest.map { ManifestCopy.memberLengths(of: $0.count, packedBy: self) } ?? []
      return copy + ZstandardMember.seekTable(members: file.members ?? [], content: content, empty: parts)
    }
  }

  /// The bytes behind the last member.
  ///
  /// - Parameters:
  ///   - members: how many members the file has.
  ///   - manifest: the bytes of the manifest's text; nil where the file has no copy of it.
  func tailLength(members: Int, manifest: Int?) -> Int64 {
    let copy = manifest.map { ManifestCopy.length(of: $0, packedBy: self) } ?? 0
    switch self {
    case .gzip: return Int64(copy)
    case .zstd:
      let parts = manifest.map { ManifestCopy.parts(of: $0) } ?? 0
      return Int64(copy) + ZstandardMember.seekTableLength(members: members, empty: parts)
    }
  }

  /// Unpacks a member; nil where it is damaged, or does not unpack to so many bytes.
  func unpack(member: [UInt8], count: Int) -> [UInt8]? {
    switch self {
    case .gzip: Inflate.unpack(member: member, count: count)
    case .zstd: ZstandardMember.unpack(member, count: count)
    }
  }

  /// Whether a member that was just packed unpacks to so many bytes and its checksum is right.
  func unpacks(member: [UInt8], count: Int) -> Bool {
    switch self {
    case .gzip: Deflate.unpacks(member: member, count: count)
    case .zstd: ZstandardMember.unpack(member, count: count) != nil
    }
  }

  /// What packs blocks on one thread.
  ///
  /// - Throws: `backup-packing` where memory is short, `compression-unavailable`.
  func packer(level: Int) throws(BackupError) -> MemberPacker {
    switch self {
    case .gzip:
      let packers = Deflate.levels(likeGzip: level).compactMap { Deflate(level: $0) }
      guard !packers.isEmpty else { throw .memory() }
      return { (block, number) throws(BackupError) in
        // The same block is packed alike each time: which packer it is rests on its number.
        try GzipMember.pack(block, number: number, with: packers[number % packers.count])
      }
    case .zstd:
      guard let frames = ZstandardSupport.current else { throw .unavailable(self, "pack the backup") }
      guard let packer = frames.packer(level: level) else { throw .memory() }
      return { (block, number) throws(BackupError) in try ZstandardMember.pack(block, number: number, with: packer) }
    }
  }

  /// Refuses what this process cannot do.
  ///
  /// - Throws: `compression-unavailable`.
  func requireAvailable(to operation: String, file: String? = nil) throws(BackupError) {
    guard isAvailable else { throw .unavailable(self, operation, file: file) }
  }
}

/// Makes a member of a block and its number, counted from 0.
typealias MemberPacker = (_ block: [UInt8], _ number: Int) throws(BackupError) -> [UInt8]

extension BackupError {
  /// This build does not have that compression.
  static func unavailable(
    _ compression: BackupCompression, _ operation: String, file: String? = nil
  ) -> BackupError {
    let subject =
      file.map { "\(printable($0)) is packed with \(compression.rawValue), which" } ?? "\(compression.rawValue)"
    return BackupError(
      .compressionUnavailable, operation: operation, detail: "\(subject) this build does not have")
  }
}
