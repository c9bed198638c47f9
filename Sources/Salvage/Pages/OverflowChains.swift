internal import SQLiteFormat

/// Follows the overflow pages of rows, and keeps account of whose they are.
final class OverflowChains {
  /// How a chain ended.
  enum Outcome {
    case whole

    /// A page is missing, is of another kind, or leads on where the chain should end.
    case broken

    /// A part of a page is lost.
    case torn

    /// A page belongs to another row already.
    case shared

    /// It is whole, and something else leads to one of its pages too; nothing was claimed.
    case contested

    /// It goes on behind the end of the database.
    case behindEnd
  }

  let reader: PageReader

  /// Pages whose beginning was overwritten when they became part of the list of free pages.
  var overwritten = PageSet()

  /// The last page of the database, where the file is longer than it.
  var endOfDatabase = UInt32.max

  /// Whether pages are known to have changed places, so that a chain that seems whole may be made of two.
  var checksSwaps = false

  /// The last page of the chain that was followed last, and the bytes of the row on it.
  private(set) var end: (page: UInt32, used: Int) = (0, 0)

  /// The places of the pages of the chain that was followed last, as far as it was whole.
  private(set) var places: [UInt32] = []

  /// Whether it has been decided whose contested pages are.
  var isDecided = false

  private var buffer: [UInt8]

  init(_ reader: PageReader) {
    self.reader = reader
    buffer = reader.makeBuffer()
  }

  /// Appends the rest of a payload.
  ///
  /// - Parameters:
  ///   - first: the first overflow page.
  ///   - length: the bytes of the whole payload; `payload` has its beginning.
  ///   - owner: whose the pages become, unless something else claims one of them; nil to look only.
  ///   - isOwn: whether the pages are the row's already.
  func follow(
    from first: UInt32, length: Int, into payload: inout [UInt8], map: inout PageMap, owner: Int?, isOwn: Bool = false
  ) throws(SalvageError) -> Outcome {
    let perPage = reader.usableSize - 4
    // The buffer is taken out for the time being, so that nothing else can touch it.
    var buffer: [UInt8] = []
    swap(&buffer, &self.buffer)
    defer { swap(&buffer, &self.buffer) }
    var page = first
    var pages: [UInt32] = []
    var isContested = false
    // A length that the file cannot hold is no length.
    guard length / perPage <= Int(reader.pageCount) else { return .broken }
    while payload.count < length {
      guard page >= 2, page <= reader.pageCount else { return .broken }
      if page > endOfDatabase, !isOwn { return map.look(page) == .linked ? .behindEnd : .broken }
      let place = reader.moved[page] ?? page
      switch map.fate(place) {
      case .unclaimed, .dead, .free:
        if overwritten.contains(place) { return .broken }
      case .overflow:
        guard isOwn else { return .shared }
      case .tree, .placed, .damaged, .special: return .broken
      }
      guard try reader.read(page, into: &buffer) else { return .broken }
      let bytes = buffer.span
      let next = bytes.uint32(at: 0) ?? 0
      let used = min(perPage, length - payload.count)
      let isLast = payload.count + used >= length
      if reader.presentCount(place) < 4 + used { return .torn }
      if !TornSectors.ranges(bytes, content: 0..<(4 + used)).isEmpty { return .torn }
      guard isLast ? next == 0 : next >= 2 && next <= reader.pageCount && next != page else { return .broken }
      if checksSwaps, !isLast, next != page + 1 {
        if try leads(from: next - 1, to: page + 1, apartFrom: page) { return .broken }
        if try isCopy(place, of: next - 1, buffer) { return .broken }
      }
      payload.append(contentsOf: buffer[4..<(4 + used)])
      pages.append(place)
      if map.contested.contains(page) { isContested = true }
      end = (page, used)
      guard pages.count <= Int(reader.pageCount) else { return .broken }
      page = next
    }
    if let owner {
      for page in pages where !isOwn {
        if map.fate(page) == .overflow { return .shared }
      }
      if isContested, !isOwn, !isDecided {
        places = pages
        return .contested
      }
      for page in pages { map.claim(page, .overflow, owner: owner) }
    }
    places = pages
    return .whole
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
