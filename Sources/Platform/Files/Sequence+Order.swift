extension Sequence {
  /// The elements in the order of a rule, elements that it does not tell apart as they were: for lists of names and the like.
  ///
  /// The standard library's `sorted(by:)` is compiled anew for each type and each rule, which took a fifteenth of the library's
  /// code. This one is compiled once and compares slower for it: what sorts rows or pages by the thousand takes the other.
  package func ordered(by areInOrder: (Element, Element) throws -> Bool) rethrows -> [Element] {
    try sorted(by: areInOrder)
  }
}
