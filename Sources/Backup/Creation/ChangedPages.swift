import Platform
import SQLiteFormat

/// The pages of a delta, concatenated.
struct ChangedPages: ByteSource {
  private let content: DatabaseContent
  private let runs: [PageRun]
  /// The position of each run in the delta, in pages.
  private let starts: [Int64]
  let count: Int64

  init(content: DatabaseContent, runs: [PageRun]) {
    self.content = content
    self.runs = runs
    var starts: [Int64] = []
    var pages: Int64 = 0
    for run in runs {
      starts.append(pages)
      pages += Int64(run.count)
    }
    self.starts = starts
    count = pages * Int64(content.pageSize)
  }

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let wanted = Int(min(Int64(min(length, buffer.count)), count - offset))
    let size = Int64(content.pageSize)
    var index = place(of: offset / size)
    var done = 0
    while done < wanted, index < runs.count {
      let position = offset + Int64(done) - starts[index] * size
      let length = min(Int64(runs[index].count) * size - position, Int64(wanted - done))
      let bytes = try content.bytes(at: Int64(runs[index].first - 1) * size + position, length: Int(length))
      guard bytes.count == Int(length) else { return done }
      buffer.replaceSubrange(done..<(done + bytes.count), with: bytes)
      done += bytes.count
      index += 1
    }
    return done
  }

  private func place(of page: Int64) -> Int {
    var (low, high) = (0, starts.count - 1)
    while low < high {
      let middle = (low + high + 1) / 2
      if starts[middle] <= page { low = middle } else { high = middle - 1 }
    }
    return low
  }
}
