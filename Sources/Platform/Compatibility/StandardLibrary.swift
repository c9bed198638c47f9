extension String {
  /// Decodes UTF-8; nil if it is invalid.
  ///
  /// Uses the standard library's initializer where the system has it.
  @inlinable package init?(utf8 bytes: some Collection<UInt8>) {
    if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
      self.init(validating: bytes, as: UTF8.self)
    } else {
      self.init(comparingUTF8: bytes)
    }
  }

  /// Decodes UTF-8 on older systems.
  ///
  /// Decoding replaces invalid bytes, so the result differs from the input.
  @inlinable package init?(comparingUTF8 bytes: some Collection<UInt8>) {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.utf8.elementsEqual(bytes) else { return nil }
    self = text
  }

  @inlinable package init?(utf16 units: some Collection<UInt16>) {
    if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
      self.init(validating: units, as: UTF16.self)
    } else {
      self.init(comparingUTF16: units)
    }
  }

  @inlinable package init?(comparingUTF16 units: some Collection<UInt16>) {
    let text = String(decoding: units, as: UTF16.self)
    guard text.utf16.elementsEqual(units) else { return nil }
    self = text
  }
}

extension Sequence {
  /// Returns the elements in stable order, for short lists.
  ///
  /// Compiled once: specializations of the standard library's `sorted(by:)` took a fifteenth of the library's code.
  /// Slower, so use that for rows or pages by the thousand.
  package func ordered(by areInOrder: (Element, Element) throws -> Bool) rethrows -> [Element] {
    try sorted(by: areInOrder)
  }
}

extension Array {
  /// Returns the first index at which a condition holds that holds for all later elements too, or the count.
  @inlinable package func partitioningIndex(where isLater: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if isLater(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
