/// Reads an outgoing body in pieces that fit the connection's buffer.
final class BodyReader {
  private enum Source {
    case ranges(any RangeReadable)
    case chunks(ChunkSource)
  }

  private let source: Source
  private var waiting: ArraySlice<UInt8> = []

  init(_ bytes: any RangeReadable) { source = .ranges(bytes) }

  init(_ chunks: ChunkSource) { source = .chunks(chunks) }

  var chunks: ChunkSource? {
    guard case .chunks(let chunks) = source else { return nil }
    return chunks
  }

  /// Reads up to `room` bytes; nil at the end.
  func read(at offset: UInt64, room: Int) throws -> ArraySlice<UInt8>? {
    switch source {
    case .ranges(let bytes):
      guard let offset = Int64(exactly: offset), offset < bytes.count else { return nil }
      let piece = try bytes.read(at: offset, length: Int(min(Int64(room), bytes.count - offset)))
      // A truncated file must not pass for complete.
      guard !piece.isEmpty else { throw CutShort() }
      return piece[...]
    case .chunks(let chunks):
      if waiting.isEmpty {
        guard let chunk = try chunks.next() else { return nil }
        waiting = chunk[...]
      }
      let piece = waiting.prefix(room)
      waiting = waiting.dropFirst(room)
      return piece
    }
  }

  private struct CutShort: Error {}
}
