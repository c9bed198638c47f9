internal import Platform
internal import SystemPackage

/// Reads the original's values for a search.
struct ValueReading: Sendable {
  private(set) var store: CheckedStore

  /// The rows on all table pages.
  private(set) var rows: Int64 = 0

  private var fingerprints: ValueFingerprints
  private let progress: CheckProgress
  private let comparison: PageComparison?
  private var page = CheckedPage()

  /// Kept texts, excluded from the search.
  private var kept: [UInt8] = []
  private static let mostKept = 8 << 20

  private init(_ store: CheckedStore, total: Int64, readers: Int, _ progress: CheckProgress) {
    self.store = store
    fingerprints = ValueFingerprints(bytes: total, readers: readers)
    self.progress = progress
    comparison = store.format.map { format in
      PageComparison(format, places: total, rows: 0, hasOwnRowids: false, model: store.model, isName: store.isName)
    }
  }

  /// Reads all values; nil if cancelled.
  static func all(
    of store: CheckedStore, external: FilePath, total: Int64, _ progress: CheckProgress, in fileSystem: FileSystem
  ) throws(FileError) -> ValueReading? {
    let lists = store.format == nil ? [] : Stretch.lists(of: store, overlap: 0)
    var readings = try concurrently(lists) { (stretches) throws(FileError) -> ValueReading? in
      var reading = ValueReading(store, total: total, readers: lists.count, progress)
      for stretch in stretches where try !reading.read(stretch) { return nil }
      return reading
    }
    // Release them singly, without copies.
    guard var all = lists.isEmpty ? ValueReading(store, total: total, readers: 1, progress) : readings.removeFirst()
    else { return nil }
    while !readings.isEmpty {
      guard let reading = readings.removeFirst() else { return nil }
      all.take(reading)
    }
    try all.readExternal(external, fileSystem)
    return all
  }

  private mutating func take(_ other: ValueReading) {
    store.takeUses(of: other.store)
    rows += other.rows
    fingerprints.take(other.fingerprints)
    kept += other.kept
  }

  /// Returns a search without values in kept content.
  func search(size: Int64) -> ValueSearch {
    // The database header begins with a text that is no value.
    var (wanted, texts) = (fingerprints, kept + "SQLite format 3\0".utf8)
    for name in store.names { texts += Array(name.utf8) + [0] }
    wanted.remove(allIn: texts.span)
    if let model = store.model { wanted.remove(allIn: model.bytes.span) }
    return ValueSearch(wanted, size: size)
  }

  private mutating func read(_ stretch: Stretch) throws(FileError) -> Bool {
    guard let format = store.format else { return true }
    let part = store.parts[stretch.part]
    var buffer = [UInt8](repeating: 0, count: format.pageSize)
    for number in stretch.images {
      let image = part.images[number]
      let got = try part.source.read(at: image.offset, length: format.pageSize, into: &buffer)
      for index in got..<max(got, format.pageSize) { buffer[index] = 0 }
      page.read(buffer.span, number: image.page, format, isMarking: false)
      try take(image.page, buffer, format)
      if number % 1024 == 0, !progress.add(1024 * Int64(format.pageSize)) { return false }
    }
    return true
  }

  private mutating func take(_ number: Int, _ bytes: [UInt8], _ format: PageFormat) throws(FileError) {
    guard let comparison, !page.records.isEmpty else { return }
    let tree = store.tree(ofPage: number)
    for record in page.records {
      if page.kind == 13 { rows += 1 }
      let isKept = comparison.keeps(record, page, bytes.span, tree)
      for place in record.fields {
        let field = page.fields[place]
        let rule = comparison.rule(of: field, tree)
        if isKept || rule.isKept {
          keep(bytes, field, format)
        } else if field.type >= 12, field.type & 1 == 0, let values = comparison.metadata(field, rule, bytes.span) {
          if field.isWhole { take(values, of: field, bytes) }
        } else {
          take(field, rule, bytes.span, format)
        }
      }
      // The model's overflow pages are recognized by content.
      guard record.overflow > 1, !comparison.isModel(record, page, bytes.span) else { continue }
      if !isKept, try takeMetadata(record, bytes, format) { continue }
      try follow(record, isKept: isKept, tree, format)
    }
  }

  private mutating func keep(_ bytes: [UInt8], _ field: CheckedPage.Field, _ format: PageFormat) {
    guard field.type >= 12, kept.count + field.range.count < Self.mostKept else { return }
    let isWide = field.type & 1 == 1 && format.encoding != .utf8
    kept += isWide ? Array(format.encoding.text(bytes[field.range]).utf8) : Array(bytes[field.range])
    kept.append(0)
  }

  /// Adds an app's values in metadata; the rest stays.
  private mutating func take(_ values: [Range<Int>], of field: CheckedPage.Field, _ bytes: [UInt8]) {
    var rest = bytes
    for range in values {
      fingerprints.insert(text: bytes.span, range)
      for index in range { rest[index] = 0 }
    }
    if kept.count + field.range.count < Self.mostKept { kept += rest[field.range] }
  }

  private mutating func take(
    _ field: CheckedPage.Field, _ rule: CheckedTree.Rule, _ bytes: Span<UInt8>, _ format: PageFormat
  ) {
    switch field.type {
    case 4...6:
      let number = Bytes.signed(bytes, field.range)
      guard field.isWhole, number.magnitude >= 10_000_000, !rule.isKey else { return }
      fingerprints.insert(text: String(number.magnitude))
    case 13... where field.type & 1 == 1:
      if format.encoding == .utf8 {
        fingerprints.insert(text: bytes, field.range)
      } else {
        fingerprints.insert(text: format.encoding.text(field.range.map { bytes[$0] }))
      }
    case 12...: fingerprints.insert(blob: bytes, field.range)
    default: break
    }
  }

  /// Adds an app's values in metadata with overflow, if any.
  private mutating func takeMetadata(
    _ record: CheckedPage.Record, _ bytes: [UInt8], _ format: PageFormat
  ) throws(FileError) -> Bool {
    guard record.long.count == 1, let field = record.long.first, field.type >= 12, field.type & 1 == 0,
      let start = page.fields[record.fields].last?.range.lowerBound, record.length <= Self.longestMetadata,
      bytes[start...].starts(with: "bplist00".utf8)
    else { return false }
    var list = Array(bytes[start..<min(bytes.count, start + record.local - field.start)])
    let pages = try store.append(overflow: record.overflow, to: &list, length: record.length - field.start, format)
    guard let reading = MetadataReading(list.span, 0..<list.count) else { return false }
    for page in pages { _ = store.note(.metadata, ofPage: page) }
    for range in reading.appValues {
      fingerprints.insert(text: list.span, range)
      for index in range { list[index] = 0 }
    }
    if kept.count + list.count < Self.mostKept { kept += list }
    return true
  }

  /// The longest metadata read across pages.
  private static let longestMetadata = 1 << 20

  private mutating func follow(
    _ record: CheckedPage.Record, isKept: Bool, _ tree: CheckedTree?, _ format: PageFormat
  ) throws(FileError) {
    var next = record.overflow
    var taken = record.local
    var buffer = [UInt8](repeating: 0, count: format.pageSize)
    while next > 1, taken < record.length {
      let field = record.long.last { $0.start <= taken } ?? record.long.first
      let isText = record.long.contains { $0.type & 1 == 1 && $0.start < taken + format.pageSize }
      let place = record.count - record.long.count + (record.long.lastIndex { $0.start <= taken } ?? 0)
      let rule = tree.map { $0.rules.indices.contains(place) ? $0.rules[place] : $0.other }
      let use: CheckedStore.Use = isKept || rule?.isKept == true ? .kept : isText ? .text : .blob
      guard store.note(use, ofPage: next), try store.read(page: next, into: &buffer) else { return }
      let count = min(format.usableSize - 4, record.length - taken)
      if use == .kept {
        if kept.count + count < Self.mostKept { kept += buffer[4..<(4 + count)] }
      } else if format.encoding == .utf8 || field.map({ $0.type & 1 == 0 }) == true {
        fingerprints.insertPieces(
          buffer.span, 4..<(4 + count), isText: field.map { $0.type & 1 == 1 } ?? false, every: 512)
      }
      taken += count
      next = Bytes.four(buffer.span, 0) ?? 0
    }
  }

  private mutating func readExternal(_ folder: FilePath, _ fileSystem: FileSystem) throws(FileError) {
    for file in try fileSystem.regularFiles(below: folder) {
      for component in file.relative where component != CheckedStore.ownFolder {
        fingerprints.insert(text: component.string)
      }
      var (digest, isEmpty) = (RunningDigest(), true)
      let source = try fileSystem.open(file.path)
      for offset in stride(from: 0, to: source.count, by: 65536) {
        let bytes = try source.bytes(at: offset, length: 65536)
        if bytes.isEmpty { break }
        if offset == 0 {
          fingerprints.insert(blob: bytes.span, 0..<bytes.count)
        } else {
          fingerprints.insertPieces(bytes.span, 0..<bytes.count, isText: false)
        }
        digest.add(bytes)
        isEmpty = false
      }
      // A reader with a copy of the file could find out by its checksum that it was in the store.
      if !isEmpty, let sum = [UInt8](hexadecimal: digest.hexadecimal) {
        fingerprints.insert(blob: sum.span, 0..<sum.count)
      }
    }
  }
}

/// The images of a file for one thread.
struct Stretch: Sendable {
  /// The image count for two threads.
  private static let leastImages = 4096

  var part: Int

  var images: Range<Int>

  /// Whether it includes the bytes after the last image.
  var hasRest: Bool

  /// Returns all images, with large files split in two.
  ///
  /// - Parameter overlap: the images repeated in the second half.
  static func lists(of store: CheckedStore, overlap: Int) -> [[Stretch]] {
    var lists: [[Stretch]] = [[], []]
    for (place, part) in store.parts.enumerated() {
      let count = part.images.count
      if count >= leastImages {
        lists[0].append(Stretch(part: place, images: 0..<(count / 2), hasRest: false))
        lists[1].append(Stretch(part: place, images: (count / 2 - overlap)..<count, hasRest: true))
      } else {
        lists[0].append(Stretch(part: place, images: 0..<count, hasRest: true))
      }
    }
    return lists.filter { !$0.isEmpty }
  }
}

final class CheckProgress: Sendable {
  private let done = Mutex<Int64>(0)
  private let total: Int64
  private let tell: ResultCheck.Progress

  init(total: Int64, _ tell: @escaping ResultCheck.Progress) {
    self.total = total
    self.tell = tell
  }

  /// Adds bytes; false if cancelled.
  func add(_ bytes: Int64) -> Bool {
    let sum = done.withLock { done in
      done += bytes
      return done
    }
    return tell(min(total, sum), total)
  }
}
