/// How many bytes go into the next part: few on a slow or broken line, so that little is sent twice and stopping takes no time.
struct PartSize {
  private static let first = 1 << 20
  private static let least = 128 << 10

  private(set) var bytes: Int
  private let limit: Int

  init(limit: Int) {
    self.limit = limit
    bytes = min(Self.first, limit)
  }

  /// A part of the size arrived in that time.
  mutating func arrived(in span: Duration) {
    if span < .seconds(2) { bytes = min(bytes * 2, limit) }
    if span > .seconds(15) { shrink() }
  }

  /// A part did not arrive.
  mutating func failed() { shrink() }

  private mutating func shrink() { bytes = min(limit, max(bytes / 2, Self.least)) }
}
