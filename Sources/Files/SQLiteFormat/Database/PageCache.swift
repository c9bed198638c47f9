/// The pages that were read last: at most one for each slot, and about a mebibyte in all.
struct PageCache {
  private var slots: [Page?]

  init(pageSize: Int) {
    let count = max(16, min(256, (1 << 20) / max(512, pageSize)))
    slots = [Page?](repeating: nil, count: count)
  }

  func page(_ number: UInt32) -> Page? {
    guard let page = slots[Int(number) & (slots.count - 1)], page.number == number else { return nil }
    return page
  }

  mutating func insert(_ page: Page) {
    slots[Int(page.number) & (slots.count - 1)] = page
  }
}
