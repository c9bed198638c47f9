internal import StoreFiles

extension ForeignLog {
  /// Whether a log that seems to be the file's own is of another state of it, as where an earlier copy of the file was put back.
  ///
  /// Then the file is consistent by itself, and not with the log, nor with the log's first transaction alone. Every page is
  /// looked at, up to three times.
  package static func isOfOtherState(_ database: Database) throws(FormatError) -> Bool {
    guard database.isLogApplied, let log = database.writeAheadLog, database.main.count > 0 else { return false }
    let isLater = try isLater(database)
    // Where a part of the log could not be read, the rest may well contradict itself.
    if !isLater { guard log.isReadToItsEnd, try !database.isConsistent() else { return false } }
    let alone = try Database(main: database.main, pageSize: database.pageSize)
    guard alone.header?.hasMagic == true, try alone.isConsistent() else { return false }
    guard !isLater, let frameLength = log.frameLength, log.commitCount > 1 else { return true }
    let end = Int64(WriteAheadLog.Header.length) + Int64(log.firstCommittedFrame) * Int64(frameLength)
    // The log of an app whose indexes went wrong only later is its own.
    let first = try Database(main: database.main, writeAheadLog: Prefix(source: log.source, count: end))
    return try !first.isConsistent()
  }

  /// Whether the file lacks transactions from before the log: its counter grows by one with each, and the first that the log
  /// has is more than one above the file's.
  static func isLater(_ database: Database) throws(FormatError) -> Bool {
    guard let log = database.writeAheadLog, let frame = log.firstHeaderFrame,
      let offset = log.pageOffset(ofFrame: frame),
      let main = DatabaseHeader(try database.main.read(at: 0, length: DatabaseHeader.length)),
      let first = DatabaseHeader(try log.source.read(at: offset, length: DatabaseHeader.length)),
      main.hasMagic, main.isPageCountValid, first.hasMagic, first.isPageCountValid
    else { return false }
    return Int32(bitPattern: first.changeCounter &- main.changeCounter) > 1
  }

  /// The first bytes of a log.
  private struct Prefix: ByteSource {
    let source: any ByteSource
    let count: Int64

    func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
      guard offset >= 0, offset < count else { return 0 }
      return try source.read(at: offset, length: Int(min(Int64(length), count - offset)), into: &buffer)
    }
  }
}

extension Database {
  /// Whether every page has one use, every tree fits, and every index has the rows of its table, as far as they can be compared.
  fileprivate func isConsistent() throws(FormatError) -> Bool {
    let schema = try schema()
    guard !findings.hasDamage, !schema.findings.hasDamage, try rootFindings(of: schema).isEmpty else { return false }
    let indexes = try IndexCheck(self, schema)
    guard try checkIntegrity(countingBy: [:], visitor: indexes, progress: { _, _ in true }).isSound else {
      return false
    }
    return try indexes.finish { true }.isSound
  }
}
