import Platform
import SQLiteFormat

extension StoreBytes {
  private static let pageLimit = 64

  /// After so many zeros the rest is assumed zero.
  private static let blankLimit = Int64(1 << 30)

  func isMainBlank() throws(FileError) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var offset: Int64 = 0
    while offset < min(main.count, Self.blankLimit) {
      let got = try main.read(at: offset, length: buffer.count, into: &buffer)
      guard got > 0 else { break }
      guard buffer[..<got].allSatisfy({ $0 == 0 }) else { return false }
      offset += Int64(got)
    }
    return true
  }

  /// Returns whether log or journal have store pages.
  ///
  /// - Parameter readable: whether to skip random-looking pages, as of an encrypted store.
  func hasPagesElsewhere(readable: Bool = false) throws(FormatError) -> Bool {
    if let log, log.count > 0 {
      let log = try WriteAheadLog(log)
      let frames = log.validFrameCount
      if frames > 0 {
        if !readable { return true }
        for frame in stride(from: 1, through: frames, by: max(1, frames / Self.pageLimit)) {
          if try isPlain(log.source, at: log.pageOffset(ofFrame: frame), log.header?.pageSize) { return true }
        }
      }
    }
    guard let journal, journal.count > 0 else { return false }
    let undone = try RollbackJournal(journal)
    guard !undone.pages.isEmpty else { return false }
    if !readable { return true }
    for page in undone.pages.prefix(Self.pageLimit) {
      if try isPlain(undone.source, at: undone.pageOffset(of: page), undone.pageSize) { return true }
    }
    return false
  }

  private func isPlain(_ source: any ByteSource, at offset: Int64?, _ size: Int?) throws(FormatError) -> Bool {
    guard let offset, let size else { return false }
    do throws(FileError) {
      return try !FileKind.looksRandom(source.bytes(at: offset, length: size))
    } catch {
      throw FormatError(error)
    }
  }

  /// Returns the log's committed database, if it has page 1.
  func databaseOfLogAlone() throws(FormatError) -> Database? {
    guard let log, log.count > 0 else { return nil }
    do throws(FormatError) {
      let database = try Database(main: MemoryBytes([]), writeAheadLog: log)
      guard database.isLogApplied, let header = database.header, header.hasMagic, header.pageSize == database.pageSize
      else { return nil }
      return database
    } catch  where error.kind == .notADatabase {
      return nil
    }
  }
}
