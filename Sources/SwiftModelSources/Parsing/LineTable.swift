struct LineTable: Sendable {
  private let file: String

  private var starts = [0]

  init(file: String, bytes: [UInt8]) {
    self.file = file
    for (offset, byte) in bytes.enumerated() where byte == 0x0A { starts.append(offset + 1) }
  }

  func place(of offset: Int) -> SourcePlace {
    var low = 0
    var high = starts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if starts[middle] <= offset { low = middle } else { high = middle }
    }
    return SourcePlace(file: file, line: low + 1, column: offset - starts[low] + 1)
  }
}
