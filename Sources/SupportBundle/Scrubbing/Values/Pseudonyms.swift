internal import SQLiteFormat

/// Makes the pseudonyms of a store's values: notes all of them, then replaces them in place.
///
/// A pseudonym depends on value and key only, so equal values stay equal; those of indexed columns also keep their
/// order. Not thread-safe.
final class Pseudonyms {
  enum Outcome {
    case replaced

    /// Replaced in order; must not change again.
    case ordered

    case shifted

    /// Kept by a rule: small numbers, keys, file references.
    case kept

    /// Kept, except for an app's values.
    case partly([Range<Int>])

    case dropped

    /// No content: NULL, constants, empty text.
    case nothing
  }

  /// The longest text replaced as a whole; longer text is replaced by words, so that its pieces can be matched.
  static let longestWhole = 64

  let encoding: TextEncoding
  let function: KeyedFunction
  var watched: WatchedValues
  var orderedTexts: OrderedTexts
  var orderedNumbers = OrderedNumbers()
  var dates = DateShift()
  var domains: NumberDomains

  /// The names of schema and model.
  let words: Set<[UInt8]>

  /// The app's packed model.
  let model: [UInt8]?

  /// Whether page owners are uncertain, so that bookkeeping keeps only words of schema and model.
  let isDamaged: Bool

  /// Whether dates are replaced like other numbers, as no shift fits them.
  let ranksDates: Bool

  var keptBytes: [UInt8] = []
  static let keptLimit = 4 << 20

  /// The integers without a pseudonym outside the store; any prevents the scrub.
  var stuckNumbers: Int64 = 0

  /// The other numbers with such a pseudonym, forced by their order.
  var tightNumbers: Int64 = 0

  var canonical: [UInt8] = []
  private var block = ScanBlock()

  /// - Parameter bytes: the store size.
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

  /// Creates a set with the same key for another thread.
  ///
  /// - Parameter isCopy: whether it has the values of the other, with separate exemptions; otherwise it is empty.
  init(like other: Pseudonyms, isCopy: Bool = false) {
    encoding = other.encoding
    ranksDates = other.ranksDates
    model = other.model
    isDamaged = other.isDamaged
    words = other.words
    function = other.function
    domains = isCopy ? other.domains : NumberDomains(like: other.domains)
    watched = isCopy ? other.watched : WatchedValues(like: other.watched)
    orderedTexts = isCopy ? other.orderedTexts : OrderedTexts(encoding: encoding)
    guard isCopy else { return }
    orderedNumbers = other.orderedNumbers
    dates = other.dates
  }

  func takeNotes(of other: Pseudonyms) {
    watched.take(&other.watched)
    orderedTexts.take(&other.orderedTexts)
    orderedNumbers.take(&other.orderedNumbers)
    dates.add(other.dates)
    domains.take(&other.domains)
    keptBytes += other.keptBytes.prefix(max(0, Self.keptLimit - keptBytes.count))
  }

  func takeFindings(of other: Pseudonyms) {
    watched.takeExemptions(of: &other.watched)
    stuckNumbers += other.stuckNumbers
    tightNumbers += other.tightNumbers
  }

  /// Ends the notes: makes ordered pseudonyms and chooses the date shift.
  func assignPseudonyms() {
    let kept = keptBytes
    keptBytes = []
    watched.exemptAll(in: kept.span, 0..<kept.count)
    domains.decide(function)
    for number in domains.takeReplacedKeys().joined() {
      orderedNumbers.insert(number)
      watch(number)
    }
    watched.seal()
    let watched = watched
    dates.choose(function) { watched.contains(number: Self.bits(of: $0)) }
    orderedNumbers.assign(function) { number, width in
      Self.isClean(number, width, watched) && !watched.contains(number: UInt64(bitPattern: number))
    } isRealFree: { number in
      Self.isClean(Int64(bitPattern: number.bitPattern), 8, watched) && !watched.contains(number: Self.bits(of: number))
    }
    self.watched.exemptCommonDigits()
    let (others, mostDigits) = (self.watched, encoding == .utf8 ? 7 : 14)
    orderedTexts.assign(
      function,
      isClean: { bytes, range, length in
        length <= mostDigits
          ? watched.firstHit(bytes, from: range.lowerBound, before: range.upperBound) == nil
          : others.firstHit(bytes, from: range.lowerBound, before: range.upperBound) == nil
      },
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

  /// - Parameter keepsSignature: whether a blob's format signature stays.
  func replace(
    _ code: Int64, _ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule, keepsSignature: Bool = true
  ) -> Outcome {
    let isText = code & 1 == 1
    switch code {
    case 1...6: return replaceInteger(&bytes, range, rule)
    case 7: return replaceReal(&bytes, range, rule)
    case 12...:
      guard !range.isEmpty else { return .nothing }
      if stays(bytes.span, range, isText: isText, rule) { return .kept }
      if rule.kind == .metadata {
        let places = MetadataScrub.replace(&bytes, range, self)
        return places.isEmpty ? .kept : .partly(places)
      }
      if rule.kind == .drop, !rule.isOrdered {
        Self.drop(&bytes, range, isText: isText)
        return .dropped
      }
      if isText { return replaceWholeText(&bytes, range) }
      if BlobForm.isReference(bytes.span, range) {
        replaceIdentifier(&bytes, at: range.lowerBound + 1)
        return .ordered
      }
      return replaceWholeBlob(&bytes, range, keepsSignature: keepsSignature)
    default: return .nothing
    }
  }

  func seed(_ bytes: Span<UInt8>, _ range: Range<Int>, isText: Bool) -> UInt64 {
    function(bytes, range, tweak: isText ? 0x74_6578 : 0x62_6c6f)
  }

  private static func drop(_ bytes: inout [UInt8], _ range: Range<Int>, isText: Bool) {
    for index in range where bytes[index] != 0 {
      switch bytes[index] {
      case _ where !isText: bytes[index] = 0xdd
      case 0x30...0x39: bytes[index] = 0x30
      case 0x41...0x5a: bytes[index] = 0x58
      case 0x61...0x7a, 0x80...0xff: bytes[index] = 0x78
      default: break
      }
    }
  }

  // MARK: Findings

  /// Finds an original value in a page.
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

  /// Replaces a blob from an offset; runs of zeros stay.
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

  /// Replaces bytes with noise that depends on their content.
  func replaceNoise(_ bytes: inout [UInt8], _ range: Range<Int>, seededBy content: Range<Int>, tweak: UInt64) {
    var stream = KeyStream(function, seed: function(bytes.span, content, tweak: tweak))
    replaceNoise(&bytes, range, &stream)
  }

  /// Replaces bytes with noise, keeping runs of eight or more zeros and adding none.
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
      if last &- index >= 8 || last == end || index == range.lowerBound { index = last }
      while index < last {
        bytes[index] = next()
        index &+= 1
      }
    }
  }
}

/// Recognizes blobs by first bytes that reveal no content.
enum BlobForm {
  static let longestPrefix = 8

  /// Returns the leading bytes to keep: a signature, Core Data's mark of external values.
  ///
  /// - Parameter keepsSignature: whether more than the mark stays.
  static func keptPrefix(_ bytes: Span<UInt8>, _ range: Range<Int>, keepsSignature: Bool = true) -> Int {
    let start = range.lowerBound
    guard range.count >= longestPrefix else { return 0 }
    guard keepsSignature else { return bytes[start] == 1 ? 1 : 0 }
    switch bytes[start] {
    case 0x89: return has([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], bytes, start) ? 8 : 0
    case 0xff: return has([0xff, 0xd8, 0xff], bytes, start) ? 3 : 0
    case 0x62: return has([0x62, 0x70, 0x6c, 0x69, 0x73, 0x74, 0x30, 0x30], bytes, start) ? 8 : 0
    case 1: return 1
    default: return 0
    }
  }

  /// Whether a blob is Core Data's reference to a file: 2, a UUID of 36 characters, a zero.
  static func isReference(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    range.count == 38 && bytes[range.lowerBound] == 2 && bytes[range.upperBound - 1] == 0
      && isIdentifierText(bytes, (range.lowerBound + 1)..<(range.upperBound - 1))
  }

  static func isIdentifierText(_ bytes: Span<UInt8>, _ range: Range<Int>, _ encoding: TextEncoding = .utf8) -> Bool {
    let unit = encoding == .utf8 ? 1 : 2
    guard range.count == 36 * unit else { return false }
    let low = encoding == .utf16BigEndian ? 1 : 0
    for index in 0..<36 {
      let place = range.lowerBound + index * unit
      if unit == 2, bytes[place + 1 - low] != 0 { return false }
      switch (bytes[place + low], index) {
      case (0x2d, 8), (0x2d, 13), (0x2d, 18), (0x2d, 23): break
      case (_, 8), (_, 13), (_, 18), (_, 23): return false
      case (0x30...0x39, _), (0x41...0x46, _), (0x61...0x66, _): break
      default: return false
      }
    }
    return true
  }

  /// Whether bytes are a UUID of a known version and the usual variant.
  static func isIdentifier(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count == 16 else { return false }
    let version = bytes[range.lowerBound + 6] >> 4
    return version >= 1 && version <= 8 && bytes[range.lowerBound + 8] & 0xc0 == 0x80
  }

  private static func has(_ signature: [UInt8], _ bytes: Span<UInt8>, _ start: Int) -> Bool {
    for (index, byte) in signature.enumerated() where bytes[start + index] != byte { return false }
    return true
  }
}
