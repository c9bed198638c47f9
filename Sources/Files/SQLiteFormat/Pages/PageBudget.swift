/// The bytes of a page that its cells may still take in all.
///
/// In a sound page no byte belongs to two cells. Without this bound, thousands of pointers to one long cell would make a
/// small file give gigabytes of rows.
struct PageBudget {
  private var page: UInt32?
  private var rest = 0

  /// Takes a cell's bytes from its page; false where the page has given more than it holds already.
  @inline(__always)
  mutating func take(_ length: Int, of page: BTreePage) -> Bool {
    if self.page != page.number {
      self.page = page.number
      rest = page.geometry.usableSize
    }
    guard length <= rest else { return false }
    rest &-= length
    return true
  }
}
