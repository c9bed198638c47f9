extension Sequence {
  /// Returns the elements in stable order, for short lists.
  ///
  /// Compiled once: specializations of the standard library's `sorted(by:)` took a fifteenth of the library's code.
  /// Slower, so use that for rows or pages by the thousand.
  package func ordered(by areInOrder: (Element, Element) throws -> Bool) rethrows -> [Element] {
    try sorted(by: areInOrder)
  }
}
