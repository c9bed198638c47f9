internal import SQLiteFormat

/// Makes the pseudonyms of a store's values: first takes note of all of them, then replaces them in place.
///
/// A pseudonym follows from the value and the key alone, so that equal values have equal ones. Those of indexed columns
/// keep their order besides and are made when all values are known. Not for use from several threads at once.
final class Pseudonyms {
  /// What became of a value.
  enum Outcome {
    /// It was replaced by what follows from it alone.
    case replaced

    /// It was replaced by what keeps its order, and must stay exactly so.
    case ordered

    /// It is a date and was shifted.
    case shifted

    /// It stays by a rule: small numbers, keys, references to files.
    case kept

    /// It stays but for some places, in which an app's values were replaced.
    case partly([Range<Int>])

    /// It was overwritten with filling.
    case dropped

    /// There is nothing in it: NULL, constants, empty text.
    case nothing
  }

  /// Text up to this many characters is replaced as a whole; longer text word by word, so that its pieces on different
  /// pages can still be told to belong together.
  static let longestWhole = 64

  let encoding: TextEncoding
  let function: KeyedFunction
  var watched: WatchedValues
  var orderedTexts: OrderedTexts
  var orderedNumbers = OrderedNumbers()
  var dates = DateShift()
  var domains: NumberDomains

  /// The names of the schema and the model, which are not the user's.
  let words: Set<[UInt8]>

  /// The app's model, packed as the store carries it; nil where none could be read.
  let model: [UInt8]?

  /// Whether damage makes it doubtful which table a page belongs to, so that only words of the schema and the model stay in
  /// bookkeeping.
  let isDamaged: Bool

  /// Whether dates are replaced like other numbers, in their order, because no shift fits them all.
  let ranksDates: Bool

  /// What is kept and may be found, as far as there is room for it.
  var keptBytes: [UInt8] = []
  static let keptLimit = 4 << 20

  /// How many integers found no pseudonym that is none of the store's; a scrub with any does not finish.
  var stuckNumbers: Int64 = 0

  /// How many other numbers have one that is a number of the store's elsewhere, since their order left no other.
  var tightNumbers: Int64 = 0

  /// Buffers for text in UTF-8 and for the digits of a number, and for a search.
  var canonical: [UInt8] = []
  private var block = ScanBlock()

  /// Pseudonyms under a key, of nothing yet.
  ///
  /// - Parameter bytes: the size of the store.
  init(
    key: ScrubbingKey, attempt: Int, encoding: TextEncoding, bytes: Int64, ranksDates: Bool = false,
    columns: ColumnRules? = nil, model: [UInt8]? = nil, isDamaged: Bool = false
  ) {
    self.encoding = encoding
    self.model = model
    self.isDamaged = isDamaged
    domains = NumberDomains(columns?.domains ?? [])
    words = Set((columns?.words ?? []).map { Array($0.utf8) })
    self.ranksDates = ranksDates
    function = key.function(for: "values", attempt: attempt)
    watched = WatchedValues(key.function(for: "watch", attempt: 0), bytes: bytes)
    orderedTexts = OrderedTexts(encoding: encoding)
  }

  /// Pseudonyms under the same key, of nothing yet, for taking notes on another thread.
  init(like other: Pseudonyms) {
    encoding = other.encoding
    ranksDates = other.ranksDates
    model = other.model
    isDamaged = other.isDamaged
    words = other.words
    domains = NumberDomains(like: other.domains)
    function = other.function
    watched = WatchedValues(like: other.watched)
    orderedTexts = OrderedTexts(encoding: encoding)
  }

  /// The same once more, for use from another thread; what it exempts is its own.
  init(copying other: Pseudonyms) {
    encoding = other.encoding
    model = other.model
    isDamaged = other.isDamaged
    words = other.words
    domains = other.domains
    function = other.function
    watched = other.watched
    orderedTexts = other.orderedTexts
    orderedNumbers = other.orderedNumbers
    dates = other.dates
    ranksDates = other.ranksDates
  }

  /// Adds the notes that were taken on another thread.
  func takeNotes(of other: Pseudonyms) {
    watched.take(&other.watched)
    orderedTexts.take(&other.orderedTexts)
    orderedNumbers.take(&other.orderedNumbers)
    dates.add(other.dates)
    domains.take(&other.domains)
    keptBytes += other.keptBytes.prefix(max(0, Self.keptLimit - keptBytes.count))
  }

  /// Adds what was found out while another thread replaced values.
  func takeFindings(of other: Pseudonyms) {
    watched.takeExemptions(of: &other.watched)
    stuckNumbers += other.stuckNumbers
    tightNumbers += other.tightNumbers
  }

  /// Ends the taking of notes: pseudonyms with an order are made, and the shift of dates is chosen.
  func finishNotes() {
    let kept = keptBytes
    keptBytes = []
    watched.exemptAll(in: kept.span, 0..<kept.count)
    domains.decide(function)
    for run in domains.takeReplacedKeys() {
      for number in run {
        orderedNumbers.insert(number)
        watch(number)
      }
    }
    watched.seal()
    let watched = watched
    dates.choose(function) { watched.contains(number: Self.bits(of: $0)) }
    orderedNumbers.assign(function) { number, width in
      Self.isClean(number, width, watched) && !watched.contains(number: UInt64(bitPattern: number))
    } isRealFree: { number in
      Self.isClean(Int64(bitPattern: number.bitPattern), 8, watched) && !watched.contains(number: Self.bits(of: number))
    }
    orderedTexts.assign(
      function, isClean: { watched.firstHit($0, from: $1.lowerBound, before: $1.upperBound) == nil },
      finish: { value, from, isBlob, seed in
        guard from < value.count else { return }
        if isBlob {
          replaceBlob(&value, 0..<value.count, from: from, seed: seed)
        } else {
          replaceText(&value, 0..<value.count, from: from, seed: seed)
        }
      })
  }

  // MARK: Replacing

  /// Replaces a value in place.
  ///
  /// - Parameter keepsSignature: whether the first bytes of a blob that tell its format stay.
  func replace(
    _ code: Int64, _ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule, keepsSignature: Bool = true
  ) -> Outcome {
    switch code {
    case 1...6: return replaceInteger(&bytes, range, rule)
    case 7: return replaceReal(&bytes, range, rule)
    case 12...:
      guard !range.isEmpty else { return .nothing }
      switch rule.kind {
      case .keep: return .kept
      case .own where isOwn(bytes.span, range, isText: code & 1 == 1): return .kept
      case .word where code & 1 == 1 && isWord(bytes.span, range): return .kept
      case .metadata:
        let places = MetadataScrub.replace(&bytes, range, self)
        return places.isEmpty ? .kept : .partly(places)
      case .drop where !rule.isOrdered:
        Self.drop(&bytes, range, isText: code & 1 == 1, encoding)
        return .dropped
      case .replace, .own, .word, .key, .date, .drop: break
      }
      if code & 1 == 1 { return replaceWholeText(&bytes, range) }
      if BlobForm.isReference(bytes.span, range) {
        replaceIdentifier(ofReference: &bytes, range)
        return .ordered
      }
      return replaceWholeBlob(&bytes, range, keepsSignature: keepsSignature)
    default: return .nothing
    }
  }

  func seed(_ bytes: Span<UInt8>, _ range: Range<Int>, isText: Bool) -> UInt64 {
    function(bytes, range, tweak: isText ? 0x74_6578 : 0x62_6c6f)
  }

  private static func drop(_ bytes: inout [UInt8], _ range: Range<Int>, isText: Bool, _ encoding: TextEncoding) {
    for index in range where bytes[index] != 0 {
      guard isText else {
        bytes[index] = 0xdd
        continue
      }
      switch bytes[index] {
      case 0x30...0x39: bytes[index] = 0x30
      case 0x41...0x5a: bytes[index] = 0x58
      case 0x61...0x7a, 0x80...0xff: bytes[index] = 0x78
      default: break
      }
    }
  }

  // MARK: What was found after all

  /// Lets the values in a range be found.
  func exempt(_ hit: WatchedValues.Hit) { watched.exempt(hit) }

  /// Where bytes on a page contain an original value.
  func firstHit(_ bytes: Span<UInt8>, from start: Int, before end: Int) -> WatchedValues.Hit? {
    watched.firstHit(bytes, from: start, before: end, using: &block)
  }
}

extension Pseudonyms {
  func replaceWholeBlob(_ bytes: inout [UInt8], _ range: Range<Int>, keepsSignature: Bool) -> Outcome {
    let seed = seed(bytes.span, range, isText: false)
    if let ordered = orderedTexts.pseudonym(seed: seed) {
      if range.count > ordered.count { replaceBlob(&bytes, range, from: ordered.count, seed: seed) }
      for (index, byte) in ordered.enumerated() { bytes[range.lowerBound + index] = byte }
      return .ordered
    }
    replaceBlob(&bytes, range, from: BlobForm.keptPrefix(bytes.span, range, keepsSignature: keepsSignature), seed: seed)
    return .replaced
  }

  /// Replaces the bytes of a blob from an offset on; zeros in a row stay.
  func replaceBlob(_ bytes: inout [UInt8], _ range: Range<Int>, from: Int, seed: UInt64) {
    var stream = KeyStream(function, seed: seed)
    let isIdentifier = BlobForm.isIdentifier(bytes.span, range)
    let (version, variant) =
      isIdentifier ? (bytes[range.lowerBound + 6] & 0xf0, bytes[range.lowerBound + 8] & 0xc0) : (0, 0)
    replaceNoise(&bytes, (range.lowerBound + from)..<range.upperBound, &stream)
    if isIdentifier {
      if from <= 6 { bytes[range.lowerBound + 6] = version | bytes[range.lowerBound + 6] & 0x0f }
      if from <= 8 { bytes[range.lowerBound + 8] = variant | bytes[range.lowerBound + 8] & 0x3f }
    }
  }

  /// Replaces bytes by noise: eight zeros in a row and more stay, nothing else becomes zero.
  func replaceNoise(_ bytes: inout [UInt8], _ range: Range<Int>, _ stream: inout KeyStream) {
    var index = range.lowerBound
    let end = range.upperBound
    var word: UInt64 = 0
    var left = 0
    func next() -> UInt8 {
      if left == 0 {
        word = stream.next64()
        left = 4
      }
      left &-= 1
      let result = UInt8(truncatingIfNeeded: 1 &+ (((word & 0xffff) &* 255) >> 16))
      word >>= 16
      return result
    }
    while index < end {
      guard bytes[index] == 0 else {
        bytes[index] = next()
        index &+= 1
        continue
      }
      var last = index
      while last < end, bytes[last] == 0 { last &+= 1 }
      if last &- index >= 8 || last == end || index == range.lowerBound {
        index = last
        continue
      }
      while index < last {
        bytes[index] = next()
        index &+= 1
      }
    }
  }
}
