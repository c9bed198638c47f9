internal import SQLiteFormat
internal import StoreFiles

/// Reads a write-ahead log as far as it makes sense, and not only as far as its chain of checksums is whole.
///
/// Each frame keeps the checksum up to its end, so a frame can be proved by the one before it, whatever happened to the
/// frames before that or to the header. A frame that is not proved, and those behind it, are used and marked.
struct LogSurvey {
  private let source: any ByteSource
  private let pageSize: Int
  private var isBigEndian = false
  private var salts: (UInt32, UInt32)?
  private var start: LogChecksum?

  /// The newest frames of the log; nil where no frame of it is worth anything.
  static func read(_ source: any ByteSource, pageSize: Int?) throws(SalvageError) -> PageOverlay? {
    let bytes = try source.piece(at: 0, length: WriteAheadLog.Header.length)
    let header = WriteAheadLog.Header(bytes).flatMap { $0.isChecksumRight && $0.pageSize != nil ? $0 : nil }
    guard let size = header?.pageSize ?? pageSize else { return nil }
    var survey = LogSurvey(source: source, pageSize: size)
    if let header {
      survey.isBigEndian = header.isBigEndian
      survey.salts = (header.salt1, header.salt2)
      var checksum = LogChecksum()
      checksum.add(bytes.span.extracting(0..<24), bigEndian: header.isBigEndian)
      survey.start = checksum
    } else {
      guard try survey.learnFromFrames() else { return nil }
    }
    return try survey.overlay(hasHeader: header != nil)
  }

  private var frameLength: Int { pageSize + WriteAheadLog.frameHeaderLength }
  private var frameCount: Int {
    Int(max(0, source.count - Int64(WriteAheadLog.Header.length)) / Int64(frameLength))
  }

  private func offset(ofFrame index: Int) -> Int64 {
    Int64(WriteAheadLog.Header.length) + Int64(index) * Int64(frameLength)
  }

  /// Finds salts and byte order in the frames themselves: those of the first frame that proves its successor.
  private mutating func learnFromFrames() throws(SalvageError) -> Bool {
    for index in 0..<min(64, max(0, frameCount - 1)) {
      let pair = try source.piece(at: offset(ofFrame: index), length: 2 * frameLength)
      guard pair.count == 2 * frameLength else { return false }
      let first = Frame(pair.span.extracting(0..<frameLength))
      let second = pair.span.extracting(frameLength..<(2 * frameLength))
      for bigEndian in [false, true] where first.checksum(adding: second, bigEndian: bigEndian) == Frame(second).stored
      {
        isBigEndian = bigEndian
        salts = (first.salt1, first.salt2)
        return true
      }
    }
    // A single frame cannot be proved, but its salts and its page may still be right.
    guard frameCount == 1 else { return false }
    let only = try source.piece(at: offset(ofFrame: 0), length: frameLength)
    let frame = Frame(only.span)
    guard frame.page > 0, frame.page == frame.pageCount || frame.pageCount > 0, frame.page < 1 << 24 else {
      return false
    }
    salts = (frame.salt1, frame.salt2)
    return true
  }

  private func overlay(hasHeader: Bool) throws(SalvageError) -> PageOverlay? {
    guard let salts else { return nil }
    var overlay = PageOverlay(source: .log, pageSize: pageSize)
    var buffer = [UInt8](repeating: 0, count: frameLength)
    var previous = start
    var transaction: [(page: UInt32, image: PageOverlay.Image)] = []
    var isBroken = !hasHeader
    var foreignRun = 0
    for index in 0..<frameCount {
      let place = offset(ofFrame: index)
      guard try source.piece(at: place, length: frameLength, into: &buffer) == frameLength else { break }
      let frame = Frame(buffer.span)
      guard frame.salt1 == salts.0, frame.salt2 == salts.1, frame.page > 0 else {
        // Left from before the log was restarted, or a frame whose header is hit: the next ones tell.
        previous = frame.stored
        foreignRun += 1
        if foreignRun >= 8 { break }
        isBroken = true
        continue
      }
      let isProved = previous.map { known in
        Frame.checksum(known, adding: buffer.span, bigEndian: isBigEndian) == frame.stored
      }
      // The first frame behind a lost header cannot be proved; the second one proves that it is the first's successor.
      if isProved == false { isBroken = true }
      foreignRun = 0
      previous = frame.stored
      let image = PageOverlay.Image(
        offset: place + Int64(WriteAheadLog.frameHeaderLength), number: index + 1, isDoubtful: isBroken)
      transaction.append((frame.page, image))
      guard frame.pageCount > 0 else { continue }
      for (page, image) in transaction {
        if overlay.images.updateValue(image, forKey: page) != nil { overlay.supersededCount += 1 }
      }
      transaction.removeAll(keepingCapacity: true)
      overlay.pageCount = frame.pageCount
    }
    overlay.uncommittedCount = transaction.count
    for (page, image) in transaction { overlay.uncommitted[page] = image }
    overlay.doubtfulCount = overlay.images.values.count { $0.isDoubtful }
    if !hasHeader { overlay.remarks.append("the header of the write-ahead log is destroyed") }
    if hasHeader, overlay.doubtfulCount > 0 {
      overlay.remarks.append("the write-ahead log has a bad frame, behind which SQLite reads nothing")
    }
    if overlay.uncommittedCount > 0 {
      overlay.remarks.append("the write-ahead log ends with a transaction that is not whole")
    }
    if try isCutOff(salts) {
      overlay.isCutOff = true
      overlay.remarks.append("the write-ahead log is cut off in the middle of a frame")
    }
    return overlay.images.isEmpty && overlay.uncommittedCount == 0 ? nil : overlay
  }

  /// Whether a frame of this log begins behind the last whole one.
  private func isCutOff(_ salts: (UInt32, UInt32)) throws(SalvageError) -> Bool {
    let rest = try source.piece(at: offset(ofFrame: frameCount), length: WriteAheadLog.frameHeaderLength)
    guard rest.count >= 16 else { return false }
    let frame = Frame(rest.span)
    return frame.page > 0 && frame.salt1 == salts.0 && frame.salt2 == salts.1
  }
}

extension LogSurvey {
  /// The header of a frame.
  private struct Frame {
    var page: UInt32
    var pageCount: UInt32
    var salt1: UInt32
    var salt2: UInt32
    var stored: LogChecksum

    init(_ bytes: Span<UInt8>) {
      page = bytes.uint32(at: 0) ?? 0
      pageCount = bytes.uint32(at: 4) ?? 0
      salt1 = bytes.uint32(at: 8) ?? 0
      salt2 = bytes.uint32(at: 12) ?? 0
      stored = LogChecksum()
      stored.first = bytes.uint32(at: 16) ?? 0
      stored.second = bytes.uint32(at: 20) ?? 0
    }

    func checksum(adding next: Span<UInt8>, bigEndian: Bool) -> LogChecksum {
      Frame.checksum(stored, adding: next, bigEndian: bigEndian)
    }

    static func checksum(_ known: LogChecksum, adding next: Span<UInt8>, bigEndian: Bool) -> LogChecksum {
      var checksum = known
      checksum.add(next.extracting(0..<8), bigEndian: bigEndian)
      checksum.add(next.extracting(WriteAheadLog.frameHeaderLength..<next.count), bigEndian: bigEndian)
      return checksum
    }
  }
}
