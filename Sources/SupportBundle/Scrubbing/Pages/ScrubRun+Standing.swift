internal import Platform
internal import SQLiteFormat
internal import Salvage

extension ScrubRun {
  /// Returns the page of an image's content; page 1 may be a copy of another.
  func contentPage(of image: PageImage) -> UInt32 {
    if case .main(1) = image, let twin = survey.twinOfFirstPage { return twin }
    return images.page(of: image)
  }

  func standing(of image: PageImage, tree: Int?) -> RowStanding {
    guard let tree else { return .left }
    let number = contentPage(of: image)
    guard survey.owner(ofPage: number) == tree || number == 1 && tree == 0 else { return .left }
    // The cached model belongs to the app.
    if survey.modelPage == number, survey.trees[tree].name == "Z_MODELCACHE" { return .reached }
    if survey.isReached(number, image.part, at: images.offset(of: image)) { return .reached }
    if case .main = image { return survey.standing(of: number) == .live ? .numbered : .left }
    return .numbered
  }

  /// Returns the tree whose root reaches a page of a sound store.
  func reachedTree(_ image: PageImage) -> Int? {
    let number = contentPage(of: image)
    guard !survey.isDamaged, let tree = survey.owner(ofPage: number), standing(of: image, tree: tree) == .reached else {
      return nil
    }
    return tree
  }

  // MARK: Rows of the schema

  /// Returns the tree with the rules for `payload`: schema rows are recognized by content, others on schema pages are
  /// replaced.
  ///
  /// - Parameter isRoot: whether it is on page 1, where damaged statements also stay.
  func rowTree(_ tree: Int?, _ standing: RowStanding, isRoot: Bool = false) -> Int? {
    let other = tree == 0 ? nil : tree
    guard fields.codes.count == 5, let kind = text(0, limit: 8) else { return other }
    let isOwn = tree == 0 && standing != .left
    if isOwn, isRoot, standing == .reached { return 0 }
    guard ["table", "index", "view", "trigger"].contains(kind) else { return other }
    if fields.codes[4] == 0 {
      return kind == "index" && isOwn && text(1, limit: 17) == "sqlite_autoindex_" ? 0 : other
    }
    guard let sql = text(4, limit: 8), sql.uppercased().hasPrefix("CREATE") else { return other }
    if isOwn, !survey.isDamaged, standing == .reached { return 0 }
    // After damage, other tables' rows can look like this, except on page 1.
    if isOwn, isRoot || !survey.isDamaged, isStatement() { return 0 }
    return other == nil && isEntry() ? 0 : other
  }

  /// Whether the statement proves `payload` a schema row.
  private func isStatement() -> Bool {
    guard let (name, sql) = nameAndStatement() else { return false }
    return SchemaStatement.makes(name, sql)
  }

  /// Whether `payload` equals a schema entry.
  private func isEntry() -> Bool {
    guard let (name, sql) = nameAndStatement() else { return false }
    return survey.entries.contains { $0.name == name && $0.sql?.hasPrefix(sql) == true && $0.isTelling }
  }

  private func nameAndStatement() -> (String, String)? {
    guard let name = text(1, limit: Self.longestName), let sql = text(4, limit: 1 << 20) else { return nil }
    return (name, sql)
  }

  private static let longestName = 1024

  private func text(_ field: Int, limit: Int, of record: [UInt8]? = nil) -> String? {
    let content = record ?? payload
    guard fields.codes[field] >= 13, fields.codes[field] & 1 == 1,
      let range = fields.range(field, before: content.count)
    else { return nil }
    let end = min(range.upperBound, range.lowerBound + limit * (encoding == .utf8 ? 1 : 2))
    var text: [UInt8] = []
    TextCoding.appendUTF8(content.span, range.lowerBound..<end, encoding, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  // MARK: Numbers of rows

  /// Notes or replaces a rowid or interior key.
  func rowid(_ number: Int64, _ range: Range<Int>, _ page: inout [UInt8], tree: Int?, _ standing: RowStanding) {
    guard NumberRegion.isLong(number), let rule = rule(forRow: number, tree, standing) else { return }
    guard isReplacing else {
      if rule.kind == .key, rule.domain >= 0 {
        pseudonyms.domains.note(key: number, rule.domain)
      } else {
        pseudonyms.watch(number)
      }
      return
    }
    guard let pseudonym = pseudonyms.pseudonym(rowid: number, rule) else { return }
    Self.write(varint: pseudonym, &page, range)
  }

  /// Returns a rowid's rule; nil if it stays.
  private func rule(forRow number: Int64, _ tree: Int?, _ standing: RowStanding) -> FieldRule? {
    guard let tree else { return FieldRule(kind: .key) }
    let rule = rules.rowids[tree]
    switch rule.kind {
    // Modules count rows: a far larger rowid is from a misplaced page.
    case .own where rule.domain >= 0 && number.magnitude > 2 * UInt64(survey.pageCount) * UInt64(pageSize):
      return FieldRule(kind: .key, isOrdered: true, domain: rule.domain)
    case .own, .keep: return standing == .left ? FieldRule(kind: .replace) : nil
    case .replace, .word, .model, .key, .date, .drop, .metadata: return rule
    }
  }

  /// Notes or replaces an unreferenced row's rowid.
  func remainingRowid(_ remain: StoreSurvey.Remain, _ page: inout [UInt8], tree: Int) {
    guard remain.hasRowid, remain.payload <= page.count else { return }
    var offset = remain.range.lowerBound
    let end = max(offset, min(remain.payload, page.count))
    if Varint.read(page.span, at: &offset, before: end) == Int64(remain.length) {
      let start = offset
      if let number = Varint.read(page.span, at: &offset, before: end), offset == end {
        // Shared bytes belong to the cell.
        let isFree = (start..<end).allSatisfy { mask[$0] == PageMask.free }
        if isFree || !isReplacing { rowid(number, start..<end, &page, tree: tree, .left) }
        return
      }
    }
    // A freeblock header covers all but the low bits.
    let start = remain.range.lowerBound + 4
    guard isReplacing, start < end else { return }
    var stream = KeyStream(pseudonyms.function, seed: pseudonyms.function(page.span, start..<end, tweak: 12))
    for index in start..<end where mask[index] == PageMask.free {
      page[index] = page[index] & 0x80 | UInt8(stream.below(128))
    }
  }

  /// Returns the structure before an unreferenced record: cell header or freeblock header.
  ///
  /// Other bytes may be user data.
  func remainingStructure(_ remain: StoreSurvey.Remain, _ bytes: Span<UInt8>) -> Range<Int> {
    let low = remain.range.lowerBound
    let all = low..<max(low, remain.payload)
    var offset = low
    if Varint.read(bytes, at: &offset, before: all.upperBound) == Int64(remain.length),
      !remain.hasRowid || Varint.read(bytes, at: &offset, before: all.upperBound) != nil, offset == all.upperBound
    {
      return all
    }
    guard let next = bytes.uint16(at: low), let size = bytes.uint16(at: low + 2), size >= remain.range.count,
      size <= usableSize - low, next == 0 || next > low && next <= usableSize - 4
    else { return min(all.upperBound, low + 4)..<all.upperBound }
    return all
  }

  /// Overwrites a varint at its length: padded, or truncated so that the old one does not stay.
  private static func write(varint number: Int64, _ page: inout [UInt8], _ range: Range<Int>) {
    var rest = UInt64(bitPattern: number)
    for index in range.reversed() {
      let isLast = index == range.upperBound - 1
      let bits: UInt64 = isLast && range.count == 9 ? 8 : 7
      page[index] = UInt8(truncatingIfNeeded: rest & (1 << bits - 1)) | (isLast ? 0 : 0x80)
      rest >>= bits
    }
  }

  /// Returns the rule of the table that a `sqlite_sequence` record names.
  func sequenceRule(_ content: [UInt8]) -> FieldRule? {
    guard fields.codes.count == 2, fields.codes[1] <= 9, let name = text(0, limit: Self.longestName, of: content),
      let tree = survey.trees.firstIndex(where: { !$0.isIndex && $0.name == name })
    else { return nil }
    return rules.rowids[tree]
  }
}

/// Distinguishes schema rows from similar ones.
enum SchemaStatement {
  /// Whether a statement creates an object of this name.
  static func makes(_ name: String, _ sql: String) -> Bool {
    if let definition = TableDefinition(sql: sql) { return definition.name == name }
    if let definition = IndexDefinition(sql: sql) { return definition.name == name }
    let words = sql.prefix(40).uppercased().split { $0.isWhitespace }
    return words.first == "CREATE" && (words.contains("VIEW") || words.contains("TRIGGER")) && sql.contains(name)
  }
}

extension SchemaEntry {
  /// Whether the statement proves the entry.
  var isTelling: Bool {
    guard let sql else { return kind == .index && name.hasPrefix("sqlite_autoindex_") }
    return SchemaStatement.makes(name, sql)
  }
}
