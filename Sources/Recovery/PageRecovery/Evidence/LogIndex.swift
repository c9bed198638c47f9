internal import SQLiteFormat
internal import StoreFiles

/// The index of a write-ahead log, `-shm`, as far as it tells how long the log was (SQLite, "WAL-mode File Format": the
/// index header at 0 and again at 48, the checkpoint information at 96, in the byte order of the machine).
struct LogIndex {
  /// The frames that were committed.
  let frameCount: UInt32

  /// The frames of them that had been copied into the database file.
  let copiedCount: UInt32

  /// The salts of the log, as its header has them.
  let salts: [UInt8]

  /// Reads an index; nil where its two headers differ or say nothing.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 100, bytes[0..<48].elementsEqual(bytes[48..<96]), bytes[12] == 1 else { return nil }
    let isBigEndian: Bool
    switch Array(bytes[0..<4]) {
    case [0x18, 0xe2, 0x2d, 0x00]: isBigEndian = false
    case [0x00, 0x2d, 0xe2, 0x18]: isBigEndian = true
    default: return nil
    }
    func number(at offset: Int) -> UInt32 {
      (0..<4).reduce(0) { $0 << 8 | UInt32(bytes[offset + (isBigEndian ? $1 : 3 - $1)]) }
    }
    frameCount = number(at: 16)
    copiedCount = number(at: 96)
    salts = Array(bytes[32..<40])
    guard copiedCount <= frameCount else { return nil }
  }

  /// What is to be said where the files show that a part of the log is gone.
  static func remarks(_ evidence: Evidence, _ reader: PageReader) throws(SalvageError) -> [String] {
    if let header = reader.layout.header, header.hasMagic, header.isPageCountValid, reader.overlay == nil,
      reader.layout.pageCount < header.pageCount
    {
      let lacking = header.pageCount - reader.wholePageCount
      return ["the file is cut off: \(counted(lacking, "page")) \(lacking == 1 ? "is" : "are") missing from its end"]
    }
    guard let source = evidence.logIndex, let index = LogIndex(try source.piece(at: 0, length: 100)),
      index.frameCount > index.copiedCount
    else { return [] }
    guard let log = evidence.log else {
      return [
        "the write-ahead log is gone: \(index.frameCount - index.copiedCount) frames of it were never copied into the file"
      ]
    }
    let header = try log.piece(at: 0, length: WriteAheadLog.Header.length)
    // A log of another time says nothing of this index.
    guard header.count == WriteAheadLog.Header.length, Array(header[16..<24]) == index.salts else { return [] }
    let frameLength = Int64(reader.pageSize + WriteAheadLog.frameHeaderLength)
    let present = max(0, log.count - Int64(WriteAheadLog.Header.length)) / frameLength
    guard present < Int64(index.frameCount) else { return [] }
    return ["the write-ahead log is cut off: \(Int64(index.frameCount) - present) of its frames are gone"]
  }

  /// What is to be said of a store of Core Data's that has no log at all: Core Data leaves the file where it is, even when
  /// everything was copied out of it, so that the store may have been copied without.
  static func absence(_ evidence: Evidence, _ reader: PageReader, isCoreData: Bool) -> [String] {
    guard isCoreData, evidence.log == nil, reader.overlay == nil, reader.layout.header?.usesWriteAheadLog == true,
      !evidence.hasLogFile
    else { return [] }
    return [
      "there is no write-ahead log beside the store: where it was copied without, the latest changes are missing, and "
        + "rows can be older than they were"
    ]
  }
}
