extension String {
  /// The text that bytes are in UTF-8; nil where they are not valid UTF-8.
  ///
  /// The standard library's own initializer needs newer systems than those that the library supports, and is used where it is.
  @inlinable
  package init?(utf8 bytes: some Collection<UInt8>) {
    if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
      self.init(validating: bytes, as: UTF8.self)
    } else {
      self.init(comparingUTF8: bytes)
    }
  }

  /// The same, on systems of before.
  ///
  /// What is not valid is replaced when bytes are decoded, and never by the bytes that it was.
  @inlinable
  package init?(comparingUTF8 bytes: some Collection<UInt8>) {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.utf8.elementsEqual(bytes) else { return nil }
    self = text
  }

  /// The text that code units are in UTF-16; nil where they are not valid UTF-16.
  @inlinable
  package init?(utf16 units: some Collection<UInt16>) {
    if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
      self.init(validating: units, as: UTF16.self)
    } else {
      self.init(comparingUTF16: units)
    }
  }

  /// The same, on systems of before.
  @inlinable
  package init?(comparingUTF16 units: some Collection<UInt16>) {
    let text = String(decoding: units, as: UTF16.self)
    guard text.utf16.elementsEqual(units) else { return nil }
    self = text
  }
}
