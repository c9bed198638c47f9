import Platform

/// The compression of a backup's blocks.
package enum BackupCompression: String, Sendable, Hashable, Codable, CaseIterable {
  /// The default (RFC 1952): a member for each block, readable by any gunzip.
  case gzip

  /// The seekable format (RFC 8878): a frame for each block, readable by any zstd.
  ///
  /// Its libzstd is part of the command `lazaret`, not of the library.
  case zstd

  var usualLevel: Int {
    switch self {
    case .gzip: 6
    case .zstd: 3
    }
  }

  var levelWords: String {
    switch self {
    case .gzip: "1, 6 or 9"
    case .zstd: "1 to 19"
    }
  }

  package func has(level: Int) -> Bool {
    switch self {
    case .gzip: [1, 6, 9].contains(level)
    case .zstd: (1...19).contains(level)
    }
  }

  package var isAvailable: Bool { self == .gzip || ZstandardSupport.current != nil }

  var fileEnding: String {
    switch self {
    case .gzip: ".gz"
    case .zstd: ".zst"
    }
  }
}

// MARK: - Members

extension BackupCompression {
  /// Returns possible starts of members, by two bytes.
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

  /// The size of a header with the block's number.
  var memberHeaderLength: Int {
    switch self {
    case .gzip: GzipMember.headerLength
    case .zstd: ZstandardMember.headerLength
    }
  }

  /// A lower bound.
  var leastMemberLength: Int {
    switch self {
    case .gzip: GzipMember.headerLength + GzipMember.trailerLength
    case .zstd: ZstandardMember.headerLength + 8
    }
  }

  func memberHeader(_ bytes: ArraySlice<UInt8>) -> GzipMember.Header? {
    switch self {
    case .gzip: GzipMember.Header(bytes)
    case .zstd: ZstandardMember.header(bytes)
    }
  }

  /// Makes the tail after the blocks: manifest copy, and data for other programs.
  ///
  /// - Parameters:
  ///   - content: the unpacked size.
  ///   - manifest: the manifest's text, if it has a copy.
  func tail(of file: BackupManifest.File, content: Int64, manifest: [UInt8]?) -> [UInt8] {
    let copy = manifest.map { ManifestCopy.members(of: $0, packedBy: self) } ?? []
    switch self {
    case .gzip: return copy
    case .zstd:
      let parts = manifest.map { ManifestCopy.memberLengths(of: $0.count, packedBy: self) } ?? []
      return copy + ZstandardMember.seekTable(members: file.members ?? [], content: content, empty: parts)
    }
  }

  /// Returns the tail's size.
  ///
  /// - Parameters:
  ///   - members: the number of members.
  ///   - manifest: the length of the manifest's text, if it has a copy.
  func tailLength(members: Int, manifest: Int?) -> Int64 {
    let copy = manifest.map { ManifestCopy.length(of: $0, packedBy: self) } ?? 0
    switch self {
    case .gzip: return Int64(copy)
    case .zstd:
      let parts = manifest.map { ManifestCopy.parts(of: $0) } ?? 0
      return Int64(copy) + ZstandardMember.seekTableLength(members: members, empty: parts)
    }
  }

  /// Unpacks a member, unless damaged or of another size.
  func unpack(member: [UInt8], count: Int) -> [UInt8]? {
    switch self {
    case .gzip: Inflate.unpack(member: member, count: count)
    case .zstd: ZstandardMember.unpack(member, count: count)
    }
  }

  func unpacks(member: [UInt8], count: Int) -> Bool {
    switch self {
    case .gzip: Deflate.unpacks(member: member, count: count)
    case .zstd: ZstandardMember.unpack(member, count: count) != nil
    }
  }

  /// Returns a packer for one thread.
  ///
  /// - Throws: `backup-packing` if memory is short, `compression-unavailable`.
  func packer(level: Int) throws -> MemberPacker {
    switch self {
    case .gzip:
      let packers = Deflate.levels(likeGzip: level).compactMap { Deflate(level: $0) }
      guard !packers.isEmpty else { throw BackupError.memory() }
      return { block, number in
        // The packer depends only on the block's number, so that output is reproducible.
        try GzipMember.pack(block, number: number, with: packers[number % packers.count])
      }
    case .zstd:
      guard let frames = ZstandardSupport.current else { throw BackupError.unavailable(self, "pack the backup") }
      guard let packer = frames.packer(level: level) else { throw BackupError.memory() }
      return { block, number in try ZstandardMember.pack(block, number: number, with: packer) }
    }
  }

  /// - Throws: `compression-unavailable`.
  func requireAvailable(to operation: String, file: String? = nil) throws {
    guard isAvailable else { throw BackupError.unavailable(self, operation, file: file) }
  }
}

/// Packs a block with its number, from 0.
typealias MemberPacker = (_ block: [UInt8], _ number: Int) throws -> [UInt8]

extension BackupError {
  static func unavailable(
    _ compression: BackupCompression, _ operation: String, file: String? = nil
  ) -> BackupError {
    let subject =
      file.map { "\(printable($0)) is packed with \(compression.rawValue), which" } ?? "\(compression.rawValue)"
    return BackupError(
      .compressionUnavailable, operation: operation, detail: "\(subject) this build does not have")
  }
}
