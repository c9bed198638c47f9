internal import Foundation

extension XMLTree.Element {
  /// The bytes that its text is in base 64, white space between the letters left aside; nil where it is anything else.
  public var base64Data: [UInt8]? {
    let letters = text.utf8.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
    return Data(base64Encoded: Data(letters)).map { Array($0) }
  }
}
