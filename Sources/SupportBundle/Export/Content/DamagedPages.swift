internal import Lazaret
internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import Salvage
internal import SystemPackage

/// The pages of the level `damaged-pages`: damaged, orphan, unowned, unreadable and schema pages, concatenated in
/// `pages/pages.bin` and listed in `pages/index.json`.
struct DamagedPages {
  private struct Piece {
    var part: StoreFileSet.Part
    var offset: Int64
    var length: Int64
    /// The first page; 0 for other bytes.
    var page: UInt32
    var count: UInt32
    var state: String
    var owner: Int?
    var frame: Int?
  }

  private let pieces: [Piece]
  private let owners: [PageStates.Owner]
  private let pageSize: Int

  var size: Int64 { pieces.reduce(0) { $0 + $1.length } }

  private static let frameHeader: Int64 = 24

  /// Selects the pages.
  ///
  /// - Parameter states: the page states; if nil, all bytes count as damaged.
  init(_ states: PageStates?, _ pages: EvidencePages?, of evidence: ExportEvidence) throws {
    func size(of part: StoreFileSet.Part) -> Int64 {
      evidence.members.first { $0.part == part && $0.status.kind == .regular }?.status.size ?? 0
    }
    var pieces: [Piece] = []
    owners = states?.owners ?? []
    pageSize = states?.pageSize ?? 4096
    guard let states, let pages else {
      let length = size(of: .main)
      if length > 0 {
        pieces.append(
          Piece(
            part: .main, offset: 0, length: length, page: 1, count: UInt32(clamping: (length + 4095) / 4096),
            state: "unreadable"))
      }
      self.pieces = pieces
      return
    }
    for (part, length) in [(StoreFileSet.Part.wal, Int64(32)), (.journal, 28)] where size(of: part) > 0 {
      pieces.append(
        Piece(part: part, offset: 0, length: min(length, size(of: part)), page: 0, count: 0, state: "header"))
    }
    for run in states.runs where Self.isTaken(run, states.owners) {
      for number in run.pages {
        for content in try Self.images(of: number, pages) {
          let isFrame = content.frame != nil
          let offset = isFrame ? content.offset - Self.frameHeader : content.offset
          let piece = Piece(
            part: content.part, offset: offset, length: Int64(content.presentCount) + (isFrame ? Self.frameHeader : 0),
            page: number, count: 1, state: run.state.rawValue, owner: run.owner, frame: content.frame)
          if let last = pieces.last, last.part == piece.part, last.state == piece.state, last.owner == piece.owner,
            !isFrame, last.frame == nil, last.page + last.count == number, last.offset + last.length == offset,
            last.count > 0
          {
            pieces[pieces.count - 1].count += 1
            pieces[pieces.count - 1].length += piece.length
          } else {
            pieces.append(piece)
          }
        }
      }
    }
    self.pieces = pieces
  }

  private static func isTaken(_ run: PageStates.Run, _ owners: [PageStates.Owner]) -> Bool {
    switch run.state {
    case .damaged, .orphan, .unplaced, .unreadable: true
    case .healthy, .overflow: run.pages.contains(1) || run.owner.map { owners[$0].name == "sqlite_schema" } == true
    case .free, .special: run.pages.contains(1)
    }
  }

  private static func images(of number: UInt32, _ pages: EvidencePages) throws -> [EvidencePages.Content] {
    var images: [EvidencePages.Content] = []
    if let main = try pages.page(number, .main) { images.append(main) }
    for frame in pages.frames[number] ?? [] {
      if let image = try pages.page(number, .frame(frame.number)) { images.append(image) }
    }
    if let current = try pages.page(number),
      !images.contains(where: { $0.part == current.part && $0.offset == current.offset })
    {
      images.append(current)
    }
    return images
  }

  var index: [UInt8] {
    var text = Array("{\"formatVersion\":1,\"pageSize\":\(pageSize),\"file\":\"pages.bin\",\"pieces\":[".utf8)
    var place: Int64 = 0
    for (number, piece) in pieces.enumerated() {
      var line = number == 0 ? "\n" : ",\n"
      line +=
        "{\"at\":\(place),\"length\":\(piece.length),\"part\":\"\(piece.part.rawValue)\",\"offset\":\(piece.offset)"
      line += ",\"page\":\(piece.page),\"pages\":\(piece.count),\"state\":\"\(piece.state)\""
      if let owner = piece.owner, owners.indices.contains(owner) { line += ",\(owners[owner].members)" }
      if let frame = piece.frame { line += ",\"frame\":\(frame),\"headerLength\":\(Self.frameHeader)" }
      text += "\(line)}".utf8
      place += piece.length
    }
    return text + "\n]}\n".utf8
  }

  func write(to path: FilePath, from files: StoreFileSet, in fileSystem: FileSystem, isCancelled: () -> Bool) throws {
    let output = try fileSystem.create(path, permissions: .ownerReadWrite)
    var sources: [StoreFileSet.Part: ReadableFile] = [:]
    for piece in pieces {
      let source = try sources[piece.part] ?? fileSystem.open(files.path(of: piece.part))
      sources[piece.part] = source
      var done: Int64 = 0
      while done < piece.length {
        if isCancelled() { throw SupportBundleErrors.cancelled() }
        let bytes = try source.bytes(at: piece.offset + done, length: Int(min(1 << 20, piece.length - done)))
        guard !bytes.isEmpty else { throw FileError(.changed, operation: "read the store", path: source.path) }
        try output.write(bytes)
        done += Int64(bytes.count)
      }
    }
    try output.commit()
  }
}

extension PageStates.Owner {
  /// The members of a JSON object that name it.
  fileprivate var members: String {
    "\"table\":\(JSON.literal(table))" + (isIndex ? ",\"index\":\(JSON.literal(name))" : "")
  }
}

/// The page map, `data/page-map.json`: runs with state, table and page type.
struct PageMapFile {
  let text: [UInt8]

  private struct Run {
    var first: UInt32
    var last: UInt32
    var state: PageStates.State
    var owner: Int?
    var type: String
  }

  init(_ states: PageStates, pages: EvidencePages?, isCancelled: () -> Bool) throws {
    var runs: [Run] = []
    for run in states.runs {
      for number in run.pages {
        if number % 4096 == 0, isCancelled() { throw SupportBundleErrors.cancelled() }
        let type = try Self.type(of: number, run.state, pages)
        if let last = runs.last, last.state == run.state, last.owner == run.owner, last.type == type {
          runs[runs.count - 1].last = number
        } else {
          runs.append(Run(first: number, last: number, state: run.state, owner: run.owner, type: type))
        }
      }
    }
    let owners = states.owners.map(\.members)
    let counts = PageStates.State.allCases.map { "\"\($0.rawValue)\":\(states.counts[$0] ?? 0)" }.joined(separator: ",")
    var text = Array(
      "{\"formatVersion\":1,\"pageSize\":\(states.pageSize),\"total\":\(states.total),\"mapped\":\(states.mapped),\n"
        .utf8)
    text += "\"counts\":{\(counts)},\n\"runs\":[".utf8
    for (index, run) in runs.enumerated() {
      var line = index == 0 ? "\n" : ",\n"
      line +=
        "{\"first\":\(run.first),\"last\":\(run.last),\"state\":\"\(run.state.rawValue)\",\"type\":\"\(run.type)\""
      if let owner = run.owner { line += ",\(owners[owner])" }
      text += "\(line)}".utf8
    }
    text += "\n]}\n".utf8
    self.text = text
  }

  private static func type(of number: UInt32, _ state: PageStates.State, _ pages: EvidencePages?) throws -> String {
    switch state {
    case .overflow, .special, .free: return state.rawValue
    case .healthy, .orphan, .damaged, .unplaced, .unreadable: break
    }
    let start = number == 1 ? DatabaseHeader.length : 0
    guard let content = try pages?.page(number), content.bytes.count > start else { return "missing" }
    switch PageKind(rawValue: content.bytes[start]) {
    case .tableLeaf: return "table-leaf"
    case .tableInterior: return "table-interior"
    case .indexLeaf: return "index-leaf"
    case .indexInterior: return "index-interior"
    case nil: return "other"
    }
  }
}
