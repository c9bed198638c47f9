/// The first and the last rowid of each page: eight bytes a page where those of neighbours are near to each other.
///
/// Pages are taken together in groups, each with a number that its keys are told from. Where the keys of a group lie too
/// far apart, as on pages that only look like pages, sixteen bytes more are taken for each of its pages.
package struct PageKeys {
  private static let pagesPerGroup = 64

  /// The bits for the distance of the last key from the first; the others are for that of the first from the base.
  private static let spanBits: UInt64 = 28
  private static let spanMask: UInt64 = 1 << spanBits - 1
  private static let largestDistance: UInt64 = 1 << (64 - spanBits) - 1

  /// Both distances of each page; 0 for a page whose keys are both 0.
  private var distances: [UInt64]

  /// What the keys of each group are told from; 0 until one is set.
  private var bases: [Int64]

  /// Where the keys of groups that lie far apart begin in `whole`, by the number of the group.
  private var places: [Int: Int] = [:]
  private var whole: [Int64] = []

  /// Keys of a number of pages, all 0.
  package init(count: Int) {
    distances = [UInt64](repeating: 0, count: count)
    bases = [Int64](repeating: 0, count: count / Self.pagesPerGroup + 1)
  }

  /// The keys of a page.
  package subscript(page: Int) -> (first: Int64, last: Int64) {
    let group = page / Self.pagesPerGroup
    if !places.isEmpty, let place = places[group] {
      let start = place + 2 * (page % Self.pagesPerGroup)
      return (whole[start], whole[start + 1])
    }
    let packed = distances[page]
    guard packed != 0 else { return (0, 0) }
    let first = bases[group] &+ Int64(packed >> Self.spanBits)
    return (first, first &+ Int64(packed & Self.spanMask))
  }

  /// Gives a page its keys.
  package mutating func set(_ page: Int, first: Int64, last: Int64) {
    let group = page / Self.pagesPerGroup
    if let place = places[group] {
      let start = place + 2 * (page % Self.pagesPerGroup)
      whole[start] = first
      whole[start + 1] = last
      return
    }
    if first == 0, last == 0 {
      distances[page] = 0
      return
    }
    // Half of the numbers are left for smaller keys; what runs over there is told right again when it is added.
    if bases[group] == 0 {
      let base = first &- Int64(Self.largestDistance / 2)
      bases[group] = base == 0 ? 1 : base
    }
    let distance = UInt64(bitPattern: first &- bases[group])
    let span = UInt64(bitPattern: last &- first)
    guard distance > 0, distance <= Self.largestDistance, span <= Self.spanMask else {
      widen(group)
      set(page, first: first, last: last)
      return
    }
    distances[page] = distance << Self.spanBits | span
  }

  private mutating func widen(_ group: Int) {
    let start = group * Self.pagesPerGroup
    let place = whole.count
    for page in start..<(start + Self.pagesPerGroup) {
      let keys = page < distances.count ? self[page] : (first: 0, last: 0)
      whole.append(keys.first)
      whole.append(keys.last)
    }
    places[group] = place
  }
}
