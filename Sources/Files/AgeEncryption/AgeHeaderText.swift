/// The text of headers, for tests that compare the reader with the writer.
package enum AgeHeaderText {
  /// The header at the beginning of bytes, as it would be written, and how many bytes it was read from; nil where more are needed.
  package static func read(_ bytes: [UInt8]) throws(AgeError) -> (text: [UInt8], length: Int)? {
    guard let (header, length) = try AgeHeader.read(bytes) else { return nil }
    let text = AgeHeader.version + "\n" + header.stanzas.map(\.text).joined() + "--- "
    return (Array((text + UnpaddedBase64.encode(header.sum) + "\n").utf8), length)
  }
}
