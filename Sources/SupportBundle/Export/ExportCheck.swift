internal import Lazaret
internal import Platform
internal import SystemPackage

/// Searches the texts of a bundle for values of the store, names of its external values and checksums of its files.
///
/// Values and names are no leak if they are names of the schema or model, JSON members, parts of checksums or times, or
/// if a scrubbed copy gives the same line. A checksum is always a leak.
package struct ExportCheck {
  private let scanner: ValueScanner?

  private let search: ValueSearch?

  private let marks: FileMarks

  private let names: Set<String>

  /// The lines without values, by text.
  private var known: [String: Set<[UInt8]>] = [:]

  package struct Leak {
    package var name: String

    package var offset: Int64
  }

  private static let piece = 2048
  private static let overlap = 128

  /// - Parameter names: texts with the names of schema and model.
  package init(
    _ scanner: ValueScanner?, search: ValueSearch? = nil, marks: FileMarks = FileMarks(names: [], sums: []),
    names texts: [String]
  ) {
    self.scanner = scanner
    self.search = search
    self.marks = marks
    var names = Set<String>()
    for text in texts {
      if text.utf8.count < 100 { names.insert(text.lowercased()) }
      for word in Self.words(Array(text.utf8)[...]) { names.insert(word) }
    }
    self.names = names
  }

  /// Registers a text without values; lines equal to its own are no leaks.
  package mutating func know(_ bytes: [UInt8], named name: String) {
    for line in bytes.split(separator: 0x0a) { known[name, default: []].insert(Self.bare(line, name)) }
  }

  /// Strips a log line's time and a JSON line's comma.
  private static func bare(_ line: ArraySlice<UInt8>, _ name: String) -> [UInt8] {
    var line = line
    if name == "log.txt", let space = line.firstIndex(of: 0x20) { line = line[space...] }
    if line.last == 0x2c { line.removeLast() }
    return Array(line)
  }

  /// Returns the number of leaks and the first.
  ///
  /// - Parameter isOthers: whether to search only names and checksums.
  package func leaks(in bytes: [UInt8], named name: String, isOthers: Bool = false) -> (count: Int, first: Leak)? {
    var (count, first) = (0, Leak?.none)
    var seen = Set<Int64>()
    let marked =
      places(of: marks.sums, in: bytes) { _ in false } + places(of: marks.names, in: bytes) { isOwn(bytes, $0, name) }
    let values = isOthers ? [] : search.map { places(of: $0, in: bytes) { isOwn(bytes, $0, name) } } ?? []
    for offset in (marked + values).sorted() where seen.insert(offset).inserted {
      count += 1
      if first == nil { first = Leak(name: name, offset: offset) }
    }
    guard let scanner, !isOthers, !scanner.scan(bytes, named: FilePath(name)).isEmpty else {
      return first.map { (count, $0) }
    }
    for start in stride(from: 0, to: bytes.count, by: Self.piece) {
      let end = min(bytes.count, start + Self.piece + Self.overlap)
      for place in hits(scanner, bytes, start..<end) where seen.insert(place.offset).inserted {
        let range = Int(place.offset)..<min(bytes.count, Int(place.offset) + place.length)
        if isOwn(bytes, range, name) { continue }
        count += 1
        if place.offset < first?.offset ?? .max { first = Leak(name: name, offset: place.offset) }
      }
    }
    return first.map { (count, $0) }
  }

  /// Returns the first finding of each line.
  private func places(of search: ValueSearch, in bytes: [UInt8], isOwn: (Range<Int>) -> Bool) -> [Int64] {
    var search = search
    guard search.first(in: bytes) != nil else { return [] }
    var places: [Int64] = []
    for line in bytes.split(separator: 0x0a) {
      guard let hit = search.first(in: Array(line)) else { continue }
      let range = (line.startIndex + hit.lowerBound)..<(line.startIndex + hit.upperBound)
      if !isOwn(range) { places.append(Int64(range.lowerBound)) }
    }
    return places
  }

  /// Finds all places, in pieces small enough for a complete list.
  private func hits(_ scanner: ValueScanner, _ bytes: [UInt8], _ range: Range<Int>) -> [(offset: Int64, length: Int)] {
    let findings = scanner.scan(Array(bytes[range]), named: "text")
    if findings.count > findings.places.count, range.count > 2 * Self.overlap {
      let middle = range.lowerBound + range.count / 2
      return hits(scanner, bytes, range.lowerBound..<min(range.upperBound, middle + Self.overlap))
        + hits(scanner, bytes, middle..<range.upperBound)
    }
    return findings.places.map { (Int64(range.lowerBound) + $0.offset, $0.length) }
  }

  // MARK: Own text

  private func isOwn(_ bytes: [UInt8], _ range: Range<Int>, _ name: String) -> Bool {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start > 0, Self.isWord(bytes[start - 1]), Self.isWord(bytes[start]) { start -= 1 }
    while end < bytes.count, end > 0, Self.isWord(bytes[end]), Self.isWord(bytes[end - 1]) { end += 1 }
    let text = bytes[start..<end]
    if text.allSatisfy(Self.isWord), isSum(text) { return true }
    if isTime(bytes, start..<end) || isKnownLine(bytes, range, name) { return true }
    if name.hasSuffix(".json"), isMemberName(bytes, range) { return true }
    // Digits and non-ASCII bytes are not names.
    guard text.allSatisfy({ $0 < 0x80 }) else { return false }
    let words = Self.words(text)
    let hasDigits = text.contains { (0x30...0x39).contains($0) }
    if hasDigits, !names.contains(String(decoding: text, as: UTF8.self).lowercased()) {
      // A name such as `ZCAR2` is one word; `12 Main Street` is three.
      guard words.allSatisfy({ $0.contains(where: \.isLetter) }) else { return false }
    }
    return !words.isEmpty && words.allSatisfy(names.contains)
  }

  private func isKnownLine(_ bytes: [UInt8], _ range: Range<Int>, _ name: String) -> Bool {
    guard let known = known[name] else { return false }
    var (start, end) = (range.lowerBound, range.upperBound)
    while start > 0, bytes[start - 1] != 0x0a { start -= 1 }
    while end < bytes.count, bytes[end] != 0x0a { end += 1 }
    return bytes[start..<end].split(separator: 0x0a).allSatisfy { known.contains(Self.bare($0, name)) }
  }

  /// Whether a place is in a quoted JSON member name at the beginning of a line.
  private func isMemberName(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start > 0, Self.isWord(bytes[start - 1]) { start -= 1 }
    while end < bytes.count, Self.isWord(bytes[end]) { end += 1 }
    guard bytes[start..<end].allSatisfy(Self.isWord), start > 0, bytes[start - 1] == 0x22, end + 1 < bytes.count,
      bytes[end] == 0x22
    else { return false }
    var next = end + 1
    while next < bytes.count, bytes[next] == 0x20 { next += 1 }
    guard next < bytes.count, bytes[next] == 0x3a else { return false }
    var before = start - 1
    while before > 0, bytes[before - 1] == 0x20 { before -= 1 }
    return before == 0 || [0x0a, 0x7b, 0x2c].contains(bytes[before - 1])
  }

  private func isSum(_ text: ArraySlice<UInt8>) -> Bool {
    text.count == 64 && text.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  /// Whether a place is part of a time, or of the name of a quarantined store or backup.
  private func isTime(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    func isPart(_ byte: UInt8) -> Bool {
      (0x30...0x39).contains(byte) || [0x2d, 0x3a, 0x2e, 0x54, 0x5a].contains(byte)
    }
    guard bytes[range].allSatisfy(isPart) else { return false }
    var (start, end) = (range.lowerBound, range.upperBound)
    while start > 0, isPart(bytes[start - 1]), range.lowerBound - start < 40 { start -= 1 }
    while end < bytes.count, isPart(bytes[end]), end - range.upperBound < 40 { end += 1 }
    // A backup's name has a mark and a hyphen before the time.
    while start < range.lowerBound, bytes[start] == 0x2d { start += 1 }
    let text = String(decoding: bytes[start..<end], as: UTF8.self)
    return Timestamp(text) != nil || Timestamp(String(text.prefix(19))) != nil || Timestamp(text + "T00:00:00Z") != nil
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x5f
      || byte >= 0x80
  }

  private static func words(_ text: ArraySlice<UInt8>) -> [String] {
    text.split { !isWord($0) }.map { String(decoding: $0, as: UTF8.self).lowercased() }
  }
}

/// The names of a store's external values and the SHA-256 of each file.
///
/// A reader with a copy of a file could find out by these that it was in the store.
package struct FileMarks: Sendable {
  var names: ValueSearch

  var sums: ValueSearch

  package init(names: Set<String>, sums: Set<[UInt8]>) {
    self.names = ValueSearch(names: names)
    self.sums = ValueSearch(sums: sums)
  }

  init(_ evidence: ExportEvidence, _ receipt: Receipt?, in fileSystem: FileSystem, isCancelled: () -> Bool) throws {
    var (names, sums) = (Set<String>(), Set<[UInt8]>())
    func add(sum digits: String) { if let sum = [UInt8](hexadecimal: digits), sum.count == 32 { sums.insert(sum) } }
    func add(_ path: FilePath) throws {
      let digest = try FileDigest(of: try fileSystem.open(path)) { _ in
        if isCancelled() { throw SupportBundleErrors.cancelled() }
      }
      add(sum: digest.hexadecimal)
    }
    for member in evidence.members where member.status.kind == .regular { try add(member.path) }
    let folder = evidence.files.path(of: .externalData)
    if try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory {
      let found = try fileSystem.descendants(of: folder)
      for path in found.folders + found.files.map(\.relative) { names.formUnion(path.map(\.string)) }
      for file in found.files where file.status.kind == .regular { try add(file.path) }
    }
    for file in receipt?.files ?? [] {
      add(sum: file.sha256)
      guard file.part == .externalData else { continue }
      for name in [file.name, file.originalPath].compactMap({ $0.path?.lastComponent?.string }) { names.insert(name) }
    }
    for result in [receipt?.salvage?.result].compactMap(\.self) + (receipt?.salvage?.others ?? []) {
      add(sum: result.sha256)
    }
    // Core Data's folder has this name in every store.
    names.remove("_EXTERNAL_DATA")
    self.init(names: names, sums: sums)
  }
}
