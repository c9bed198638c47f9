package import Platform
package import SQLiteFormat
package import SystemPackage

/// All images of a store's pages for display, read without SQLite; thread-safe.
package struct EvidencePages: Sendable {
  package enum Image: Sendable, Hashable {
    /// The newest committed one.
    case current

    case main

    /// The one in a log frame, counted from 1.
    case frame(Int)
  }

  package struct Frame: Sendable, Hashable {
    package var number: Int

    var page: UInt32

    /// The page count after a commit, else 0.
    var databasePages: UInt32

    /// Whether the salts match the log's header.
    package var isOfThisRound: Bool
  }

  package struct Content: Sendable {
    var number: UInt32

    /// The full page, zero-filled past the end of the file.
    package var bytes: [UInt8]

    /// The number of bytes present in the file.
    package var presentCount: Int

    package var part: StoreFileSet.Part

    package var offset: Int64

    package var frame: Int?

    /// Whether SQLite would have ignored this newest image.
    package var isDoubtful: Bool
  }

  package var pageSize: Int { layout.pageSize }

  var usableSize: Int { layout.usableSize }

  package var geometry: PayloadGeometry { layout.geometry }

  package var encoding: TextEncoding { layout.encoding }

  /// The highest number of a page with any byte.
  package let pageCount: UInt32

  package let frames: [UInt32: [Frame]]

  private let evidence: Evidence
  private let layout: FileLayout
  private let overlay: PageOverlay?

  private static let maximumFrames = 1 << 20

  /// Opens a store.
  ///
  /// - Throws: ``SalvageError`` if no database is found; `FileError` if a file is unreadable.
  package init(_ path: FilePath, in fileSystem: FileSystem) throws {
    evidence = try Evidence(path, in: fileSystem)
    let reader = try PageReader.open(evidence)
    layout = reader.layout
    overlay = reader.overlay
    frames = try Self.frames(evidence.log, pageSize: layout.pageSize)
    // A frame can name any page; there are at most as many pages as frames.
    let reach = UInt32(clamping: Int64(reader.pageCount) + Int64(frames.count))
    pageCount = max(reader.pageCount, frames.keys.filter { $0 <= reach }.max() ?? 0)
  }

  private static func frames(_ log: (any ByteSource)?, pageSize: Int) throws -> [UInt32: [Frame]] {
    guard let log else { return [:] }
    let header = WriteAheadLog.Header(try log.bytes(at: 0, length: WriteAheadLog.Header.length))
    let length = Int64(pageSize + WriteAheadLog.frameHeaderLength)
    let count = Int(min(Int64(maximumFrames), (log.count - Int64(WriteAheadLog.Header.length)) / length))
    guard count > 0 else { return [:] }
    var result: [UInt32: [Frame]] = [:]
    for index in 0..<count {
      let place = Int64(WriteAheadLog.Header.length) + Int64(index) * length
      let bytes = try log.bytes(at: place, length: WriteAheadLog.frameHeaderLength)
      guard let page = bytes.span.uint32(at: 0), page > 0, let size = bytes.span.uint32(at: 4),
        let salt1 = bytes.span.uint32(at: 8), let salt2 = bytes.span.uint32(at: 12)
      else { continue }
      let isOfThisRound = header.map { salt1 == $0.salt1 && salt2 == $0.salt2 } ?? true
      result[page, default: []].append(
        Frame(number: index + 1, page: page, databasePages: size, isOfThisRound: isOfThisRound))
    }
    return result
  }

  package func page(_ number: UInt32, _ image: Image = .current) throws -> Content? {
    guard number > 0, number <= pageCount else { return nil }
    switch image {
    case .main: return try mainContent(number)
    case .frame(let frame): return try frameContent(number, frame)
    case .current:
      if let found = overlay?.images[number], let overlay {
        switch overlay.source {
        case .log:
          guard let log = evidence.log else { return nil }
          var content = try self.content(number, of: log, .wal, at: found.offset)
          content?.frame = found.number
          content?.isDoubtful = found.isDoubtful
          return content
        case .journal:
          guard let journal = evidence.journal else { return nil }
          var content = try self.content(number, of: journal, .journal, at: found.offset)
          content?.isDoubtful = found.isDoubtful
          return content
        }
      }
      return try mainContent(number)
    }
  }

  private func mainContent(_ number: UInt32) throws -> Content? {
    try content(
      number, of: evidence.main, .main, at: layout.base + Int64(number - 1) * Int64(pageSize))
  }

  private func frameContent(_ number: UInt32, _ frame: Int) throws -> Content? {
    guard let log = evidence.log, frames[number]?.contains(where: { $0.number == frame }) == true else { return nil }
    let length = Int64(pageSize + WriteAheadLog.frameHeaderLength)
    let place =
      Int64(WriteAheadLog.Header.length) + Int64(frame - 1) * length + Int64(WriteAheadLog.frameHeaderLength)
    var content = try content(number, of: log, .wal, at: place)
    content?.frame = frame
    return content
  }

  private func content(
    _ number: UInt32, of source: any ByteSource, _ part: StoreFileSet.Part, at offset: Int64
  ) throws -> Content? {
    guard offset >= 0, offset < source.count else { return nil }
    var bytes = try source.bytes(at: offset, length: pageSize)
    guard !bytes.isEmpty else { return nil }
    let present = bytes.count
    if present < pageSize { bytes.append(contentsOf: repeatElement(0, count: pageSize - present)) }
    return Content(
      number: number, bytes: bytes, presentCount: present, part: part, offset: source.fileOffset(of: offset),
      frame: nil, isDoubtful: false)
  }
}
