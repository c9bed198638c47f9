internal import Platform
internal import SQLiteFormat

/// Reads a write-ahead log beyond the first break in its checksums.
///
/// Each frame stores the running checksum, so its predecessor alone can verify it, at any offset. Unverified frames and
/// those after them are used, but marked.
struct LogSurvey {
  private let source: any ByteSource
  private let pageSize: Int
  private var isBigEndian = false
  private var salts: (UInt32, UInt32)
  private var start: LogChecksum?

  private var first: Int64

  private var hasHeader: Bool

  /// The bytes searched for the header or two consecutive frames.
  private static let searchLength: Int64 = 1 << 24

  /// The most candidate pairs, against hostile logs.
  private static let pairLimit = 4096

  static func read(_ source: any ByteSource, pageSize: Int?) throws -> PageOverlay? {
    if let survey = try byHeader(source) { return try survey.overlay() }
    guard let pageSize else { return nil }
    if let survey = try byPair(source, pageSize: pageSize) { return try survey.overlay() }
    return try alone(source, pageSize: pageSize)?.overlay()
  }

  private static func byHeader(_ source: any ByteSource) throws -> LogSurvey? {
    let bytes = try source.bytes(at: 0, length: Int(min(source.count, searchLength)))
    let length = WriteAheadLog.Header.length
    for place in stride(from: 0, through: bytes.count - length, by: 1) where bytes[place] == 0x37 {
      let head = Array(bytes[place..<(place + length)])
      guard let header = WriteAheadLog.Header(head), header.isChecksumRight, let size = header.pageSize else {
        continue
      }
      var checksum = LogChecksum()
      checksum.add(head.span.extracting(0..<24), bigEndian: header.isBigEndian)
      return LogSurvey(
        source: source, pageSize: size, isBigEndian: header.isBigEndian, salts: (header.salt1, header.salt2),
        start: checksum, first: Int64(place + length), hasHeader: place == 0)
    }
    return nil
  }

  /// Starts at the first verified pair of frames, at any offset.
  private static func byPair(_ source: any ByteSource, pageSize: Int) throws -> LogSurvey? {
    let length = pageSize + WriteAheadLog.frameHeaderLength
    let bytes = try source.bytes(at: 0, length: Int(min(source.count, searchLength)))
    var tried = 0
    for place in stride(from: 0, through: bytes.count - 2 * length, by: 1) {
      let own = bytes.span.extracting(place..<(place + length))
      let next = bytes.span.extracting((place + length)..<(place + 2 * length))
      guard own[8] == next[8], own[9] == next[9], own[15] == next[15] else { continue }
      let frame = LogFrame(own)
      let other = LogFrame(next)
      guard frame.page > 0, other.page > 0, frame.salt1 == other.salt1, frame.salt2 == other.salt2,
        frame.salt1 != 0 || frame.salt2 != 0
      else { continue }
      for bigEndian in [false, true]
      where LogFrame.checksum(frame.checksum, adding: next, bigEndian: bigEndian) == other.checksum {
        return LogSurvey(
          source: source, pageSize: pageSize, isBigEndian: bigEndian, salts: (frame.salt1, frame.salt2), start: nil,
          first: Int64(place), hasHeader: false)
      }
      tried += 1
      if tried == pairLimit { break }
    }
    return nil
  }

  /// Starts at the only frame, which is unverifiable.
  private static func alone(_ source: any ByteSource, pageSize: Int) throws -> LogSurvey? {
    let place = Int64(WriteAheadLog.Header.length)
    let length = Int64(pageSize + WriteAheadLog.frameHeaderLength)
    guard source.count >= place + length, source.count < place + 2 * length else { return nil }
    let bytes = try source.bytes(at: place, length: WriteAheadLog.frameHeaderLength)
    let frame = LogFrame(bytes.span)
    guard frame.page > 0, frame.pageCount > 0, frame.page < 1 << 24 else { return nil }
    return LogSurvey(
      source: source, pageSize: pageSize, salts: (frame.salt1, frame.salt2), start: nil, first: place, hasHeader: false)
  }

  private func overlay() throws -> PageOverlay? {
    let header = WriteAheadLog.Header(isBigEndian: isBigEndian, pageSize: pageSize, salt1: salts.0, salt2: salts.1)
    let length = pageSize + WriteAheadLog.frameHeaderLength
    var overlay = PageOverlay(source: .log, pageSize: pageSize)
    var search = LogFrameSearch(source, salts: header.salts)
    var buffer = [UInt8](repeating: 0, count: length)
    var previous = start
    var transaction: [(page: UInt32, image: PageOverlay.Image)] = []
    var isBroken = !hasHeader
    var wrongSalts = 0
    var place = first
    // The earliest offset of a misplaced next frame.
    var earliest = first
    // Whether only salts suggest a frame here.
    var isGuess = false
    var guesses = 0
    while place + Int64(WriteAheadLog.frameHeaderLength) <= source.count {
      let isWhole = try source.read(at: place, length: length, into: &buffer) == length
      let frame = LogFrame(buffer.span)
      var hasSalts = frame.page > 0 && header.hasSalts(of: frame)
      if !isWhole, hasSalts {
        overlay.isCutOff = true
        break
      }
      let isProved =
        isWhole
        ? previous.map { LogFrame.checksum($0, adding: buffer.span, bigEndian: isBigEndian) == frame.checksum } : nil
      if isGuess, isProved != true, try !isProof(frame, at: place) { hasSalts = false }
      guard hasSalts || frame.page > 0 && isProved == true else {
        if !isGuess, isWhole, header.isOfEarlierRound(frame) {
          previous = nil
          place += Int64(length)
          earliest = place
          continue
        }
        guard guesses < Self.pairLimit, let next = try search.next(from: earliest) else { break }
        isGuess = (next - place) % Int64(length) != 0
        if isGuess { guesses += 1 }
        // If the frame's head is damaged, its checksum may be intact.
        if next == place + Int64(length) { previous = frame.checksum }
        isBroken = true
        place = next
        earliest = next + 1
        continue
      }
      if !hasSalts { wrongSalts += 1 }
      // After a lost header, only the second frame can be verified.
      if isProved == false || !hasSalts { isBroken = true }
      previous = frame.checksum
      isGuess = false
      let number = Int((place - Int64(WriteAheadLog.Header.length)) / Int64(length)) + 1
      let image = PageOverlay.Image(
        offset: place + Int64(WriteAheadLog.frameHeaderLength), number: max(1, number), isDoubtful: isBroken)
      transaction.append((frame.page, image))
      // An unverified frame may have lost bytes and contain the next one.
      earliest = place + (isProved == true ? Int64(length) : Int64(WriteAheadLog.frameHeaderLength))
      place += Int64(length)
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
    tell(&overlay, wrongSalts: wrongSalts)
    return overlay.images.isEmpty && overlay.uncommittedCount == 0 ? nil : overlay
  }

  private func isProof(_ frame: LogFrame, at place: Int64) throws -> Bool {
    let length = pageSize + WriteAheadLog.frameHeaderLength
    let next = try source.bytes(at: place + Int64(length), length: length)
    guard frame.page > 0, next.count == length else { return false }
    return LogFrame.checksum(frame.checksum, adding: next.span, bigEndian: isBigEndian) == LogFrame(next.span).checksum
  }

  private func tell(_ overlay: inout PageOverlay, wrongSalts: Int) {
    if !hasHeader { overlay.remarks.append("the header of the write-ahead log is destroyed") }
    if wrongSalts > 0 {
      let have = wrongSalts == 1 ? "has" : "have"
      overlay.remarks.append(
        "\(counted(wrongSalts, "frame")) of the write-ahead log \(have) other salts than its header, but checksums that "
          + "lead on from the frames before")
    } else if hasHeader, overlay.doubtfulCount > 0 {
      overlay.remarks.append("the write-ahead log has a bad frame, behind which SQLite reads nothing")
    }
    if overlay.uncommittedCount > 0 {
      overlay.remarks.append("the write-ahead log ends with a transaction that is not whole")
    }
    if overlay.isCutOff { overlay.remarks.append("the write-ahead log is cut off in the middle of a frame") }
  }
}
