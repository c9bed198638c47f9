/// A row of a table or an entry of an index as a cursor found it.
public struct Row: Sendable {
  /// The rowid; 0 in indexes and tables WITHOUT ROWID.
  public var rowid: Int64

  /// The columns.
  public var record: Record

  /// The page of the cell.
  public var page: UInt32

  /// The place of the cell in its page's cell pointer array, counted from 0.
  public var cell: Int
}
