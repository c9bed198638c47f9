public import Platform

/// The free pages of a database.
public struct Freelist: Sendable {
  /// The trunk pages in chain order.
  public var trunks: [UInt32] = []

  /// The leaf pages, which keep their content from before they were freed.
  public var leaves: [UInt32] = []

  /// The damage of the list.
  public var findings = Findings()

  /// The number of pages.
  public var count: Int { trunks.count + leaves.count }
}

extension Database {
  /// Reads the freelist, taking each page once.
  public func freelist() throws(FileError) -> Freelist {
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
      list.findings.note(.freelistCountWrong, page: 1, expected: Int64(header.freelistCount), found: Int64(list.count))
    }
    return list
  }
}

/// A freelist trunk page (SQLite file format, "The Freelist").
public struct FreelistTrunk: Sendable, Hashable {
  /// The next trunk page, or 0.
  public var next: UInt32

  /// The leaves that fit on the page.
  public var leaves: [UInt32]

  /// The stored number of leaves.
  public var storedLeafCount: UInt32

  /// Whether all stored leaves fit.
  public var isSound: Bool { Int(storedLeafCount) == leaves.count }

  /// Reads a trunk page; nil for fewer than eight bytes.
  public init?(_ bytes: [UInt8], usableSize: Int) {
    let span = bytes.span
    guard let next = span.uint32(at: 0), let count = span.uint32(at: 4) else { return nil }
    self.next = next
    storedLeafCount = count
    let room = max(0, min(usableSize, bytes.count) / 4 - 2)
    leaves = (0..<min(Int(count), room)).map { span.uint32(at: 8 + 4 * $0) ?? 0 }
  }
}
