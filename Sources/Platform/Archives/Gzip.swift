internal import CZlib
internal import Dispatch

/// Unpacks a gzip file of any number of members, piece by piece.
///
/// The only caller of zlib in this module.
@safe public struct GzipReader: ~Copyable {
  private let stream: UnsafeMutablePointer<z_stream>
  private let limits: UnpackingLimits
  private var taken: Int64 = 0
  private var made: Int64 = 0
  private var isWithinMember = false
  private var members = 0
  private var hasEnded = false
  private let ignoresRest: Bool
  private var buffer = [UInt8](repeating: 0, count: 128 << 10)

  /// Makes a reader.
  ///
  /// - Parameter ignoresRest: whether bytes after the last member, such as padding, are ignored.
  /// - Throws: ``FileError`` without memory.
  public init(limits: UnpackingLimits = UnpackingLimits(), ignoringRest ignoresRest: Bool = false) throws(FileError) {
    self.limits = limits
    self.ignoresRest = ignoresRest
    unsafe stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    // The window's size plus 16: gzip format only.
    let status = unsafe inflateInit2_(stream, 16 + MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { throw FileError.noMemory("there is not enough memory to unpack anything") }
  }

  deinit {
    unsafe inflateEnd(stream)
    unsafe stream.deinitialize(count: 1)
    unsafe stream.deallocate()
  }

  /// Whether the first bytes are those of a gzip file.
  public static func isGzip(_ bytes: some Collection<UInt8>) -> Bool { bytes.starts(with: [0x1f, 0x8b]) }

  /// Adds a piece and hands over the content in pieces of at most 128 KiB.
  public mutating func read(_ bytes: [UInt8], visit: (ArraySlice<UInt8>) throws -> Void) throws {
    taken += Int64(bytes.count)
    var input = bytes
    var position = 0
    while position < input.count, !hasEnded {
      if ignoresRest, members > 0, !isWithinMember, input[position] != 0x1f {
        hasEnded = true
        return
      }
      let (status, used, count) = step(&input, from: position)
      position += used
      isWithinMember = status != Z_STREAM_END
      guard status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR else {
        throw FileError(
          .gzipDamaged, "the packed bytes are damaged \(taken - Int64(input.count - position)) bytes from the start")
      }
      made += Int64(count)
      try limits.check(made: made, of: taken)
      if count > 0 { try visit(buffer[..<count]) }
      if status == Z_STREAM_END { endMember() }
      // No progress: more input is needed.
      if used == 0, count == 0 { break }
    }
    // zlib's buffer drains without new input.
    while isWithinMember {
      let (status, _, count) = step(&input, from: input.count)
      if status == Z_STREAM_END { endMember() }
      guard count > 0 else { break }
      made += Int64(count)
      try limits.check(made: made, of: taken)
      try visit(buffer[..<count])
    }
  }

  /// Checks that the last member is complete.
  public consuming func finish() throws(FileError) {
    guard taken > 0, !isWithinMember else { throw FileError(.archiveCutOff, "the packed bytes end too early") }
  }

  private mutating func endMember() {
    isWithinMember = false
    members += 1
    unsafe inflateReset(stream)
  }

  private mutating func step(_ input: inout [UInt8], from position: Int) -> (status: Int32, used: Int, count: Int) {
    let rest = input.count - position
    return unsafe input.withUnsafeMutableBufferPointer { source in
      unsafe buffer.withUnsafeMutableBufferPointer { target in
        unsafe stream.pointee.next_in = source.baseAddress?.advanced(by: position)
        unsafe stream.pointee.avail_in = UInt32(clamping: rest)
        unsafe stream.pointee.next_out = target.baseAddress
        unsafe stream.pointee.avail_out = UInt32(clamping: target.count)
        let status = unsafe inflate(stream, Z_NO_FLUSH)
        return unsafe (status, rest - Int(stream.pointee.avail_in), target.count - Int(stream.pointee.avail_out))
      }
    }
  }
}

/// The bounds of unpacking, against decompression bombs.
public struct UnpackingLimits: Sendable, Hashable {
  /// The most bytes in all.
  public var bytes: Int64

  /// The most bytes per packed byte, beyond 64 MiB of output.
  ///
  /// DEFLATE's maximum is 1,032; pages of zeros come near it.
  public var ratio: Int64

  /// The most files and folders.
  public var entries: Int

  /// Makes limits.
  public init(bytes: Int64 = 8 << 30, ratio: Int64 = 400, entries: Int = 100_000) {
    self.bytes = bytes
    self.ratio = ratio
    self.entries = entries
  }

  func check(made: Int64, of taken: Int64) throws(FileError) {
    guard made <= bytes else { throw FileError(.archiveTooLarge, "it unpacks to more than \(bytes) bytes") }
    guard made <= 64 << 20 || made / ratio <= taken else {
      throw FileError(.archiveTooLarge, "it unpacks to more than \(ratio) times its size")
    }
  }
}

/// Packs a gzip file piece by piece, as independent members of 1 MiB to confine damage; several at once on all
/// processors.
public struct GzipWriter {
  private static let block = 1 << 20
  private static let headerLength = 10
  private static let trailerLength = 8

  private static let blocksAtOnce = 4

  private let level: Int
  private var waiting: [UInt8] = []
  private var hasWritten = false

  /// Makes a writer of level 1 to 12.
  ///
  /// - Throws: ``FileError`` without memory.
  public init(level: Int = 6) throws(FileError) {
    guard Deflate(level: level) != nil else { throw Self.memory }
    self.level = level
  }

  /// Adds a piece and returns the finished bytes.
  public mutating func write(_ bytes: some Collection<UInt8>) throws(FileError) -> [UInt8] {
    waiting += bytes
    let batch = Self.blocksAtOnce * Self.block
    guard waiting.count >= batch else { return [] }
    var packed: [UInt8] = []
    var position = 0
    while waiting.count - position >= batch {
      packed += try members(waiting[position..<(position + batch)])
      position += batch
    }
    waiting.removeFirst(position)
    return packed
  }

  /// Returns the end of the file.
  public mutating func finish() throws(FileError) -> [UInt8] {
    hasWritten && waiting.isEmpty ? [] : try members(waiting[...])
  }

  private static let memory = FileError.noMemory("there is not enough memory to pack anything")

  /// Packs bytes as members of 1 MiB; no bytes give one empty member.
  private mutating func members(_ bytes: ArraySlice<UInt8>) throws(FileError) -> [UInt8] {
    let blocks = stride(from: bytes.startIndex, to: max(bytes.endIndex, bytes.startIndex + 1), by: Self.block).map {
      Array(bytes[$0..<min(bytes.endIndex, $0 + Self.block)])
    }
    hasWritten = true
    guard blocks.count > 1 else { return try Self.member(blocks[0], level: level) }
    let packed = Mutex<[[UInt8]]>(Array(repeating: [], count: blocks.count))
    let failure = Mutex<FileError?>(nil)
    DispatchQueue.concurrentPerform(iterations: blocks.count) { [level] index in
      do throws(FileError) {
        let member = try Self.member(blocks[index], level: level)
        packed.withLock { $0[index] = member }
      } catch { failure.withLock { $0 = error } }
    }
    if let failure = failure.withLock({ $0 }) { throw failure }
    return packed.withLock { Array($0.joined()) }
  }

  private static func member(_ bytes: [UInt8], level: Int) throws(FileError) -> [UInt8] {
    guard let deflate = Deflate(level: level) else { throw Self.memory }
    var member = deflate.pack(bytes, headerLength: headerLength, trailerLength: trailerLength)
    guard !member.isEmpty else { throw Self.memory }
    // Magic, DEFLATE, no flags, no time, no extra flags, unknown system (RFC 1952).
    member.replaceSubrange(0..<headerLength, with: [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
    let (sum, count) = (Deflate.crc32(bytes[...]), UInt32(truncatingIfNeeded: bytes.count))
    for index in 0..<4 {
      member[member.count - 8 + index] = UInt8(truncatingIfNeeded: sum >> UInt32(8 * index))
      member[member.count - 4 + index] = UInt8(truncatingIfNeeded: count >> UInt32(8 * index))
    }
    return member
  }
}

extension FileError {
  fileprivate static func noMemory(_ detail: String) -> FileError {
    FileError(
      .outOfMemory, operation: "read the archive", detail: detail,
      hint: "Free some memory and run the same command again; nothing was lost.")
  }
}
