internal import StoreFiles

extension WriteAheadLog {
  /// Walks over all frames once, in pieces of about 256 KiB.
  mutating func scan(_ header: Header) throws(FormatError) {
    guard let pageSize = header.pageSize, let frameLength else { return }
    let room = source.count - Int64(Header.length)
    // A frame's number has 32 bits in SQLite's own index.
    frameCount = Int(min(Int64(UInt32.max), room / Int64(frameLength)))
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
    let unknown = try scanBehindEnd(header, chain.checksum, frameLength: frameLength)
    if let unknown { try searchBehind(unknown, header, frameLength: frameLength) }
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
    let head = LogFrame(frame)
    let checksum = LogFrame.checksum(chain.checksum, adding: frame, bigEndian: chain.header.isBigEndian)
    guard head.page != 0, chain.header.hasSalts(of: head), checksum == head.checksum else { return false }
    chain.checksum = checksum
    validFrameCount += 1
    chain.transaction.append(head.page)
    if head.pageCount != 0 { commit(&chain.transaction, endingAt: validFrameCount, pageCount: head.pageCount) }
    return true
  }

  private mutating func commit(_ transaction: inout [UInt32], endingAt frame: Int, pageCount size: UInt32) {
    let first = frame - transaction.count
    for (index, page) in transaction.enumerated() {
      frames[page] = UInt32(first + index + 1)
      if page == 1, firstHeaderFrame == nil { firstHeaderFrame = first + index + 1 }
    }
    if commitCount == 0 { firstCommittedFrame = frame }
    transaction.removeAll(keepingCapacity: true)
    committedFrameCount = frame
    commitCount += 1
    pageCount = size
  }

  /// Counts what lies behind the valid frames, frame by frame; returns the offset of what is no frame, nil where all is.
  ///
  /// A frame is of this round by its salts or, where these alone are wrong, by the checksum that its predecessor's leads to.
  private mutating func scanBehindEnd(
    _ header: Header, _ checksum: LogChecksum, frameLength: Int
  ) throws(FormatError) -> Int64? {
    var bytes: [UInt8] = []
    var previous: LogChecksum? = checksum
    var isStale = false
    var offset = Int64(Header.length) + Int64(validFrameCount) * Int64(frameLength)
    while offset < source.count {
      let isWhole = offset + Int64(frameLength) <= source.count
      try source.fill(&bytes, at: offset, length: WriteAheadLog.frameHeaderLength)
      let frame = LogFrame(bytes.span)
      let isOwn = frame.page != 0 && header.hasSalts(of: frame)
      if !isOwn, isWhole, frame.page != 0, let known = previous {
        try source.fill(&bytes, at: offset, length: frameLength)
        if LogFrame.checksum(known, adding: bytes.span, bigEndian: header.isBigEndian) == frame.checksum {
          findings.note(.logFrameSaltsWrong)
          count(frame)
          previous = frame.checksum
          offset += Int64(frameLength)
          continue
        }
      }
      isStale = isOwn ? false : bytes.count < 16 ? isStale : header.isOfEarlierRound(frame)
      guard isWhole else {
        if !isStale { findings.note(.logPartialFrame) }
        return nil
      }
      if isOwn {
        count(frame)
      } else if frame.page != 0, frame.salt1 == 0, frame.salt2 == 0 {
        framesBehindBreak += 1
      } else if isStale {
        staleFrameCount += 1
      } else {
        return offset
      }
      previous = isOwn ? frame.checksum : nil
      offset += Int64(frameLength)
    }
    return nil
  }

  private mutating func count(_ frame: LogFrame) {
    framesBehindBreak += 1
    if frame.pageCount != 0 { commitsBehindBreak += 1 }
  }

  /// Looks for frames of this round behind bytes that are none, wherever they begin.
  private mutating func searchBehind(_ place: Int64, _ header: Header, frameLength: Int) throws(FormatError) {
    findings.note(.logUnknownBytes)
    var search = LogFrameSearch(source, salts: header.salts)
    // A frame before it may have lost bytes, so that the next one begins in it.
    var offset = max(Int64(Header.length), place - Int64(frameLength) + 1)
    while let found = try search.next(from: offset) {
      let bytes = try source.read(at: found, length: WriteAheadLog.frameHeaderLength)
      let frame = LogFrame(bytes.span)
      if frame.page != 0, found >= place || (found - Int64(Header.length)) % Int64(frameLength) != 0 { count(frame) }
      offset = found + Int64(frameLength)
    }
  }
}
