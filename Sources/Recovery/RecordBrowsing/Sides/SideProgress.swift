/// How far the making of a side has come.
package struct SideProgress: Sendable, Hashable {
  /// What is being done, in a few words.
  package var words: String

  /// How much of it is done, from 0 to 1; nil where that is not known.
  package var fraction: Double?
}
