import Compatibility

/// The members of a packed file by what their own headers say, for a file in which they are not where its manifest says:
/// where a part was cut out of it, or something was put in between.
///
/// The file is searched once, when the first member is missing from its place.
final class FoundMembers: Sendable {
  private let search: @Sendable () throws(BackupError) -> [UInt32: [Int64]]
  private let found = Mutex<[UInt32: [Int64]]?>(nil)

  /// How many places are kept of each number; what contradicts itself so often is no backup.
  private static let limit = 4

  init(
    in name: String, packedBy compression: BackupCompression, of place: any BackupPlace, _ section: BackupSection
  ) {
    search = { () throws(BackupError) in try Self.search(name, compression, place, section) }
  }

  /// Where members of that number may begin.
  func places(of number: Int) throws(BackupError) -> [Int64] {
    if let known = found.withLock({ $0 }) { return known[UInt32(clamping: number)] ?? [] }
    let all = try search()
    found.withLock { $0 = all }
    return all[UInt32(clamping: number)] ?? []
  }

  private static func search(
    _ name: String, _ compression: BackupCompression, _ place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) -> [UInt32: [Int64]] {
    var result: [UInt32: [Int64]] = [:]
    let length = 1 << 20
    var offset: Int64 = 0
    while true {
      // Each piece has the beginning of the next, so that no header is cut in two.
      let bytes = try place.read(name, in: section, at: offset, length: length + compression.memberHeaderLength)
      for start in compression.memberStarts(in: bytes, before: length) {
        guard let header = compression.memberHeader(bytes[start...]) else { continue }
        if (result[header.number]?.count ?? 0) < limit {
          result[header.number, default: []].append(offset + Int64(start))
        }
      }
      if bytes.count <= length { return result }
      offset += Int64(length)
    }
  }
}
