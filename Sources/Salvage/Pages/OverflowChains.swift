internal import SQLiteFormat

/// Follows overflow chains, and tracks their owners.
final class OverflowChains {
  struct Chain {
    var places: [UInt32] = []

    var lastPage: UInt32 = 0

    /// The row's bytes on the last page.
    var usedOnLast = 0

    /// The last page's successor; 0 in a sound chain.
    var leadsOnTo: UInt32 = 0
  }

  enum Outcome {
    case whole(Chain)

    case broken

    /// Complete, but the last page has a successor; no page was claimed.
    case leadingOn(Chain)

    case torn

    /// A page already belongs to another row.
    case shared

    /// Complete, but with competing links to a page; no page was claimed.
    case contested

    case behindEnd
  }

  enum Claim {
    case none

    /// Claims for a tree unless links compete.
    case unlessContested(tree: Int)

    /// Claims for a tree in spite of competing links.
    case decided(tree: Int)

    /// Confirms pages that the row has already.
    case own(tree: Int?)

    var tree: Int? {
      switch self {
      case .none: nil
      case .unlessContested(let tree), .decided(let tree): tree
      case .own(let tree): tree
      }
    }

    var isOwn: Bool { if case .own = self { true } else { false } }

    var isDecided: Bool { if case .decided = self { true } else { isOwn } }

    var yields: Bool { if case .unlessContested = self { true } else { false } }
  }

  let reader: PageReader

  /// Pages with their beginning overwritten by the freelist.
  var overwritten = PageSet()

  var endOfDatabase = UInt32.max

  /// Whether pages were swapped, so that an apparently whole chain may combine two.
  var checksSwaps = false

  private var buffer: [UInt8]

  /// Cached chain lengths; -1 for broken links.
  private var lengths: [UInt32: Int] = [:]

  /// The number of moved pages when `lengths` was computed.
  private var movedCount = 0

  private var pointerMaps: PointerMaps?

  private static let lengthLimit = 1 << 16

  /// The pages read for chains that no row got.
  private var unclaimed = PageSet()

  /// The number of such readings.
  private var unclaimedReadings = 0

  /// The limit of ``unclaimedReadings``, as any number of rows can name one chain; past it a page is read once.
  private var readingLimit: Int { 4 * Int(reader.pageCount) + Self.lengthLimit }

  init(_ reader: PageReader) {
    self.reader = reader
    buffer = reader.makeBuffer()
  }

  func reading(_ reader: PageReader) -> OverflowChains {
    let chains = OverflowChains(reader)
    chains.overwritten = overwritten
    chains.endOfDatabase = endOfDatabase
    chains.checksSwaps = checksSwaps
    return chains
  }

  /// Appends the rest of a payload.
  ///
  /// - Parameters:
  ///   - first: the first overflow page.
  ///   - length: the full payload length; `payload` has the beginning.
  func follow(
    from first: UInt32, length: Int, into payload: inout [UInt8], map: inout PageMap, claim: Claim = .none
  ) throws -> Outcome {
    let perPage = reader.usableSize - 4
    // Takes the buffer for exclusive use.
    var buffer: [UInt8] = []
    swap(&buffer, &self.buffer)
    defer { swap(&buffer, &self.buffer) }
    guard length / perPage <= Int(reader.pageCount) else { return .broken }
    let readsOnce = unclaimedReadings > readingLimit && !claim.isDecided
    var page = first
    var chain = Chain()
    var isContested = false
    var isClaimed = false
    defer {
      if !isClaimed {
        unclaimedReadings += chain.places.count
        for place in chain.places { _ = unclaimed.insert(place) }
      }
    }
    while payload.count < length {
      if let obstacle = obstacle(at: page, map, isOwn: claim.isOwn) { return obstacle }
      if readsOnce, unclaimed.contains(reader.moved[page] ?? page) { return .broken }
      let used = min(perPage, length - payload.count)
      let next: UInt32
      let left = (length - payload.count - used + perPage - 1) / perPage
      switch try link(at: page, used: used, left: left, &buffer) {
      case .next(let number): next = number
      case .torn: return .torn
      case .broken: return .broken
      }
      payload.append(contentsOf: buffer[4..<(4 + used)])
      chain.places.append(reader.moved[page] ?? page)
      if map.contested.contains(page) { isContested = true }
      (chain.lastPage, chain.usedOnLast) = (page, used)
      guard chain.places.count <= Int(reader.pageCount) else { return .broken }
      page = next
    }
    if page != 0 {
      chain.leadsOnTo = page
      return .leadingOn(chain)
    }
    guard let tree = claim.tree else { return .whole(chain) }
    if !claim.isOwn, chain.places.contains(where: { map.fate($0) == .overflow }) { return .shared }
    if isContested, claim.yields { return .contested }
    for place in chain.places { map.claim(place, .overflow, owner: tree) }
    isClaimed = true
    return .whole(chain)
  }

  private func obstacle(at page: UInt32, _ map: PageMap, isOwn: Bool) -> Outcome? {
    guard page >= 2, page <= reader.pageCount else { return .broken }
    if page > endOfDatabase, !isOwn { return map.look(page) == .linked ? .behindEnd : .broken }
    let place = reader.moved[page] ?? page
    switch map.fate(place) {
    case .unclaimed, .dead, .free: return overwritten.contains(place) ? .broken : nil
    case .overflow: return isOwn ? nil : .shared
    case .tree, .placed, .damaged, .special: return .broken
    }
  }

  private enum Link {
    case next(UInt32)
    case torn
    case broken
  }

  /// Reads a page of a chain.
  ///
  /// - Parameters:
  ///   - used: the row's bytes on it.
  ///   - left: the number of pages to follow.
  private func link(
    at page: UInt32, used: Int, left: Int, _ buffer: inout [UInt8]
  ) throws -> Link {
    let place = reader.moved[page] ?? page
    guard try reader.read(page, into: &buffer) else { return .broken }
    let bytes = buffer.span
    let next = bytes.uint32(at: 0) ?? 0
    if let hole = reader.hole(in: place) ?? reader.uncertainBytes(of: place), hole.lowerBound < 4 + used {
      return .torn
    }
    if !TornSectors.ranges(bytes, content: 0..<(4 + used)).isEmpty { return .torn }
    // The row's length ends the chain; the caller judges a further link.
    guard left > 0 else { return .next(next) }
    guard next >= 2, next <= reader.pageCount, next != page else { return .broken }
    if checksSwaps, next != page + 1 {
      if try leads(from: next - 1, to: page + 1, apartFrom: page), try !isOwnLink(from: page, to: next, left: left) {
        return .broken
      }
      if try isCopy(place, of: next - 1, buffer) { return .broken }
    }
    return .next(next)
  }

  /// Whether a link is valid although another page links to the expected successor: SQLite may reuse free pages in such
  /// an order.
  ///
  /// Pointer maps decide, else the lengths, if only this chain has the required one.
  private func isOwnLink(from page: UInt32, to next: UInt32, left: Int) throws -> Bool {
    if pointerMaps == nil { pointerMaps = try PointerMaps(reader) }
    if let entry = try pointerMaps?.entry(for: next) {
      return entry.kind == .overflowNext && entry.parent == page
    }
    guard try length(from: next) == left, let other = try length(from: page + 1) else { return false }
    return other != left
  }

  /// The number of pages to the end of a chain; nil for broken links.
  private func length(from first: UInt32) throws -> Int? {
    if movedCount != reader.moved.count {
      lengths = [:]
      movedCount = reader.moved.count
    }
    var pages: [UInt32] = []
    var page = first
    var head = reader.makeBuffer()
    while page != 0, lengths[page] == nil {
      // The limit ends cycles.
      guard page >= 2, page <= reader.pageCount, lengths.count + pages.count < Self.lengthLimit,
        try reader.read(page, into: &head)
      else {
        for page in pages { lengths[page] = -1 }
        return nil
      }
      pages.append(page)
      page = head.span.uint32(at: 0) ?? 0
    }
    let rest = page == 0 ? 0 : lengths[page] ?? -1
    for (place, page) in pages.reversed().enumerated() { lengths[page] = rest < 0 ? -1 : rest + place + 1 }
    let length = pages.isEmpty ? rest : lengths[first] ?? -1
    return length < 0 ? nil : length
  }

  private func isCopy(_ place: UInt32, of other: UInt32, _ bytes: [UInt8]) throws -> Bool {
    guard other >= 2, other != place else { return false }
    var original = reader.makeBuffer()
    return try reader.readPlace(other, into: &original) && original == bytes
  }

  /// Whether another page's content links to a page, so that two were swapped.
  private func leads(from other: UInt32, to page: UInt32, apartFrom own: UInt32) throws -> Bool {
    guard other >= 2, other != own, reader.moved[other] == nil, reader.moved[own] == nil else { return false }
    var head = reader.makeBuffer()
    guard try reader.readPlace(other, into: &head) else { return false }
    return head.span.uint32(at: 0) == page
  }
}

/// Detects lost sectors, now zeros.
///
/// A lost sector begins and ends at multiples of 512 bytes, next to other content; a value of zeros does so only by
/// chance.
enum TornSectors {
  static let sector = 512

  /// The zeros that other content may contribute at either end.
  private static let slack = 16

  static func ranges(_ bytes: Span<UInt8>, content: Range<Int>) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var start = content.lowerBound / sector * sector
    while start + sector <= bytes.count, start < content.upperBound {
      guard isZero(bytes, start, start + sector) else {
        start += sector
        continue
      }
      var end = start + sector
      while end + sector <= bytes.count, isZero(bytes, end, end + sector) { end += sector }
      var before = start
      while before > content.lowerBound, bytes[before - 1] == 0 { before -= 1 }
      var behind = end
      while behind < content.upperBound, bytes[behind] == 0 { behind += 1 }
      let isSharpBefore = start - before < slack || before <= content.lowerBound
      let isSharpBehind = behind - end < slack || end >= content.upperBound
      if isSharpBefore, isSharpBehind { ranges.append(start..<end) }
      start = end
    }
    return ranges
  }

  @inline(__always)
  private static func isZero(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
    var index = start
    while index < end {
      if bytes[index] != 0 { return false }
      index &+= 1
    }
    return true
  }
}
