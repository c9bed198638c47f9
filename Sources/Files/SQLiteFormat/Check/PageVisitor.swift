/// What looks at the pages of b-trees while every page is checked, so that they are not read again for it.
package protocol PageVisitor: Sendable {
  /// Called with each page of a b-tree that is sound by itself, and with all of its cells.
  ///
  /// The pages of one tree come one behind the other, from the root to the leaves, the leaves in the order of their keys.
  /// Whether the tree as a whole is sound only the check's report tells.
  func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FormatError)
}
