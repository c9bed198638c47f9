/// Tells whether a cell's record fits its own header, as far as the header is on the page.
enum RecordCheck {
  /// Whether the serial types are legal and their lengths add up to the payload's.
  static func isWellFormed(_ bytes: Span<UInt8>, cell: Cell) -> Bool {
    // An inner page of a table has keys only.
    guard cell.payloadLength > 0 else { return cell.localPayload.isEmpty }
    let start = cell.localPayload.lowerBound
    var offset = start
    guard let length = Varint.read(bytes, at: &offset, before: cell.localPayload.upperBound), length > 0,
      length <= Int64(cell.payloadLength)
    else { return false }
    let headerEnd = start &+ Int(length)
    // A header that goes on behind the page is left to those who gather the payload.
    guard headerEnd <= cell.localPayload.upperBound else { return true }
    var body = Int(length)
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= cell.payloadLength &- body
      else { return false }
      body &+= width
    }
    return body == cell.payloadLength
  }
}
