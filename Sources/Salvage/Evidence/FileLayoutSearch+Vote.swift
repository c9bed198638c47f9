import Platform
internal import SQLiteFormat

extension FileLayoutSearch {
  /// Statistics of sampled pages at one page size and base.
  struct Vote {
    var size: Int
    var base: Int64

    var assumedReserved = 0

    /// B-tree pages with cells.
    var pages = 0

    /// Pages that are neither b-tree pages nor begin with a valid page number.
    var strangePages = 0

    var firstPage = Int64.max

    /// Pages with content up to their end or to possible reserved bytes.
    ///
    /// Hardly any page qualifies at too large a page size; at too small a size no page is a b-tree page at all.
    var filled = 0

    /// Empty leaves, not counted in ``pages``.
    var emptyPages = 0

    /// Page counts by bytes after the content.
    var reservedCounts: [Int: Int] = [:]

    /// Texts resembling UTF-8, UTF-16LE and UTF-16BE.
    var encodings = [0, 0, 0]

    /// Rows of `sqlite_schema` with their first word in UTF-8, UTF-16LE and UTF-16BE.
    var schemaWords = [0, 0, 0]

    var oddTexts = 0

    /// The most common plausible number of reserved bytes.
    var mostReserved: Int {
      reservedCounts.filter { $0.key <= 255 }.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key ?? 0
    }

    /// Whether nearly all pages have exactly this size.
    var isConvincing: Bool { filled > 0 && 4 * filled >= 3 * (pages + emptyPages) }

    /// The encoding of most schema words; nil without a majority.
    var schemaEncoding: TextEncoding? {
      let most = schemaWords.max() ?? 0
      guard most > 0, schemaWords.reduce(0, +) - most < most, let index = schemaWords.firstIndex(of: most) else {
        return nil
      }
      return [.utf8, .utf16LittleEndian, .utf16BigEndian][index]
    }

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

  func bestVote(residue: Int64) throws -> Vote? {
    var best: Vote?
    for size in sizesElsewhere + Self.pageSizes {
      let vote = try vote(size: size, base: residue)
      guard vote.pages > 0 else { continue }
      if (vote.filled, vote.pages) > (best?.filled ?? 0, best?.pages ?? 0) { best = vote }
    }
    return best
  }

  /// The reserved bytes per page: the header's number if enough pages agree, else the most common.
  func reserved(_ header: DatabaseHeader?, _ vote: Vote) throws -> Int {
    let stated = header.flatMap { $0.hasUsualFractions ? Int($0.reservedBytes) : nil }
    var best: (reserved: Int, pages: Int)?
    for reserved in [stated ?? vote.mostReserved, vote.mostReserved, 0] where vote.size - reserved >= 480 {
      guard reserved != best?.reserved else { continue }
      let own = reserved == 0 ? vote : try self.vote(size: vote.size, base: vote.base, reserved: reserved)
      let pages = own.reservedCounts[reserved] ?? 0
      if best.map({ pages > $0.pages + 1 }) ?? true { best = (reserved, pages) }
    }
    return best?.reserved ?? 0
  }

  /// Samples runs of pages across the file.
  func vote(size: Int, base: Int64, reserved: Int = 0) throws -> Vote {
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
      let got = try main.read(at: offset, length: buffer.count, into: &buffer)
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

  /// Tries all offsets, for files with foreign leading bytes and no header.
  func unalignedVote() throws -> Vote? {
    var counts: [Int: [Int: Int]] = [:]
    for part in 0..<4 {
      let start = main.count / 4 * Int64(part)
      let sample = try main.bytes(at: start, length: 256 << 10)
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
    // A fixed order, so that results are reproducible.
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
  /// The encoding of the header, else of the given schema or backup, unless the texts contradict it.
  ///
  /// The schema's words `table` and `index` decide first. Otherwise, UTF-16 has no odd byte counts, and only UTF-16 has
  /// a zero in every second byte.
  func encoding(_ header: DatabaseHeader?, _ vote: Vote) -> TextEncoding {
    if let written = vote.schemaEncoding { return written }
    guard let stated = header == nil ? encodingElsewhere : header?.encoding else { return vote.encoding }
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
