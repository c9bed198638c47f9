internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// The output files, zero where unwritten.
final class ScrubbedSet {
  let files: StoreFileSet
  private let fileSystem: FileSystem
  private var outputs: [StoreFileSet.Part: ScrubbedFile] = [:]

  init(
    _ files: StoreFileSet, main: any ByteSource, log: (any ByteSource)?, journal: (any ByteSource)?,
    in fileSystem: FileSystem
  ) throws(FileError) {
    self.files = files
    self.fileSystem = fileSystem
    let sources: [(StoreFileSet.Part, (any ByteSource)?)] = [(.main, main), (.wal, log), (.journal, journal)]
    for case (let part, let source?) in sources {
      outputs[part] = try ScrubbedFile(files.path(of: part), size: source.count, in: fileSystem)
    }
  }

  func write(_ image: PageImage, _ bytes: [UInt8], count: Int, at offset: Int64) throws(FileError) {
    try outputs[image.part]?.file.write(bytes[..<count], at: offset)
  }

  func read(_ image: PageImage, at offset: Int64, into buffer: inout [UInt8]) throws(FileError) -> Int {
    try open(image.part).read(at: offset, length: buffer.count, into: &buffer)
  }

  func write(_ part: StoreFileSet.Part, _ bytes: [UInt8], at offset: Int64) throws(FileError) {
    try outputs[part]?.file.write(bytes, at: offset)
  }

  func open(_ part: StoreFileSet.Part) throws(FileError) -> ReadableFile { try fileSystem.open(files.path(of: part)) }

  func synchronize() throws(FileError) {
    for part in [StoreFileSet.Part.main, .wal, .journal] { try outputs[part]?.file.synchronize() }
  }
}

private final class ScrubbedFile {
  let file: WritableFile

  init(_ path: FilePath, size: Int64, in fileSystem: FileSystem) throws(FileError) {
    file = try fileSystem.create(path, permissions: .ownerReadWrite)
    try file.truncate(to: size)
  }
}

/// Scrubs external values: noise of the same length, and pseudonyms for names, except Core Data's folder.
struct ExternalValues {
  let source: FilePath
  let target: FilePath
  let fileSystem: FileSystem

  private(set) var count = 0

  private static let pieceLength = 65536
  private static let ownFolder: FilePath.Component = "_EXTERNAL_DATA"

  private func files() throws(FileError) -> (folders: [[FilePath.Component]], files: [FileSystem.Descendant])? {
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return nil }
    return try fileSystem.descendants(of: source)
  }

  mutating func note(_ pseudonyms: Pseudonyms) throws(FileError) {
    for file in try files()?.files ?? [] where file.status.kind == .regular {
      count += 1
      for component in file.relative where component != Self.ownFolder {
        let name = Array(component.string.utf8)
        pseudonyms.watch(utf8: name.span, 0..<name.count)
      }
      let source = try fileSystem.open(file.path)
      for offset in stride(from: 0, to: source.count, by: Self.pieceLength) {
        let bytes = try source.bytes(at: offset, length: Self.pieceLength)
        if bytes.isEmpty { break }
        pseudonyms.note(12 + 2 * Int64(bytes.count), bytes.span, 0..<bytes.count, FieldRule())
      }
    }
  }

  private struct Names {
    private var known: [FilePath.Component: FilePath.Component] = [ownFolder: ownFolder]
    private var taken: Set<FilePath.Component> = [ownFolder]

    mutating func path(_ path: [FilePath.Component], _ pseudonyms: Pseudonyms) -> [FilePath.Component] {
      path.map { component in
        if let name = known[component] { return name }
        var name = Self.name(component.string, pseudonyms)
        var result = FilePath.Component(name) ?? "_"
        while !taken.insert(result).inserted {
          name += "_"
          result = FilePath.Component(name) ?? "_"
        }
        known[component] = result
        return result
      }
    }

    /// Identifiers get the same pseudonym as in records.
    private static func name(_ name: String, _ pseudonyms: Pseudonyms) -> String {
      var bytes = Array(name.utf8)
      if BlobForm.isIdentifierText(bytes.span, 0..<bytes.count) {
        return String(decoding: pseudonyms.identifier(for: bytes), as: UTF8.self)
      }
      guard bytes.allSatisfy({ $0 < 0x80 }) else { return "_" + String(bytes.count) }
      pseudonyms.replaceAscii(&bytes, 0..<bytes.count)
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// Writes the output files, omitting links.
  func write(_ pseudonyms: Pseudonyms) throws(FileError) {
    guard let found = try files() else { return }
    var names = Names()
    for folder in [[]] + found.folders {
      let path = target.appending(names.path(folder, pseudonyms))
      try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
    }
    for file in found.files where file.status.kind == .regular {
      let original = try fileSystem.open(file.path)
      let output = try fileSystem.create(target.appending(names.path(file.relative, pseudonyms)))
      for offset in stride(from: 0, to: original.count, by: Self.pieceLength) {
        var bytes = try original.bytes(at: offset, length: Self.pieceLength)
        if bytes.isEmpty { break }
        _ = pseudonyms.replace(12 + 2 * Int64(bytes.count), &bytes, 0..<bytes.count, FieldRule())
        try output.write(bytes, at: offset)
      }
      try output.synchronize()
    }
  }
}

/// Gives frames of a scrubbed WAL valid checksums where the original's were valid.
///
/// Checksums are cumulative: each frame is judged by the previous one's stored checksum, as in salvage.
struct LogRewriting {
  let original: any ByteSource
  let frameLength: Int

  func run(_ set: ScrubbedSet) throws(FileError) {
    let head = try original.bytes(at: 0, length: WriteAheadLog.Header.length)
    let scrubbed = try set.open(.wal)
    let count = Int(clamping: max(0, original.count - Int64(WriteAheadLog.Header.length)) / Int64(frameLength))
    guard count > 0, frameLength > WriteAheadLog.frameHeaderLength else { return }
    let header = WriteAheadLog.Header(head)
    let isBigEndian = if let header { header.isBigEndian } else { try guessedOrder(count) }
    var before: LogChecksum?
    if let header, header.isChecksumRight {
      var checksum = LogChecksum()
      checksum.add(head.span.extracting(0..<24), bigEndian: header.isBigEndian)
      before = checksum
    }
    var beforeNew = before
    var old = [UInt8](repeating: 0, count: frameLength)
    var new = [UInt8](repeating: 0, count: frameLength)
    for index in 0..<count {
      let offset = Int64(WriteAheadLog.Header.length) + Int64(index) * Int64(frameLength)
      guard try original.read(at: offset, length: frameLength, into: &old) == frameLength,
        try scrubbed.read(at: offset, length: frameLength, into: &new) == frameLength
      else { return }
      let stored = LogFrame(old.span).checksum
      var result = stored
      if let known = before, let knownNew = beforeNew,
        LogFrame.checksum(known, adding: old.span, bigEndian: isBigEndian) == stored
      {
        result = LogFrame.checksum(knownNew, adding: new.span, bigEndian: isBigEndian)
        try set.write(.wal, result.first.bigEndianBytes + result.second.bigEndianBytes, at: offset + 16)
      }
      before = stored
      beforeNew = result
    }
  }

  /// Returns the byte order that validates most of the first frames.
  private func guessedOrder(_ count: Int) throws(FileError) -> Bool {
    // More votes for big-endian are positive.
    var votes = 0
    for index in 0..<min(64, max(0, count - 1)) {
      let offset = Int64(WriteAheadLog.Header.length) + Int64(index) * Int64(frameLength)
      let pair = try original.bytes(at: offset, length: 2 * frameLength)
      guard pair.count == 2 * frameLength else { break }
      let first = LogFrame(pair.span.extracting(0..<frameLength)).checksum
      let second = pair.span.extracting(frameLength..<(2 * frameLength))
      for (order, vote) in [(false, -1), (true, 1)]
      where LogFrame.checksum(first, adding: second, bigEndian: order) == LogFrame(second).checksum { votes += vote }
    }
    return votes > 0
  }
}

/// Gives records of a scrubbed journal a valid checksum where the original was valid.
///
/// A checksum sums page bytes, so it changes by their difference, whatever its initial value.
struct JournalRewriting {
  let images: PageImages

  func run(_ set: ScrubbedSet) throws(FileError) {
    guard let journal = images.journal else { return }
    let scrubbed = try set.open(.journal)
    var end: Int64 = 0
    for record in images.records {
      try copyBetween(journal, end..<(record.offset - 4), set)
      end = record.offset + Int64(images.pageSize) + 4
      try set.write(.journal, try journal.bytes(at: record.offset - 4, length: 4), at: record.offset - 4)
      let stored = try journal.bytes(at: end - 4, length: 4)
      guard let old = stored.span.uint32(at: 0) else { continue }
      let sum =
        old &- Self.sum(try journal.bytes(at: record.offset, length: images.pageSize))
        &+ Self.sum(try scrubbed.bytes(at: record.offset, length: images.pageSize))
      try set.write(.journal, sum.bigEndianBytes, at: end - 4)
    }
    try copyBetween(journal, end..<journal.count, set)
  }

  private func copyBetween(_ journal: any ByteSource, _ range: Range<Int64>, _ set: ScrubbedSet) throws(FileError) {
    var offset = range.lowerBound
    let sector = Int64(images.sectorSize)
    while offset < range.upperBound {
      let next = min(range.upperBound, (offset / sector + 1) * sector)
      var bytes = try journal.bytes(at: offset, length: Int(next - offset))
      let kept = kept(bytes.span)
      for index in bytes.indices where index >= kept && bytes[index] != 0 { bytes[index] = 0xff }
      try set.write(.journal, bytes, at: offset)
      offset = next
    }
  }

  /// Returns the header length of a sector; an unsynced one has zero magic and count.
  private func kept(_ bytes: Span<UInt8>) -> Int {
    guard bytes.count >= RollbackJournal.Header.length else { return 0 }
    let hasMagic = RollbackJournal.magic.indices.allSatisfy { bytes[$0] == RollbackJournal.magic[$0] }
    let isBlank = (0..<12).allSatisfy { bytes[$0] == 0 }
    let isOwn = bytes.uint32(at: 20) == UInt32(images.sectorSize) && bytes.uint32(at: 24) == UInt32(images.pageSize)
    if isOwn, hasMagic || isBlank { return RollbackJournal.Header.length }
    return hasMagic ? RollbackJournal.magic.count : 0
  }

  private static func sum(_ page: [UInt8]) -> UInt32 {
    stride(from: page.count - 200, to: 0, by: -200).reduce(0) { $0 &+ UInt32(page[$1]) }
  }
}

extension UInt32 {
  fileprivate var bigEndianBytes: [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: self >> $0) } }
}
