internal import Dispatch
internal import Foundation

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
  /// - Throws: ``ArchiveError`` without memory.
  public init(level: Int = 6) throws(ArchiveError) {
    guard Deflate(level: level) != nil else { throw Self.memory }
    self.level = level
  }

  /// Adds a piece and returns the finished bytes.
  public mutating func write(_ bytes: some Collection<UInt8>) throws(ArchiveError) -> [UInt8] {
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
  public mutating func finish() throws(ArchiveError) -> [UInt8] {
    hasWritten && waiting.isEmpty ? [] : try members(waiting[...])
  }

  private static let memory = ArchiveError(.memory, "there is not enough memory to pack anything")

  /// Packs bytes as members of 1 MiB; no bytes give one empty member.
  private mutating func members(_ bytes: ArraySlice<UInt8>) throws(ArchiveError) -> [UInt8] {
    let blocks = stride(from: bytes.startIndex, to: max(bytes.endIndex, bytes.startIndex + 1), by: Self.block).map {
      Array(bytes[$0..<min(bytes.endIndex, $0 + Self.block)])
    }
    hasWritten = true
    guard blocks.count > 1 else { return try Self.member(blocks[0], level: level) }
    let packed = Mutex<[[UInt8]]>(Array(repeating: [], count: blocks.count))
    let failure = Mutex<ArchiveError?>(nil)
    DispatchQueue.concurrentPerform(iterations: blocks.count) { [level] index in
      do throws(ArchiveError) {
        let member = try Self.member(blocks[index], level: level)
        packed.withLock { $0[index] = member }
      } catch {
        failure.withLock { $0 = error }
      }
    }
    if let failure = failure.withLock({ $0 }) { throw failure }
    return packed.withLock { Array($0.joined()) }
  }

  private static func member(_ bytes: [UInt8], level: Int) throws(ArchiveError) -> [UInt8] {
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

/// A value behind a lock.
///
/// The standard library's type of this name requires newer systems; this one is a class and can be shared.
package final class Mutex<Value: ~Copyable>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  package init(_ value: consuming sending Value) {
    self.value = value
  }

  /// Runs `body` with exclusive access to the value; not reentrant.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
