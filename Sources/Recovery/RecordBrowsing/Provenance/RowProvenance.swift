/// Where the bytes of a row are, and how far the row is to be believed.
package struct RowProvenance: Sendable, Hashable {
  /// How far it is to be believed.
  package var state: RowState

  /// The key that the row has, or had, in the store; nil where that is lost.
  package var storedKey: Int64?

  /// The page its cell is on; nil where that is not known.
  package var page: UInt32?

  /// The number of the cell on the page, from 0; nil where it has to be looked for, or is no cell any more.
  package var cell: Int?

  /// Where the bytes were: `main`, `wal`, `journal`, `freespace`, `index`, `backup`.
  package var source: String

  /// How its page was found: `tree`, `content`, `carving`; nil where the row was found by itself.
  package var foundBy: String?

  /// Why it is not certain, as half a sentence; nil where it is.
  package var reason: String?
}
