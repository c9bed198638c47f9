internal import SQLiteFormat

/// Follows the overflow pages of rows, and keeps account of whose they are.
final class OverflowChains {
  /// The pages of a chain that is whole.
  struct Chain {
    var places: [UInt32] = []

    /// The number of its last page.
    var lastPage: UInt32 = 0

    /// The bytes of the row on its last page.
    var usedOnLast = 0

    /// What its last page leads to; 0 where it ends there, as it should.
    var leadsOnTo: UInt32 = 0
  }

  enum Outcome {
    case whole(Chain)

    /// A page is missing, or is of another kind.
    case broken

    /// It is as long as it should be, and its last page leads on; nothing was claimed.
    case leadingOn(Chain)

    /// A part of a page is lost.
    case torn

    /// A page belongs to another row already.
    case shared

    /// It is whole, and something else leads to one of its pages too; nothing was claimed.
    case contested

    /// It goes on behind the end of the database.
    case behindEnd
  }

  /// What becomes of the pages of a chain that is whole.
  enum Claim {
    /// Nothing: they are only looked at.
    case none

    /// They become those of a tree's row, unless something else leads to one of them.
    case unlessContested(tree: Int)

    /// They become those of a tree's row, whatever else leads to them.
    case decided(tree: Int)

    /// They are the row's already; those of a tree's row stay so.
    case own(tree: Int?)

    /// The tree that the pages are claimed for; nil for none.
    var tree: Int? {
      switch self {
      case .none: nil
      case .unlessContested(let tree), .decided(let tree): tree
      case .own(let tree): tree
      }
    }

    /// Whether the pages are the row's already.
    var isOwn: Bool { if case .own = self { true } else { false } }

    /// Whether the claim gives way to another one.
    var yields: Bool { if case .unlessContested = self { true } else { false } }
  }

  let reader: PageReader

  /// Pages whose beginning was overwritten when they became part of the list of free pages.
  var overwritten = PageSet()

  /// The last page of the database, where the file is longer than it.
  var endOfDatabase = UInt32.max

  /// Whether pages are known to have changed places, so that a chain that seems whole may be made of two.
  var checksSwaps = false

  private var buffer: [UInt8]

  /// How many pages there are from a page to the end of what it leads to, as far as that was needed; -1 where it leads
  /// astray.
  private var lengths: [UInt32: Int] = [:]

  /// How many pages had changed places when that was found out.
  private var movedCount = 0

  /// What the pointer maps say; nil until that is asked for.
  private var pointerMaps: PointerMaps?

  private static let lengthLimit = 1 << 16

  init(_ reader: PageReader) {
    self.reader = reader
    buffer = reader.makeBuffer()
  }

  /// The same account with the pages of another reader.
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
  ///   - length: the bytes of the whole payload; `payload` has its beginning.
  ///   - claim: what becomes of the pages.
  func follow(
    from first: UInt32, length: Int, into payload: inout [UInt8], map: inout PageMap, claim: Claim = .none
  ) throws(SalvageError) -> Outcome {
    let perPage = reader.usableSize - 4
    // The buffer is taken out for the time being, so that nothing else can touch it.
    var buffer: [UInt8] = []
    swap(&buffer, &self.buffer)
    defer { swap(&buffer, &self.buffer) }
    // A length that the file cannot hold is no length.
    guard length / perPage <= Int(reader.pageCount) else { return .broken }
    var page = first
    var chain = Chain()
    var isContested = false
    while payload.count < length {
      if let obstacle = obstacle(at: page, map, isOwn: claim.isOwn) { return obstacle }
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
    return .whole(chain)
  }

  /// Why a page cannot be one of a chain, by what became of it; nil where it can.
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
  ///   - used: the bytes of the row on it.
  ///   - left: how many pages the row needs behind it.
  private func link(
    at page: UInt32, used: Int, left: Int, _ buffer: inout [UInt8]
  ) throws(SalvageError) -> Link {
    let place = reader.moved[page] ?? page
    guard try reader.read(page, into: &buffer) else { return .broken }
    let bytes = buffer.span
    let next = bytes.uint32(at: 0) ?? 0
    if let hole = reader.hole(in: place) ?? reader.uncertainBytes(of: place), hole.lowerBound < 4 + used {
      return .torn
    }
    if !TornSectors.ranges(bytes, content: 0..<(4 + used)).isEmpty { return .torn }
    // The length of the row says where its chain ends; what the last page leads to is for the caller to judge.
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

  /// Whether a page leads where it should although another one leads where it would be expected to: SQLite took free pages
  /// in such an order.
  ///
  /// The pointer maps know. Without them the lengths tell, where the rest of the chain is as long as the row needs it and
  /// what the other page leads to is not.
  private func isOwnLink(from page: UInt32, to next: UInt32, left: Int) throws(SalvageError) -> Bool {
    if pointerMaps == nil { pointerMaps = try PointerMaps(reader) }
    if let entry = try pointerMaps?.entry(for: next) {
      return entry.kind == .overflowNext && entry.parent == page
    }
    guard try length(from: next) == left, let other = try length(from: page + 1) else { return false }
    return other != left
  }

  /// How many pages there are from a page to the one that leads no further; nil where they lead astray.
  private func length(from first: UInt32) throws(SalvageError) -> Int? {
    if movedCount != reader.moved.count {
      lengths = [:]
      movedCount = reader.moved.count
    }
    var pages: [UInt32] = []
    var page = first
    var head = reader.makeBuffer()
    while page != 0, lengths[page] == nil {
      // A circle ends at the limit.
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

  /// Whether a page stands at its own place too, so that it was written here over another one.
  private func isCopy(_ place: UInt32, of other: UInt32, _ bytes: [UInt8]) throws(SalvageError) -> Bool {
    guard other >= 2, other != place else { return false }
    var original = reader.makeBuffer()
    return try reader.readPlace(other, into: &original) && original == bytes
  }

  /// Whether the content at a page's place leads to another page: then what leads on from there stands here.
  private func leads(from other: UInt32, to page: UInt32, apartFrom own: UInt32) throws(SalvageError) -> Bool {
    guard other >= 2, other != own, reader.moved[other] == nil, reader.moved[own] == nil else { return false }
    var head = reader.makeBuffer()
    guard try reader.readPlace(other, into: &head) else { return false }
    return head.span.uint32(at: 0) == page
  }
}

/// Sectors of a page that were lost and are zeros now.
///
/// A value of zeros is no loss. A lost sector begins and ends at a multiple of 512 bytes, and the bytes before and behind
/// it are those of other content; a value of zeros does so only by chance.
enum TornSectors {
  static let sector = 512

  /// How many zeros may stand before and behind a lost sector as part of other content.
  private static let slack = 16

  /// The lost ranges of a page, in ascending order.
  ///
  /// - Parameters:
  ///   - content: the bytes that hold content; zeros outside of it are no loss and tell nothing.
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
