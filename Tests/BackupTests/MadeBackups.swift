import Backup
import Platform
import SystemPackage
import TestSupport

/// Backups with real content, packed without compression, so that every byte of them is under the test's control.
struct MadeBackups {
  let place: FolderPlace

  static let blockLength = 1 << 20

  /// The identifier of a minute.
  static func id(_ number: Int) -> BackupIdentifier {
    BackupIdentifier(date: Timestamp(secondsSince1970: 1_795_000_000 + Int64(number) * 60))
  }

  /// Takes a full backup of a database file's bytes, or a delta of another one's.
  func add(
    _ number: Int, _ database: [UInt8], parent: (number: Int, database: [UInt8])? = nil, depth: Int = 1,
    values: [(name: String, bytes: [UInt8])] = [], store: FilePath = "/App.sqlite"
  ) throws {
    let id = Self.id(number)
    let pageSize = database[16] == 0 && database[17] == 1 ? 65536 : Int(database[16]) << 8 | Int(database[17])
    var whole = Self.content(database)
    whole.pageSize = pageSize
    whole.pageCount = UInt32(database.count / pageSize)
    var files: [BackupManifest.File] = []
    var pages: [UInt32]?
    if let parent {
      let changed = (0..<(database.count / pageSize)).filter { page in
        let range = (page * pageSize)..<((page + 1) * pageSize)
        return range.upperBound > parent.database.count || database[range] != parent.database[range]
      }
      pages = changed.flatMap { [UInt32($0 + 1), 1] }
      let bytes = changed.flatMap { database[($0 * pageSize)..<(($0 + 1) * pageSize)] }
      files.append(try put(.delta, id, bytes, Self.content(bytes)))
    } else {
      files.append(try put(.database, id, database, nil))
    }
    let archive = values.flatMap(\.bytes)
    if !values.isEmpty { files.append(try put(.externalData, id, archive, Self.content(archive))) }
    var manifest = BackupManifest(
      id: id, kind: parent == nil ? .full : .delta, reason: .manual,
      store: .init(path: PathText(store), kind: "core-data"), files: files, check: .init(isSound: true),
      versions: .init(library: "1", operatingSystem: "test"))
    manifest.database = whole
    if let parent {
      manifest.parent = Self.id(parent.number)
      manifest.depth = depth
      manifest.pages = pages
    }
    if !values.isEmpty {
      var offset: Int64 = 0
      manifest.externalData = .init(
        items: values.map { value in
          defer { offset += Int64(value.bytes.count) }
          return .init(
            name: PathText(FilePath(value.name)), bytes: Int64(value.bytes.count),
            sha256: FileDigest(of: value.bytes).hexadecimal, offset: offset)
        })
    }
    try place.replace("\(id).json", with: try manifest.json(), in: .kept)
  }

  /// Changes a byte of a backup's file.
  func damage(_ number: Int, _ role: BackupManifest.File.Role, at offset: Int) throws {
    let name = "\(Self.id(number))\(role.suffix)"
    var bytes = try place.read(name, in: .kept, at: 0, length: 1 << 30)
    bytes[offset] ^= 0x10
    try place.replace(name, with: bytes, in: .kept)
  }

  private func put(
    _ role: BackupManifest.File.Role, _ id: BackupIdentifier, _ bytes: [UInt8], _ content: BackupManifest.Content?
  ) throws -> BackupManifest.File {
    let starts = Array(stride(from: 0, to: max(1, bytes.count), by: Self.blockLength))
    let members = starts.map { Self.member(bytes[$0..<min(bytes.count, $0 + Self.blockLength)]) }
    let packed = members.flatMap { $0 }
    let name = "\(id)\(role.suffix)"
    try place.replace(name, with: packed, in: .kept)
    return .init(
      role: role, name: name, bytes: Int64(packed.count), sha256: FileDigest(of: packed).hexadecimal,
      members: members.map(\.count), content: content)
  }

  private static func content(_ bytes: [UInt8]) -> BackupManifest.Content {
    let blocks = stride(from: 0, to: bytes.count, by: blockLength).map { start in
      FileDigest(of: Array(bytes[start..<min(bytes.count, start + blockLength)])).hexadecimal
    }
    return .init(bytes: Int64(bytes.count), sha256: FileDigest(of: bytes).hexadecimal, blocks: blocks)
  }

  /// A gzip member of stored blocks (RFC 1952, RFC 1951 section 3.2.4).
  private static func member(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
    var rest = bytes
    repeat {
      let piece = rest.prefix(65535)
      rest = rest.dropFirst(piece.count)
      let length = UInt16(piece.count)
      result.append(rest.isEmpty ? 1 : 0)
      for word in [length, ~length] { result += [UInt8(word & 0xFF), UInt8(word >> 8)] }
      result += piece
    } while !rest.isEmpty
    for word in [crc(bytes), UInt32(bytes.count)] {
      result += (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
    return result
  }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
  }

  private static func crc(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    ~bytes.reduce(~UInt32(0)) { table[Int(($0 ^ UInt32($1)) & 0xFF)] ^ ($0 >> 8) }
  }
}
