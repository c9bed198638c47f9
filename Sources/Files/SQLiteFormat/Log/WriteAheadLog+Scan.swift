internal import StoreFiles

extension WriteAheadLog {
  /// Walks over all frames once, in pieces of about 256 KiB.
  mutating func scan(_ header: Header) throws(FormatError) {
    guard let pageSize = header.pageSize, let frameLength else { return }
    let room = source.count - Int64(Header.length)
    // A frame's number has 32 bits in SQLite's own index.
    frameCount = Int(min(Int64(UInt32.max), room / Int64(frameLength)))
    if room % Int64(frameLength) != 0 { findings.note(.logPartialFrame) }
    guard header.isChecksumRight, header.version == 3_007_000 else { return }

    var chain = Chain(header: header)
    let start = try source.read(at: 0, length: 24)
    chain.checksum.add(start.span, bigEndian: header.isBigEndian)
    let framesPerPiece = max(1, 262_144 / frameLength)
    var piece: [UInt8] = []
    var isUnbroken = true
    while isUnbroken, validFrameCount < frameCount {
      let count = min(framesPerPiece, frameCount - validFrameCount)
      let offset = Int64(Header.length) + Int64(validFrameCount) * Int64(frameLength)
      try source.fill(&piece, at: offset, length: count * frameLength)
      let readable = piece.count / frameLength
      isUnbroken = readable == count
      var index = 0
      while index < readable {
        let start = index * frameLength
        if !add(piece.span.extracting(start..<(start + frameLength)), pageSize: pageSize, to: &chain) {
          isUnbroken = false
          break
        }
        index += 1
      }
    }
    try scanBehindEnd(header, frameLength: frameLength)
    let unfinished = uncommittedFrameCount + framesBehindBreak
    if commitsBehindBreak > 0 {
      findings.note(.logFrameChecksumWrong, found: Int64(validFrameCount + 1))
    } else if unfinished > 0 {
      findings.note(.logUncommittedFrames, found: Int64(unfinished))
    }
    if staleFrameCount > 0 { findings.note(.logStaleFrames, found: Int64(staleFrameCount)) }
  }

  /// What is carried from one frame to the next: the checksum so far, and the pages since the last commit.
  private struct Chain {
    let header: Header
    var checksum = LogChecksum()
    var transaction: [UInt32] = []
  }

  /// Takes the next frame; false where it does not continue the log.
  private mutating func add(_ frame: Span<UInt8>, pageSize: Int, to chain: inout Chain) -> Bool {
    guard let page = frame.uint32(at: 0), let size = frame.uint32(at: 4), page != 0,
      frame.uint32(at: 8) == chain.header.salt1, frame.uint32(at: 12) == chain.header.salt2
    else { return false }
    chain.checksum.add(frame.extracting(0..<8), bigEndian: chain.header.isBigEndian)
    chain.checksum.add(frame.extracting(24..<(24 + pageSize)), bigEndian: chain.header.isBigEndian)
    guard frame.uint32(at: 16) == chain.checksum.first, frame.uint32(at: 20) == chain.checksum.second else {
      return false
    }
    validFrameCount += 1
    chain.transaction.append(page)
    if size != 0 { commit(&chain.transaction, endingAt: validFrameCount, pageCount: size) }
    return true
  }

  private mutating func commit(_ transaction: inout [UInt32], endingAt frame: Int, pageCount size: UInt32) {
    let first = frame - transaction.count
    for (index, page) in transaction.enumerated() {
      frames[page] = UInt32(first + index + 1)
    }
    transaction.removeAll(keepingCapacity: true)
    committedFrameCount = frame
    commitCount += 1
    pageCount = size
  }

  /// Counts what lies behind the valid frames by the salts in its frame headers.
  private mutating func scanBehindEnd(_ header: Header, frameLength: Int) throws(FormatError) {
    var head: [UInt8] = []
    var frame = validFrameCount
    while frame < frameCount {
      let offset = Int64(Header.length) + Int64(frame) * Int64(frameLength)
      try source.fill(&head, at: offset, length: WriteAheadLog.frameHeaderLength)
      guard let page = head.span.uint32(at: 0), let size = head.span.uint32(at: 4),
        let salt1 = head.span.uint32(at: 8), let salt2 = head.span.uint32(at: 12)
      else { return }
      if salt1 == header.salt1 && salt2 == header.salt2 {
        framesBehindBreak += 1
        if size != 0 { commitsBehindBreak += 1 }
      } else if head[8...].allSatisfy({ $0 == 0 }) {
        if page != 0 { framesBehindBreak += 1 }
      } else {
        staleFrameCount += 1
      }
      frame += 1
    }
  }
}
