internal import SQLiteFormat

extension TextStatistics {
  /// Learns the texts of a record as far as it is at hand.
  mutating func learn(_ bytes: Span<UInt8>, _ record: Range<Int>, length: Int) {
    var offset = record.lowerBound
    guard let header = Varint.read(bytes, at: &offset, before: record.upperBound), header > 0,
      header <= Int64(record.count)
    else { return }
    let end = record.lowerBound + Int(header)
    var body = end
    while offset < end, body < record.upperBound {
      guard let code = Varint.read(bytes, at: &offset, before: end), let width = SerialType.length(of: code) else {
        return
      }
      if code >= 13, code & 1 == 1 {
        let stop = min(body + width, record.upperBound)
        learn(bytes, body..<stop, isBeginning: true, isEnd: stop == body + width)
      }
      body += width
    }
  }
}
