internal import SQLiteFormat

/// Reads bytes as a page of every kind.
enum PageReading {
  static func run(_ input: [UInt8]) throws(FuzzFailure) {
    let size = [4096, 2048, 1024].first { $0 <= input.count } ?? 512
    let bytes = Array(input.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - input.count))
    if let header = DatabaseHeader(bytes) { _ = header.findings.items.map(\.description) }
    _ = FileKind(firstBytes: bytes)
    // The last byte of the input is the number of reserved bytes, as far as that is legal.
    let geometry = PayloadGeometry(usableSize: size - min(32, Int(input.last ?? 0)))
    for number: UInt32 in [1, 3] {
      guard let page = BTreePage(bytes, number: number, geometry: geometry) else { continue }
      try read(page)
    }
    for kind in [PageKind.tableLeaf, .tableInterior, .indexLeaf, .indexInterior] {
      for offset in stride(from: 0, to: size, by: 7) {
        guard let cell = Cell(bytes.span, kind: kind, at: offset, geometry: geometry) else { continue }
        try check(cell, geometry)
      }
    }
    if let trunk = FreelistTrunk(bytes, usableSize: geometry.usableSize) {
      try expect(trunk.leaves.count <= geometry.usableSize / 4, "a trunk has more leaves than places")
      _ = trunk.isSound
    }
    for page: UInt32 in [3, 4, 50, 104, .max] { _ = PointerMapEntry(for: page, in: bytes.span, mapPage: 2) }
  }

  private static func read(_ page: BTreePage) throws(FuzzFailure) {
    _ = page.children
    _ = page.isHeaderPlausible
    let usable = page.geometry.usableSize
    for block in page.freeblocks.blocks {
      try expect(block.lowerBound >= 0 && block.upperBound <= usable, "a freeblock leaves the page")
    }
    if let space = page.unallocatedSpace {
      try expect(space.lowerBound >= 0 && space.upperBound <= usable, "unallocated space leaves the page")
    }
    try expect(page.cellCount * 2 <= usable, "more cells than pointers fit")
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index) else { continue }
      try check(cell, page.geometry)
      for encoding in [TextEncoding.utf8, .utf16LittleEndian, .utf16BigEndian] {
        guard let record = page.localRecord(of: cell, encoding: encoding) else { continue }
        try RecordReading.check(record)
      }
    }
  }

  private static func check(_ cell: Cell, _ geometry: PayloadGeometry) throws(FuzzFailure) {
    try expect(
      cell.offset >= 0 && cell.length >= 4 && cell.offset + cell.length <= geometry.usableSize, "a cell leaves the page"
    )
    try expect(
      cell.localPayload.lowerBound >= cell.offset && cell.localPayload.upperBound <= geometry.usableSize,
      "a payload leaves its page")
    try expect(cell.localPayload.count <= cell.payloadLength, "more payload than there is")
  }
}
