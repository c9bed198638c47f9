extension Pseudonyms {
  func replaceWholeBlob(_ bytes: inout [UInt8], _ range: Range<Int>) -> Outcome {
    let seed = seed(bytes.span, range, isText: false)
    if let ordered = orderedTexts.pseudonym(seed: seed) {
      if range.count > ordered.count { replaceBlob(&bytes, range, from: ordered.count, seed: seed) }
      for (index, byte) in ordered.enumerated() { bytes[range.lowerBound + index] = byte }
      return .ordered
    }
    replaceBlob(&bytes, range, from: BlobForm.keptPrefix(bytes.span, range), seed: seed)
    return .replaced
  }

  /// Replaces the bytes of a blob from an offset on; zeros in a row stay.
  func replaceBlob(_ bytes: inout [UInt8], _ range: Range<Int>, from: Int, seed: UInt64) {
    var stream = KeyStream(function, seed: seed)
    let isIdentifier = BlobForm.isIdentifier(bytes.span, range)
    let (version, variant) =
      isIdentifier ? (bytes[range.lowerBound + 6] & 0xf0, bytes[range.lowerBound + 8] & 0xc0) : (0, 0)
    replaceNoise(&bytes, (range.lowerBound + from)..<range.upperBound, &stream)
    if isIdentifier {
      if from <= 6 { bytes[range.lowerBound + 6] = version | bytes[range.lowerBound + 6] & 0x0f }
      if from <= 8 { bytes[range.lowerBound + 8] = variant | bytes[range.lowerBound + 8] & 0x3f }
    }
  }

  /// Replaces bytes by noise: eight zeros in a row and more stay, nothing else becomes zero.
  func replaceNoise(_ bytes: inout [UInt8], _ range: Range<Int>, _ stream: inout KeyStream) {
    var index = range.lowerBound
    let end = range.upperBound
    var word: UInt64 = 0
    var left = 0
    func next() -> UInt8 {
      if left == 0 {
        word = stream.next64()
        left = 4
      }
      left &-= 1
      let result = UInt8(truncatingIfNeeded: 1 &+ (((word & 0xffff) &* 255) >> 16))
      word >>= 16
      return result
    }
    while index < end {
      guard bytes[index] == 0 else {
        bytes[index] = next()
        index &+= 1
        continue
      }
      var last = index
      while last < end, bytes[last] == 0 { last &+= 1 }
      if last &- index >= 8 || last == end || index == range.lowerBound {
        index = last
        continue
      }
      while index < last {
        bytes[index] = next()
        index &+= 1
      }
    }
  }
}
