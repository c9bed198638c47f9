internal import SQLiteFormat
internal import Salvage
internal import StoreFiles

/// One passage through all page images of a store: the first takes note of every value, the second replaces them.
///
/// Not for use from several threads at once.
final class ScrubRun {
  let survey: StoreSurvey
  let images: PageImages
  let rules: ColumnRules
  let pseudonyms: Pseudonyms

  /// Where the result goes; nil while notes are taken.
  let outputs: ScrubbedSet?
  var isReplacing: Bool { outputs != nil }

  var tally = ScrubTally()

  /// Single places that were changed because an original value lay across two pseudonyms.
  var changedPlaces: Int64 = 0

  let pageSize: Int
  let usableSize: Int
  let geometry: PayloadGeometry
  let encoding: TextEncoding

  private var mainDone = PageSet()
  private var logDone: [Bool]
  private var journalDone: [Bool]

  // Buffers that are used again for every page.
  var mask: PageMask
  var fields = RecordFields()
  var payload: [UInt8] = []
  var overflow: [UInt8]
  var output: [UInt8]

  private let progress: (Int64, Int64) -> Bool

  init(
    _ survey: StoreSurvey, _ images: PageImages, _ rules: ColumnRules, _ pseudonyms: Pseudonyms,
    into outputs: ScrubbedSet?,
    progress: @escaping (Int64, Int64) -> Bool
  ) {
    self.survey = survey
    self.images = images
    self.rules = rules
    self.pseudonyms = pseudonyms
    self.outputs = outputs
    self.progress = progress
    pageSize = survey.pageSize
    usableSize = survey.usableSize
    geometry = PayloadGeometry(usableSize: survey.usableSize)
    encoding = survey.encoding
    logDone = [Bool](repeating: false, count: images.frames.count)
    journalDone = [Bool](repeating: false, count: images.records.count)
    mask = PageMask(count: survey.pageSize)
    overflow = [UInt8](repeating: 0, count: survey.pageSize)
    output = [UInt8](repeating: 0, count: survey.pageSize)
    // The last row stands for values that belong to no known table.
    tally.fields =
      rules.rules.map { [ScrubReport.Counts](repeating: ScrubReport.Counts(), count: $0.count) } + [
        [ScrubReport.Counts()]
      ]
  }

  /// Goes through all images: live pages first, as they know best whose the overflow pages are.
  func run() throws(ScrubbingError) {
    let total = 2 * Int64(images.pageCount) + Int64(images.frames.count + images.records.count)
    var done: Int64 = 0
    var buffer = [UInt8](repeating: 0, count: pageSize)
    func visit(_ image: PageImage, onlyTrees: Bool) throws(ScrubbingError) {
      done += 1
      if done % 256 == 0, !progress(done, total) { throw .cancelled() }
      guard !isDone(image) else { return }
      do throws(FileError) {
        let present = try images.read(image, into: &buffer)
        if present == 0 { return }
        if let kind = treeKind(buffer, image) {
          try treePage(image, buffer, present: present, kind: kind.kind, start: kind.start)
        } else if !onlyTrees {
          try otherPage(image, buffer, present: present)
        }
      } catch {
        throw ScrubbingError(error)
      }
    }
    if images.pageCount > 0 {
      for page in 1...images.pageCount where survey.standing(of: page) == .live {
        try visit(.main(page), onlyTrees: true)
      }
    }
    for index in images.frames.indices { try visit(.log(index), onlyTrees: true) }
    for index in images.records.indices { try visit(.journal(index), onlyTrees: true) }
    if images.pageCount > 0 {
      for page in 1...images.pageCount { try visit(.main(page), onlyTrees: true) }
      for page in 1...images.pageCount { try visit(.main(page), onlyTrees: false) }
    }
    for index in images.frames.indices { try visit(.log(index), onlyTrees: false) }
    for index in images.records.indices { try visit(.journal(index), onlyTrees: false) }
  }

  /// The kind of b-tree page that an image is, and where its header begins; nil where its first byte is that of none.
  private func treeKind(_ bytes: [UInt8], _ image: PageImage) -> (kind: PageKind, start: Int)? {
    let number = images.page(of: image)
    if number == 1, bytes[0] != 13, bytes[0] != 10 {
      return PageKind(rawValue: bytes[DatabaseHeader.length]).map { ($0, DatabaseHeader.length) }
    }
    return PageKind(rawValue: bytes[0]).map { ($0, 0) }
  }

  // MARK: Accounts

  /// Whether an image was dealt with.
  func isDone(_ image: PageImage) -> Bool {
    switch image {
    case .main(let page): mainDone.contains(page)
    case .log(let index): logDone[index]
    case .journal(let index): journalDone[index]
    }
  }

  /// Takes an image off the list.
  func setDone(_ image: PageImage) {
    switch image {
    case .main(let page): _ = mainDone.insert(page)
    case .log(let index): logDone[index] = true
    case .journal(let index): journalDone[index] = true
    }
  }

  /// Ends an image: what nobody claimed is overwritten, and the page goes out.
  func finish(_ image: PageImage, _ page: inout [UInt8], present: Int) throws(FileError) {
    setDone(image)
    guard let outputs else { return }
    fillGaps(image, &page)
    let isLive: Bool
    if case .main(let number) = image { isLive = survey.standing(of: number) == .live } else { isLive = false }
    separate(&page, isSure: isLive)
    try outputs.write(image, page, count: present, at: images.offset(of: image))
  }

  /// Overwrites what nobody claimed and what is not zero.
  private func fillGaps(_ image: PageImage, _ page: inout [UInt8]) {
    // Taken out of the object, which would be asked for leave at every byte.
    let marks = mask.marks
    var gap: Int?
    for index in 0..<min(page.count, marks.count) {
      if marks[index] == PageMask.free, page[index] != 0 {
        page[index] = 0xff
        if gap == nil { gap = index }
      } else if let start = gap, marks[index] != PageMask.free {
        note(gapFrom: start, to: index, in: image)
        gap = nil
      }
    }
    if let gap { note(gapFrom: gap, to: page.count, in: image) }
  }

  private func note(gapFrom start: Int, to end: Int, in image: PageImage) {
    tally.gap(image.file, images.offset(of: image) + Int64(start), end - start)
  }

  /// Changes what was written where an original value happens to lie across two of them, or in what seemed to be structure.
  ///
  /// - Parameters:
  ///   - isOverflow: whether it is an overflow page, all of it text but for the first four bytes.
  ///   - isSure: whether the page's structure is beyond doubt, so that a value in it is there by chance.
  func separate(_ page: inout [UInt8], isOverflow: Bool = false, isSure: Bool) {
    var offset = 0
    var rounds = 0
    while rounds < 4096, let hit = pseudonyms.firstHit(page.span, from: offset, before: page.count) {
      rounds += 1
      let isChanged = change(&page, Array(hit), isOverflow: isOverflow, isSure: isSure, round: rounds)
      offset = isChanged ? max(0, hit.lowerBound - WatchedValues.longest) : hit.lowerBound + 1
    }
    if encoding != .utf8 { separateWide(&page, isOverflow: isOverflow, isSure: isSure) }
  }

  /// The same for text in UTF-16, whose characters may begin at even and at odd places.
  private func separateWide(_ page: inout [UInt8], isOverflow: Bool, isSure: Bool) {
    for start in 0...1 {
      var text: [UInt8] = []
      var places: [Int] = []
      for round in 0..<64 {
        text.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
        var index = start
        while index < page.count {
          let character = TextCoding.read(page.span, at: index, before: page.count, encoding)
          TextCoding.appendUTF8(page.span, index..<(index + character.length), encoding, to: &text)
          let place = encoding == .utf16LittleEndian ? index : min(index + 1, page.count - 1)
          while places.count < text.count { places.append(place) }
          index += max(2, character.length)
        }
        var isChanged = false
        var offset = 0
        while let hit = pseudonyms.firstHit(text.span, from: offset, before: text.count) {
          offset = hit.upperBound
          var bytes: [Int] = []
          for place in places[hit] where bytes.last != place { bytes.append(place) }
          if change(&page, bytes, isOverflow: isOverflow, isSure: isSure, round: round + 1) {
            isChanged = true
          } else {
            pseudonyms.exempt(text.span, hit)
          }
        }
        if !isChanged { break }
      }
    }
  }

  /// Changes one of some bytes, characters of text first; false where all of them must stay.
  private func change(_ page: inout [UInt8], _ places: [Int], isOverflow: Bool, isSure: Bool, round: Int) -> Bool {
    func mark(_ place: Int) -> UInt8 {
      isOverflow ? (place < 4 ? PageMask.kept : PageMask.text) : mask.marks[place]
    }
    let count = places.count
    for step in 0..<count {
      let place = places[(step + round) % count]
      guard mark(place) == PageMask.text else { continue }
      let byte = page[place]
      switch byte {
      case 0x30...0x39: page[place] = 0x30 + (byte - 0x30 + 3) % 10
      case 0x41...0x5a: page[place] = 0x41 + (byte - 0x41 + 11) % 26
      case 0x61...0x7a: page[place] = 0x61 + (byte - 0x61 + 11) % 26
      default: continue
      }
      changedPlaces += 1
      return true
    }
    for step in 0..<count {
      let place = places[(step + round) % count]
      guard mark(place) == PageMask.value, page[place] != 0 else { continue }
      page[place] = page[place] == 255 ? 1 : page[place] + 1
      changedPlaces += 1
      return true
    }
    if places.contains(where: { mark($0) == PageMask.stays }) || isSure {
      if let first = places.first, let last = places.last { pseudonyms.exempt(page.span, first..<(last + 1)) }
      return false
    }
    var isChanged = false
    for place in places where page[place] != 0xff {
      page[place] = 0xff
      isChanged = true
    }
    if isChanged { changedPlaces += 1 }
    return isChanged
  }
}

extension PageImage {
  /// The part of the store that it is in.
  var file: String {
    switch self {
    case .main: "main"
    case .log: "wal"
    case .journal: "journal"
    }
  }
}
