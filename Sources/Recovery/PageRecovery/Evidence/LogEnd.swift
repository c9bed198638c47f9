internal import SQLiteFormat
internal import StoreFiles

/// What the files tell of the end of the write-ahead log.
enum LogEnd {
  /// What is to be said where a part of the log is gone or was not read, as a look at the store says it too.
  static func remarks(_ evidence: Evidence, _ reader: PageReader) throws(SalvageError) -> [String] {
    let holder: String?
    let kept: (bytes: [UInt8], isInUse: Bool)?
    do throws(FileError) {
      holder = try evidence.files.holderOfDeletedLog(in: evidence.fileSystem)
      kept = try evidence.files.logIndex(length: WriteAheadLogIndex.length, in: evidence.fileSystem)
    } catch {
      throw SalvageError(error)
    }
    if let holder {
      return [
        "the write-ahead log was deleted while \(holder) had the store open: what it has written since is in the deleted file "
          + "alone"
      ]
    }
    if let header = reader.layout.header, header.hasMagic, header.isPageCountValid, reader.overlay == nil,
      reader.layout.pageCount < header.pageCount
    {
      let lacking = header.pageCount - reader.layout.pageCount
      return ["the file is cut off: \(counted(lacking, "page")) \(lacking == 1 ? "is" : "are") missing from its end"]
    }
    let index = kept.flatMap { WriteAheadLogIndex($0.bytes) }
    guard let source = evidence.log else {
      guard let gone = index?.missingFrames(of: nil), gone > 0 else { return [] }
      return ["the write-ahead log is gone: \(counted(gone, "frame")) of it were never copied into the file"]
    }
    let log: WriteAheadLog
    do throws(FormatError) { log = try WriteAheadLog(source) } catch { throw SalvageError(error) }
    if let gone = index?.missingFrames(of: log), gone > 0 {
      return ["the write-ahead log is cut off: \(gone) of its frames are gone"]
    }
    if log.isReadToItsEnd || kept?.isInUse == true && log.endsWithUnfinishedTransaction(by: index) { return [] }
    // Whatever was said of it in detail, this says that something may be missing.
    return ["the write-ahead log was not read to its end: what was written last may be missing"]
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
