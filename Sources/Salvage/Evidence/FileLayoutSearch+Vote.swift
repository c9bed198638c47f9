import Platform
internal import SQLiteFormat

extension FileLayoutSearch {
  /// What the pages of one size and place look like.
  struct Vote {
    var size: Int
    var base: Int64

    /// The bytes at the end of each page that are taken for reserved, by which payloads are divided between pages.
    var assumedReserved = 0

    /// Pages of b-trees among those looked at.
    var pages = 0

    /// Pages that are none of a b-tree, and begin with no number of a page either.
    var strangePages = 0

    /// The offset of the first of them.
    var firstPage = Int64.max

    /// Pages whose content reaches to their end, or to bytes that may be reserved; empty ones count that say so.
    ///
    /// With a page size that is too large hardly any page does, with one that is too small none is a page at all.
    var filled = 0

    /// Empty leaves; they are not among ``pages``.
    var emptyPages = 0

    /// The bytes that those pages leave at their ends, and empty ones say that they do.
    var reservedCounts: [Int: Int] = [:]

    /// Texts that look like UTF-8, UTF-16 little-endian and UTF-16 big-endian.
    var encodings = [0, 0, 0]

    /// Rows of `sqlite_schema` whose first word is in UTF-8, UTF-16 little-endian and UTF-16 big-endian.
    var schemaWords = [0, 0, 0]

    /// Texts whose number of bytes is odd.
    var oddTexts = 0

    /// What most pages leave at their ends of what can be reserved; the least of several.
    var mostReserved: Int {
      reservedCounts.filter { $0.key <= 255 }.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key ?? 0
    }

    /// Whether nearly all that looks like a page is one of just this size.
    var isConvincing: Bool { filled > 0 && 4 * filled >= 3 * (pages + emptyPages) }

    /// The encoding of the schema's own words; nil where there are none, or some in several.
    var schemaEncoding: TextEncoding? {
      let most = schemaWords.max() ?? 0
      guard most > 0, schemaWords.reduce(0, +) - most < most, let index = schemaWords.firstIndex(of: most) else {
        return nil
      }
      return [.utf8, .utf16LittleEndian, .utf16BigEndian][index]
    }

    /// How much speaks for the size: pages that are filled, and the number of pages in the header.
    func worth(_ header: DatabaseHeader, length: Int64) -> Double {
      let isLength = header.pageCount > 0 && Int64(header.pageCount) * Int64(size) == length - base
      return Double(filled) + 0.25 * Double(pages) / Double(1 + pages) + (isLength ? 1.5 : 0)
    }

    var encoding: TextEncoding {
      if encodings[1] > encodings[0], encodings[1] >= encodings[2] { return .utf16LittleEndian }
      if encodings[2] > encodings[0] { return .utf16BigEndian }
      return .utf8
    }
  }

  func bestVote(residue: Int64) throws(SalvageError) -> Vote? {
    var best: Vote?
    for size in sizesElsewhere + Self.pageSizes {
      let vote = try vote(size: size, base: residue)
      guard vote.pages > 0 else { continue }
      if (vote.filled, vote.pages) > (best?.filled ?? 0, best?.pages ?? 0) { best = vote }
    }
    return best
  }

  /// The bytes reserved at the end of each page: what most pages end before, and what the header states where as many do.
  func reserved(_ header: DatabaseHeader?, _ vote: Vote) throws(SalvageError) -> Int {
    let stated = header.flatMap { $0.hasUsualFractions ? Int($0.reservedBytes) : nil }
    var best: (reserved: Int, pages: Int)?
    for reserved in [stated ?? vote.mostReserved, vote.mostReserved, 0] where vote.size - reserved >= 480 {
      guard reserved != best?.reserved else { continue }
      let own = reserved == 0 ? vote : try self.vote(size: vote.size, base: vote.base, reserved: reserved)
      let pages = own.reservedCounts[reserved] ?? 0
      // A single page that says otherwise may be damaged.
      if best.map({ pages > $0.pages + 1 }) ?? true { best = (reserved, pages) }
    }
    return best?.reserved ?? 0
  }

  /// Looks at up to 256 runs of pages, evenly spread over the file.
  func vote(size: Int, base: Int64, reserved: Int = 0) throws(SalvageError) -> Vote {
    var vote = Vote(size: size, base: base)
    vote.assumedReserved = reserved
    let count = (main.count - base) / Int64(size)
    guard count > 0 else { return vote }
    let run = max(1, 65536 / size)
    let step = max(Int64(run), count / 64)
    var buffer = [UInt8](repeating: 0, count: run * size)
    var page: Int64 = 0
    while page < count {
      let offset = base + page * Int64(size)
      let got = try main.piece(at: offset, length: buffer.count, into: &buffer)
      for index in 0..<(got / size) {
        let bytes = buffer.span.extracting((index * size)..<((index + 1) * size))
        if TreePageLook.add(bytes, isFirst: page == 0 && index == 0, to: &vote) {
          vote.firstPage = min(vote.firstPage, offset + Int64(index * size))
        } else if bytes.uint32(at: 0).map({ Int64($0) > count }) ?? false {
          vote.strangePages += 1
        }
      }
      page += step
    }
    return vote
  }

  /// Tries every offset of samples of the file: for files that begin with other bytes and whose header is gone too.
  func unalignedVote() throws(SalvageError) -> Vote? {
    var counts: [Int: [Int: Int]] = [:]
    for part in 0..<4 {
      let start = main.count / 4 * Int64(part)
      let sample = try main.piece(at: start, length: 256 << 10)
      for size in Self.pageSizes where size >= 1024 {
        var offset = 0
        while offset + size <= sample.count {
          if [2, 5, 10, 13].contains(sample[offset]) {
            var vote = Vote(size: size, base: 0)
            if TreePageLook.add(
              sample.span.extracting(offset..<(offset + size)), isFirst: false, to: &vote)
            {
              counts[size, default: [:]][Int((start + Int64(offset)) % Int64(size)), default: 0] += 1
              offset += size - 1
            }
          }
          offset += 1
        }
      }
    }
    var best: (size: Int, residue: Int, count: Int)?
    // In a fixed order, so that the same file is always read the same way.
    for (size, residues) in counts.sorted(by: { $0.key < $1.key }) {
      for (residue, count) in residues.sorted(by: { $0.key < $1.key }) where count > (best?.count ?? 1) {
        best = (size, residue, count)
      }
    }
    guard let best else { return nil }
    let vote = try vote(size: best.size, base: Int64(best.residue))
    return vote.pages > 0 ? vote : nil
  }
}

extension FileLayoutSearch {
  /// The encoding that the header states, unless the texts contradict it.
  ///
  /// The schema's own words go first: `table` and `index` are written in the encoding of all text. Where none of them can be
  /// read, UTF-16 has no odd number of bytes, and no other encoding a zero in every second byte.
  func encoding(_ header: DatabaseHeader?, _ vote: Vote) -> TextEncoding {
    if let written = vote.schemaEncoding { return written }
    guard let stated = header?.encoding else { return vote.encoding }
    switch stated {
    case .utf8:
      let wide = max(vote.encodings[1], vote.encodings[2])
      return wide > 8 && wide > 4 * vote.encodings[0] ? vote.encoding : stated
    case .utf16LittleEndian, .utf16BigEndian:
      if vote.oddTexts > 4, vote.oddTexts * 10 > vote.encodings.reduce(0, +) { return .utf8 }
      let (own, other) =
        stated == .utf16BigEndian
        ? (vote.encodings[2], vote.encodings[1]) : (vote.encodings[1], vote.encodings[2])
      return other > 8 && other > 4 * own ? (stated == .utf16BigEndian ? .utf16LittleEndian : .utf16BigEndian) : stated
    }
  }
}
