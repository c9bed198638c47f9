import Foundation

/// The bytes of a database that a chain of backups has lost, while its backups are unpacked one over the other.
struct LostRanges {
  private var ranges = IndexSet()

  /// - Parameter count: how many bytes, from the first on, are lost before anything is unpacked.
  init(_ count: Int64) {
    if count > 0 { ranges.insert(integersIn: 0..<Int(count)) }
  }

  mutating func lose(block: Int) {
    let length = BackupManifest.blockLength
    ranges.insert(integersIn: (block * length)..<((block + 1) * length))
  }

  /// Takes bytes as lost, or as there again.
  mutating func set(_ range: Range<Int64>, isLost: Bool) {
    let range = Int(range.lowerBound)..<Int(range.upperBound)
    if isLost {
      ranges.insert(integersIn: range)
    } else if !ranges.isEmpty {
      ranges.remove(integersIn: range)
    }
  }

  /// The blocks with lost bytes among the first so many bytes.
  func blocks(of count: Int64) -> IndexSet {
    var blocks = IndexSet()
    let length = BackupManifest.blockLength
    // Not rangeView(of:), which gives nothing on Linux where only a part of the range is in the set.
    for range in ranges.rangeView where range.lowerBound < count {
      let end = min(range.upperBound, Int(count))
      blocks.insert(integersIn: (range.lowerBound / length)...((end - 1) / length))
    }
    return blocks
  }
}
