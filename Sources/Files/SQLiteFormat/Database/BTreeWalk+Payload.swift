extension BTreeWalk {
  /// The bytes of a cell's payload, gathered from its page and its overflow pages; fewer where the chain is broken.
  ///
  /// No more than `limit` bytes are gathered.
  mutating func payload(of cell: Cell, on page: BTreePage, limit: Int) throws(FormatError) -> ArraySlice<UInt8> {
    let local = page.bytes[cell.localPayload]
    guard var next = cell.overflowPage, limit > local.count else { return local }
    let wanted = min(limit, cell.payloadLength)
    let perPage = database.usableSize - 4
    // No chain can hold more than all pages together.
    guard Int64(cell.payloadLength) <= Int64(database.highestPage) * Int64(database.pageSize) else {
      findings.note(.payloadTooLong, page: page.number, root: root, found: Int64(cell.payloadLength))
      return local
    }
    var bytes = Array(local)
    var from = page.number
    while bytes.count < wanted {
      guard next != 0 else {
        findings.note(.overflowTooShort, page: from, root: root, expected: Int64(wanted), found: Int64(bytes.count))
        break
      }
      guard claim(next, from: from) else { break }
      guard let overflow = try database.page(next), let following = overflow.bytes.span.uint32(at: 0) else {
        findings.note(.pageMissing, page: next, root: root)
        break
      }
      let count = min(perPage, wanted - bytes.count, max(0, overflow.presentCount - 4))
      bytes.append(contentsOf: overflow.bytes[4..<(4 + count)])
      if count < min(perPage, wanted - (bytes.count - count)) { break }
      from = next
      next = following
    }
    return bytes[...]
  }
}
