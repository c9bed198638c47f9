/// Packs a gzip file piece by piece, as independent members of 1 MiB, so that a damaged one costs no other.
public struct GzipWriter {
  private static let block = 1 << 20
  private static let headerLength = 10
  private static let trailerLength = 8

  private let deflate: Deflate
  private var waiting: [UInt8] = []
  private var hasWritten = false

  /// A writer of a level from 1 to 12.
  ///
  /// - Throws: ``ArchiveError`` where memory is short.
  public init(level: Int = 6) throws(ArchiveError) {
    guard let deflate = Deflate(level: level) else { throw Self.memory }
    self.deflate = deflate
  }

  /// Adds a piece, and gives what of the file is ready.
  public mutating func write(_ bytes: some Collection<UInt8>) throws(ArchiveError) -> [UInt8] {
    waiting += bytes
    var packed: [UInt8] = []
    var position = 0
    while waiting.count - position >= Self.block {
      packed += try member(Array(waiting[position..<(position + Self.block)]))
      position += Self.block
    }
    if position > 0 { waiting.removeFirst(position) }
    return packed
  }

  /// The file's end.
  public mutating func finish() throws(ArchiveError) -> [UInt8] {
    hasWritten && waiting.isEmpty ? [] : try member(waiting)
  }

  private static let memory = ArchiveError(.memory, "there is not enough memory to pack anything")

  private mutating func member(_ bytes: [UInt8]) throws(ArchiveError) -> [UInt8] {
    var member = deflate.pack(bytes, headerLength: Self.headerLength, trailerLength: Self.trailerLength)
    guard !member.isEmpty else { throw Self.memory }
    hasWritten = true
    // Magic, DEFLATE, no flags, no time, no flags of the packer, no system (RFC 1952).
    member.replaceSubrange(0..<Self.headerLength, with: [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
    let (sum, count) = (Deflate.crc32(bytes[...]), UInt32(truncatingIfNeeded: bytes.count))
    for index in 0..<4 {
      member[member.count - 8 + index] = UInt8(truncatingIfNeeded: sum >> UInt32(8 * index))
      member[member.count - 4 + index] = UInt8(truncatingIfNeeded: count >> UInt32(8 * index))
    }
    return member
  }
}
