/// Digests of records that seem to be deleted, so that those which are live after all can be struck out.
struct DeletedDigests {
  /// How many are kept at most; each takes 16 bytes.
  static let limit = 1 << 20

  private var digests: Set<UInt64> = []
  private var struck: Set<UInt64> = []

  mutating func add(_ digest: UInt64) {
    if digests.count < Self.limit { digests.insert(digest) }
  }

  /// Strikes a live row out.
  mutating func strike(_ bytes: Span<UInt8>, from start: Int, length: Int) {
    guard !digests.isEmpty else { return }
    let digest = Self.digest(bytes, from: start, length: length)
    if digests.contains(digest) { struck.insert(digest) }
  }

  /// Whether a live row has the digest.
  func isStruck(_ digest: UInt64) -> Bool { struck.contains(digest) }

  /// A digest of a record's bytes (FNV-1a, 64 bits), the rowid not among them.
  static func digest(_ bytes: Span<UInt8>, from start: Int, length: Int) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    var index = start
    let end = min(bytes.count, start &+ length)
    while index < end {
      hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01b3
      index &+= 1
    }
    return hash
  }
}
