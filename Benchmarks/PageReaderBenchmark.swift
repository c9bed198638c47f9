import Platform
import SQLiteFormat

/// Decoding every row of every table with the page reader.
///
/// Goal: over 1.5 GB/s of leaf pages on one core.
struct PageReaderBenchmark {
  let subject: BenchmarkStore
  let rounds: Int

  func run() throws {
    var leafBytes = 0
    var rows = 0
    var fastest = Double.infinity
    let time = try medianMilliseconds(rounds: rounds) {
      let start = processorMilliseconds()
      defer { fastest = min(fastest, processorMilliseconds() - start) }
      let database = try Database(main: try FileSystem().open(subject.path))
      let result = try database.scanTables()
      leafBytes = result.leafBytes
      rows = result.rows
    }
    let bytes = try FileSystem().open(subject.path)
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    let reading = try medianMilliseconds(rounds: rounds) {
      var offset: Int64 = 0
      while offset < bytes.count { offset += Int64(try bytes.read(at: offset, length: buffer.count, into: &buffer)) }
    }
    print(
      "page reader: \(rows) rows, \(leafBytes / 1_000_000) MB of leaf pages in \(rounded(time)) ms = \(rounded(Double(leafBytes) / 1e6 / time)) GB/s; by processor time, fastest round: \(rounded(Double(leafBytes) / 1e6 / fastest)) GB/s; reading the file alone \(rounded(reading)) ms"
    )
  }
}
