extension BTreePage {
  /// The free blocks of the page, in the order of their chain, which ascends; the second part tells whether the chain
  /// ends as it should.
  public var freeblocks: (blocks: [Range<Int>], isSound: Bool) {
    var blocks: [Range<Int>] = []
    var offset = firstFreeblock
    let span = bytes.span
    var lowest = pointerArrayOffset &+ 2 &* cellCount
    while offset != 0 {
      guard offset >= lowest, offset <= geometry.usableSize &- 4, let next = span.uint16(at: offset),
        let length = span.uint16(at: offset &+ 2), length >= 4, length <= geometry.usableSize &- offset
      else { return (blocks, false) }
      blocks.append(offset..<(offset &+ length))
      lowest = offset &+ length
      offset = next
    }
    return (blocks, true)
  }

  /// The bytes between the cell pointer array and the content area, which no cell uses; nil where there are none.
  public var unallocatedSpace: Range<Int>? {
    let start = pointerArrayOffset &+ 2 &* cellCount
    let end = min(contentStart, geometry.usableSize)
    return start < end ? start..<end : nil
  }
}
