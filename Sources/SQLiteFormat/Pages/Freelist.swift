/// The pages of a database that are free.
public struct Freelist: Sendable {
  /// The trunk pages in the order of their chain.
  public var trunks: [UInt32] = []

  /// The leaf pages, whose content is what it was when they were freed.
  public var leaves: [UInt32] = []

  /// What is wrong with the list.
  public var findings = Findings()

  /// The number of pages in it.
  public var count: Int { trunks.count + leaves.count }
}

extension Database {
  /// Reads the freelist from the header's first trunk on; each page is taken once.
  public func freelist() throws(FormatError) -> Freelist {
    var list = Freelist()
    guard let header else { return list }
    var seen = PageSet()
    var number = header.firstFreelistTrunk
    var from: UInt32 = 1
    while number != 0 {
      guard number > 1, number <= highestPage else {
        list.findings.note(.pageOutOfRange, page: from, found: Int64(number))
        break
      }
      guard seen.insert(number) else {
        list.findings.note(.pageUsedTwice, page: number)
        break
      }
      guard let page = try page(number), let trunk = FreelistTrunk(page.bytes, usableSize: usableSize) else {
        list.findings.note(.pageMissing, page: number)
        break
      }
      list.trunks.append(number)
      if !trunk.isSound { list.findings.note(.freelistTrunkInvalid, page: number, found: Int64(trunk.storedLeafCount)) }
      for leaf in trunk.leaves {
        if leaf < 2 || leaf > highestPage {
          list.findings.note(.pageOutOfRange, page: number, found: Int64(leaf))
        } else if seen.insert(leaf) {
          list.leaves.append(leaf)
        } else {
          list.findings.note(.pageUsedTwice, page: leaf)
        }
      }
      from = number
      number = trunk.next
    }
    if list.count != Int(header.freelistCount) {
      list.findings.note(
        .freelistCountWrong, page: 1, expected: Int64(header.freelistCount), found: Int64(list.count))
    }
    return list
  }
}

/// A trunk page of the freelist: the next trunk, and leaves that are free (SQLite file format, "The Freelist").
public struct FreelistTrunk: Sendable, Hashable {
  /// The next trunk page, or 0 behind the last.
  public var next: UInt32

  /// The leaves, as many as can be on the page.
  public var leaves: [UInt32]

  /// The number of leaves that the page claims.
  public var storedLeafCount: UInt32

  /// Whether all claimed leaves fit on the page.
  public var isSound: Bool { Int(storedLeafCount) == leaves.count }

  /// Reads a trunk page's bytes; nil where there are fewer than eight.
  public init?(_ bytes: [UInt8], usableSize: Int) {
    let span = bytes.span
    guard let next = span.uint32(at: 0), let count = span.uint32(at: 4) else { return nil }
    self.next = next
    storedLeafCount = count
    let room = max(0, min(usableSize, bytes.count) / 4 - 2)
    leaves = (0..<min(Int(count), room)).map { span.uint32(at: 8 + 4 * $0) ?? 0 }
  }
}
