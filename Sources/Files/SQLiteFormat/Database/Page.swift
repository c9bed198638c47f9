/// A page as a reader would see it now, and where its bytes came from.
public struct Page: Sendable {
  /// The place that a page's bytes came from.
  public enum Origin: Sendable, Hashable {
    /// The database file, at a byte offset.
    case main(offset: Int64)

    /// A frame of the write-ahead log, counted from 1, whose page begins at a byte offset.
    case writeAheadLog(frame: Int, offset: Int64)

    /// The rollback journal, at a byte offset.
    case rollbackJournal(offset: Int64)
  }

  /// The page's number, counted from 1.
  public let number: UInt32

  /// The page's bytes, always a whole page; zeros stand for what the file does not hold.
  public let bytes: [UInt8]

  /// How many of the bytes were really there; fewer than a page only at the end of a file.
  public let presentCount: Int

  /// Where the bytes came from.
  public let origin: Origin
}
