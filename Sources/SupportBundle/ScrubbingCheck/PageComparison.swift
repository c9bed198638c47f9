/// Compares an original page with the same place of the result.
struct PageComparison: Sendable {
  private let format: PageFormat
  private let encoding: CheckedEncoding

  /// The information beyond chance.
  private let bound: Int

  /// The largest key that may stay.
  private let largestKey: Int64

  /// Whether software assigns some rowids, not sequentially.
  private let hasOwnRowids: Bool

  /// The app's model, which stays.
  private let model: CheckedModel?

  private let isName: @Sendable (String) -> Bool

  private static let mostTypes = 128

  init(
    _ format: PageFormat, places: Int64, rows: Int64, hasOwnRowids: Bool, model: CheckedModel?,
    isName: @escaping @Sendable (String) -> Bool
  ) {
    self.format = format
    encoding = format.encoding
    bound = Information.bound(places: places)
    self.hasOwnRowids = hasOwnRowids
    self.model = model
    largestKey = max(0, rows) &* 16
    self.isName = isName
  }

  // MARK: Fields

  /// Whether values or rowids of records are unchanged.
  func hasSame(_ page: CheckedPage, _ original: Span<UInt8>, _ result: Span<UInt8>, _ tree: CheckedTree?) -> Bool {
    for record in page.records {
      if keeps(record, page, original, tree) { continue }
      if isSameRowid(record, page, original, result, tree) { return true }
      for place in record.fields {
        let field = page.fields[place]
        let rule = rule(of: field, tree)
        if rule.isKept || field.range.count < 4 { continue }
        if field.type >= 12, field.type & 1 == 0, let metadata = metadata(field, rule, original) {
          if isSame(metadata, original, result) { return true }
        } else if isSame(field, rule, original, result),
          !field.range.contains(where: { page.marks[$0] == CheckedPage.structure })
        {
          // Structure overrides values.
          return true
        }
      }
    }
    return false
  }

  /// Returns an app's values if a field is Core Data's metadata.
  func metadata(_ field: CheckedPage.Field, _ rule: CheckedTree.Rule, _ bytes: Span<UInt8>) -> [Range<Int>]? {
    if field.isWhole, let reading = MetadataReading(bytes, field.range) { return reading.appValues }
    // Other lists are noise, or have no app entries.
    return rule.isMetadata ? [] : nil
  }

  private func isSame(_ values: [Range<Int>], _ original: Span<UInt8>, _ result: Span<UInt8>) -> Bool {
    values.contains { range in
      let bits = range.reduce(0) { $0 + Int(Information.text[Int(original[$1])]) }
      let others = range.count { original[$0] >= 0x80 }
      return bits + 40 * others >= 2 * Information.leastOfValue && isEqual(range, original, result)
    }
  }

  func rule(of field: CheckedPage.Field, _ tree: CheckedTree?) -> CheckedTree.Rule {
    guard let tree else { return CheckedTree.Rule(isKey: true) }
    return tree.rules.indices.contains(field.place) ? tree.rules[field.place] : tree.other
  }

  /// Whether a record is, or begins as, the app's model.
  func isModel(_ record: CheckedPage.Record, _ page: CheckedPage, _ bytes: Span<UInt8>) -> Bool {
    guard let model, record.count == 1, let field = record.fields.first.map({ page.fields[$0] }) else { return false }
    return model.begins(field, bytes)
  }

  /// Whether a record of the schema or model stays.
  func keeps(_ record: CheckedPage.Record, _ page: CheckedPage, _ bytes: Span<UInt8>, _ tree: CheckedTree?) -> Bool {
    if let tree, tree.isKept { return true }
    if isModel(record, page, bytes) { return true }
    guard record.count == 5 || tree?.isSchema == true else { return false }
    // The schema root's rows stay even if damaged.
    if tree?.isSchema == true, page.isFirst, record.count == 5 { return true }
    func text(_ place: Int, _ limit: Int, of record: CheckedPage.Record) -> String? {
      guard let field = record.fields.lazy.map({ page.fields[$0] }).first(where: { $0.place == place }),
        field.type >= 13, field.type & 1 == 1
      else { return nil }
      let end = min(field.range.upperBound, field.range.lowerBound + 2 * limit)
      // Names and statements are ASCII in any encoding.
      let characters = (field.range.lowerBound..<end).map { bytes[$0] }.filter { $0 != 0 }
      return String(decoding: characters.prefix(limit), as: UTF8.self)
    }
    guard let kind = text(0, 16, of: record), ["table", "index", "view", "trigger"].contains(kind) else { return false }
    if tree?.isSchema == true { return true }
    guard let sql = text(4, 16, of: record), sql.uppercased().hasPrefix("CREATE") else {
      return text(1, 17, of: record) == "sqlite_autoindex_"
    }
    // A page of the schema names an object once.
    guard let name = text(1, 2048, of: record), isName(name) else { return false }
    for other in page.records where other.rowid != record.rowid {
      if text(0, 16, of: other) == kind, text(1, 2048, of: other) == name { return false }
    }
    return true
  }

  private func isSameRowid(
    _ record: CheckedPage.Record, _ page: CheckedPage, _ original: Span<UInt8>, _ result: Span<UInt8>,
    _ tree: CheckedTree?
  ) -> Bool {
    guard page.kind == 13, record.number > 1 << 22 || record.number < -999_999,
      record.number > largestKey || record.number < 0, !(tree?.keepsRowids ?? hasOwnRowids)
    else { return false }
    return record.rowid.count >= 4 && isEqual(record.rowid, original, result)
  }

  /// Whether a value is in the result, wholly or beyond chance.
  private func isSame(
    _ field: CheckedPage.Field, _ rule: CheckedTree.Rule, _ original: Span<UInt8>, _ result: Span<UInt8>
  ) -> Bool {
    switch field.type {
    case 4...7: return isSameNumber(field, rule, original, result)
    case 13... where field.type & 1 == 1: return isSameText(field, rule, original, result)
    case 12...: return isSameBlob(field, original, result)
    default: return false
    }
  }

  private func isEqual(_ range: Range<Int>, _ original: Span<UInt8>, _ result: Span<UInt8>) -> Bool {
    for index in range where original[index] != result[index] { return false }
    return true
  }

  private func isSameNumber(
    _ field: CheckedPage.Field, _ rule: CheckedTree.Rule, _ original: Span<UInt8>, _ result: Span<UInt8>
  ) -> Bool {
    guard field.isWhole, !rule.isDropped, isEqual(field.range, original, result) else { return false }
    let number = Bytes.signed(original, field.range)
    guard field.type == 7 else {
      // Short numbers in oversized fields are not compared.
      return number.magnitude > 999_999 && !(rule.isKey && number >= 0 && number <= largestKey)
    }
    let real = Double(bitPattern: UInt64(bitPattern: number))
    // Short whole numbers may be flags.
    return real.isFinite && (real.magnitude > 999_999 || real.rounded() != real)
  }

  private func isSameText(
    _ field: CheckedPage.Field, _ rule: CheckedTree.Rule, _ original: Span<UInt8>, _ result: Span<UInt8>
  ) -> Bool {
    let table = isIdentifier(field.range, original) ? Information.identifier : Information.text
    var (run, whole) = (0, 0)
    var runStart = field.range.lowerBound
    var (isAll, hasWide) = (true, false)
    for index in field.range {
      let byte = original[index]
      if byte >= 0x80 { hasWide = true }
      if byte == result[index] {
        run &+= Int(table[Int(byte)]) &+ (byte >= 0x80 ? Information.character : 0)
        whole &+= Int(table[Int(byte)])
      } else {
        if table[Int(byte)] > 0 || byte >= 0x80 || encoding != .utf8 { isAll = false }
        // Part of a word is not a name, so judge whole pieces.
        if run >= bound, isTold(runStart..<index, field.range, original, rule) { return true }
        run = 0
        runStart = index &+ 1
      }
    }
    if run >= bound, isTold(runStart..<field.range.upperBound, field.range, original, rule) { return true }
    guard isAll, field.isWhole, whole >= Information.leastOfValue || hasWide || encoding != .utf8 else { return false }
    let text = encoding.text(field.range.map { original[$0] })
    let (bits, characters) = Information.ofText(text, onceEach: false)
    if rule.isDropped, Self.isFiller(text) { return false }
    return characters >= 4 && bits >= Information.leastOfValue && !isName(text.filter { $0 != "\0" })
  }

  /// Whether an equal text exceeds chance by characters and words.
  private func isTold(
    _ range: Range<Int>, _ field: Range<Int>, _ original: Span<UInt8>, _ rule: CheckedTree.Rule
  ) -> Bool {
    var start = range.lowerBound
    if encoding != .utf8, (start - field.lowerBound) & 1 == 1 { start += 1 }
    let text = encoding.text((start..<max(start, range.upperBound)).map { original[$0] })
    if rule.isDropped, Self.isFiller(text) { return false }
    return Information.ofText(text, onceEach: field.count > 64, isName: isName).bits >= bound
  }

  private static func isFiller(_ text: String) -> Bool {
    text.allSatisfy { "xX0".contains($0) || !($0.isLetter || $0.isNumber) }
  }

  private func isIdentifier(_ range: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
    guard range.count == 36 else { return false }
    let start = range.lowerBound
    return bytes[start + 8] == 0x2d && bytes[start + 13] == 0x2d && bytes[start + 18] == 0x2d
      && bytes[start + 23] == 0x2d
  }

  /// Returns the length of a blob's signature, which stays.
  static func signature(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
    guard range.count >= 8 else { return 0 }
    switch (bytes[range.lowerBound], bytes[range.lowerBound + 1], bytes[range.lowerBound + 2]) {
    case (0x89, 0x50, 0x4e), (0x62, 0x70, 0x6c): return 8
    case (0xff, 0xd8, 0xff): return 3
    case (1, _, _): return 1
    default: return 0
    }
  }

  private func isSameBlob(_ field: CheckedPage.Field, _ original: Span<UInt8>, _ result: Span<UInt8>) -> Bool {
    let isReference = field.range.count == 38 && original[field.range.lowerBound] == 2
    let table = isReference ? Information.identifier : Information.blob
    let range = (field.range.lowerBound + Self.signature(original, field.range))..<field.range.upperBound
    var (run, whole) = (0, 0)
    var isAll = true
    var last: UInt8 = 0
    for index in range {
      let byte = original[index]
      if byte == result[index] {
        // Repeated bytes count once.
        let bits = byte == last ? 0 : Int(table[Int(byte)])
        run &+= bits
        whole &+= bits
        if run >= bound { return true }
      } else {
        isAll = false
        run = 0
      }
      last = byte
    }
    return isAll && field.isWhole && whole >= 2 * Information.leastOfValue
  }

  // MARK: Everything else

  /// Whether bytes of no live row are unchanged.
  ///
  /// - Parameter marks: the byte roles; nil if all are loose.
  func hasSameLoose(_ marks: [UInt8]?, _ original: Span<UInt8>, _ result: Span<UInt8>, isSchema: Bool) -> Bool {
    unchanged(marks, original, result).contains { range in
      isLeft(range, original) && !(isSchema && isOfStatement(range, original, result))
    }
  }

  /// Returns the statements that stay on a page of the schema without a sound header.
  func statements(_ original: Span<UInt8>, _ result: Span<UInt8>) -> [Range<Int>] {
    unchanged(nil, original, result).filter { isOfStatement($0, original, result) }
  }

  /// Returns the runs of at least 8 unchanged loose bytes.
  private func unchanged(_ marks: [UInt8]?, _ original: Span<UInt8>, _ result: Span<UInt8>) -> [Range<Int>] {
    let end = min(original.count, result.count, marks?.count ?? .max)
    let marks = marks ?? []
    let hasMarks = !marks.isEmpty
    var runs: [Range<Int>] = []
    var index = 0
    while index < end {
      guard original[index] == result[index], original[index] != 0, original[index] != 0xff,
        !hasMarks || marks[index] == CheckedPage.loose
      else {
        index &+= 1
        continue
      }
      let start = index
      while index < end, original[index] == result[index], !hasMarks || marks[index] == CheckedPage.loose,
        original[index] != 0 || encoding != .utf8 && index > start && original[index &- 1] != 0
      {
        index &+= 1
      }
      if index - start >= 8 { runs.append(start..<index) }
    }
    return runs
  }

  /// Whether bytes belong to a valid schema row, which stays.
  ///
  /// A pointer can split a row; one piece has the statement.
  private func isOfStatement(_ range: Range<Int>, _ original: Span<UInt8>, _ result: Span<UInt8>) -> Bool {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start > 0, original[start - 1] == result[start - 1] { start -= 1 }
    while end < min(original.count, result.count), original[end] == result[end] { end += 1 }
    let characters = (start..<end).map { original[$0] }.filter { encoding == .utf8 || $0 != 0 }
    return String(decoding: characters, as: UTF8.self).uppercased().contains("CREATE")
  }

  /// Whether unchanged bytes are part of a value.
  private func isLeft(_ range: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
    var (bits, most) = (0, 0)
    for index in range {
      let byte = bytes[index]
      if byte >= 0x20 && byte < 0x7f || byte >= 0xc2 && byte <= 0xf4 || byte == 0 || byte == 9 || byte == 10
        || byte == 13 || byte >= 0x80 && byte < 0xc0 && index > range.lowerBound && bytes[index - 1] >= 0x80
      {
        bits += Int(Information.text[Int(byte)]) + (byte >= 0xc2 ? Information.character : 0)
        most = max(most, bits)
      } else {
        bits = 0
      }
    }
    var isNoise = Self.isNoise(bytes, range)
    guard most >= bound || isNoise else { return false }
    // ASCII in any encoding and alignment.
    let characters = range.map { bytes[$0] }.filter { encoding == .utf8 || $0 != 0 }
    if isNoise {
      let rest = withoutNames(characters)
      isNoise = rest.count == characters.count || Self.isNoise(rest.span, rest.indices)
    }
    let text = String(decoding: characters, as: UTF8.self)
    if text.contains("CREATE ") { return false }
    if most >= bound, Information.ofText(text, onceEach: true, isName: isName).bits < bound, !isNoise { return false }
    return !isHeader(range, bytes)
  }

  /// Whether bytes are varied and unlike structure.
  private static func isNoise(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count >= 24 else { return false }
    var (high, counts, commonest) = (0, [Int](repeating: 0, count: 256), 0)
    for index in range {
      let byte = bytes[index]
      if byte > 0x20 { high += 1 }
      counts[Int(byte)] += 1
      commonest = max(commonest, counts[Int(byte)])
    }
    return high * 4 >= range.count * 3 && counts.count { $0 > 0 } >= 16 && commonest * 4 <= range.count
  }

  /// Removes schema names, which stay.
  private func withoutNames(_ bytes: [UInt8]) -> [UInt8] {
    var rest: [UInt8] = []
    var start = 0
    for index in 0...bytes.count {
      if index < bytes.count, Information.text[Int(bytes[index])] > 0 || bytes[index] == 0x5f { continue }
      let word = bytes[start..<index]
      if word.count < 4 || !isName(String(decoding: word, as: UTF8.self)) { rest += word }
      if index < bytes.count { rest.append(bytes[index]) }
      start = index + 1
    }
    return rest
  }

  /// Whether bytes are serial types, confirmed by the text after them.
  private func isHeader(_ range: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
    for start in max(0, range.lowerBound - 16)...min(range.lowerBound + 20, range.upperBound) {
      var offset = start
      var types: [Int64] = []
      while types.count < Self.mostTypes, let type = Bytes.varint(bytes, &offset, before: bytes.count),
        Bytes.length(ofType: type) != nil
      {
        types.append(type)
        guard offset >= range.upperBound - 8 else { continue }
        // Payload length, rowid and header length may precede.
        if start <= range.lowerBound || isLength(offset - start, before: start, bytes),
          explains(types, from: offset, bytes)
        {
          return true
        }
        if offset > range.upperBound + 8 { break }
      }
    }
    return false
  }

  /// Whether preceding bytes are such a header's length.
  private func isLength(_ types: Int, before place: Int, _ bytes: Span<UInt8>) -> Bool {
    for length in 1...2 where place >= length {
      var offset = place - length
      if Bytes.varint(bytes, &offset, before: place) == Int64(types + length), offset == place { return true }
    }
    return false
  }

  private func explains(_ types: [Int64], from start: Int, _ bytes: Span<UInt8>) -> Bool {
    var offset = start
    var texts = 0
    for type in types {
      guard let length = Bytes.length(ofType: type), offset + length <= bytes.count else { return false }
      if type >= 13, type & 1 == 1 {
        for index in offset..<(offset + length) where bytes[index] < 0x20 && bytes[index] != 10 && bytes[index] != 9 {
          if encoding == .utf8 { return false }
        }
        texts += 1
      }
      offset += length
    }
    return texts >= 2
  }

  /// Whether an overflow page or file repeats the original beyond chance.
  func isSameStretch(_ original: Span<UInt8>, _ result: Span<UInt8>, from: Int, isText: Bool) -> Bool {
    let end = min(original.count, result.count)
    let table = isText ? Information.text : Information.blob
    var run = 0
    var start = from
    var last: UInt8 = 0
    var index = from
    while index < end {
      let byte = original[index]
      if byte == result[index] {
        run &+= byte == last ? 0 : Int(table[Int(byte)]) &+ (isText && byte >= 0x80 ? Information.character : 0)
        if run >= bound, !isText { return true }
      } else {
        if run >= bound, isTold(start..<index, from..<end, original, CheckedTree.Rule()) { return true }
        run = 0
        start = index &+ 1
      }
      last = byte
      index &+= 1
    }
    return run >= bound && isTold(start..<max(start, end), from..<end, original, CheckedTree.Rule())
  }
}
