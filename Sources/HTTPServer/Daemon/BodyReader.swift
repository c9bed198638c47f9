/// A response's body on its way out: pieces of whatever size the connection has room for.
final class BodyReader {
  private enum Source {
    case ranges(any RangeReadable)
    case chunks(ChunkSource)
  }

  private let source: Source
  private var waiting: ArraySlice<UInt8> = []

  init(_ bytes: any RangeReadable) { source = .ranges(bytes) }

  init(_ chunks: ChunkSource) { source = .chunks(chunks) }

  /// The chunks, which can be cancelled.
  var chunks: ChunkSource? {
    guard case .chunks(let chunks) = source else { return nil }
    return chunks
  }

  /// Up to `room` bytes; nil at the end.
  func read(at offset: UInt64, room: Int) throws -> ArraySlice<UInt8>? {
    switch source {
    case .ranges(let bytes):
      guard let offset = Int64(exactly: offset), offset < bytes.count else { return nil }
      let piece = try bytes.read(at: offset, length: Int(min(Int64(room), bytes.count - offset)))
      // Fewer bytes than were promised: the file was cut meanwhile, and the client must not take it for whole.
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
