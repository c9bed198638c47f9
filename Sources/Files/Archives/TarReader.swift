/// Reads a tar archive (POSIX.1-1988 `ustar`, with POSIX.1-2001 extended headers) piece by piece; hostile ones are refused.
///
/// Only files and folders are taken; a link, a device or a sparse file ends the reading.
public struct TarReader: Sendable {
  /// What was met.
  public enum Event: Sendable {
    /// A file or folder begins.
    case entry(TarEntry)

    /// The next bytes of the file that began last.
    case content(ArraySlice<UInt8>)

    case end
  }

  private enum Stage {
    case header
    case content(left: Int64, padding: Int)
    case extended(left: Int, padding: Int)
    case padding(left: Int)
    case ended
  }

  private static let block = 512
  private static let extendedLimit = 64 << 10

  private var stage = Stage.header
  private var waiting: [UInt8] = []
  private var zeros = 0
  private var extended = PaxRecords()
  private var names: Set<String> = []
  private var total: Int64 = 0
  private let limits: UnpackingLimits

  /// A reader.
  public init(limits: UnpackingLimits = UnpackingLimits()) { self.limits = limits }

  /// Adds a piece of the archive.
  public mutating func read(_ bytes: ArraySlice<UInt8>, visit: (Event) throws -> Void) throws {
    var bytes = bytes
    while !bytes.isEmpty {
      switch stage {
      case .header:
        guard fill(to: Self.block, from: &bytes) else { return }
        let header = waiting
        waiting = []
        try begin(header, visit)
      case .content(let left, let padding):
        let part = bytes.prefix(Int(min(left, Int64(bytes.count))))
        bytes = bytes.dropFirst(part.count)
        try visit(.content(part))
        if left > Int64(part.count) {
          stage = .content(left: left - Int64(part.count), padding: padding)
        } else {
          try visit(.end)
          stage = padding > 0 ? .padding(left: padding) : .header
        }
      case .extended(let left, let padding):
        guard fill(to: left, from: &bytes) else { return }
        extended = try PaxRecords(waiting)
        waiting = []
        stage = padding > 0 ? .padding(left: padding) : .header
      case .padding(let left):
        let count = min(left, bytes.count)
        bytes = bytes.dropFirst(count)
        stage = left > count ? .padding(left: left - count) : .header
      case .ended:
        guard bytes.allSatisfy({ $0 == 0 }) else {
          throw ArchiveError(.tar, "something follows the end of the archive")
        }
        return
      }
    }
  }

  /// Checks that the archive is whole.
  public consuming func finish() throws(ArchiveError) {
    guard case .ended = stage else { throw ArchiveError(.cutOff, "the archive ends too early") }
  }

  private mutating func fill(to count: Int, from bytes: inout ArraySlice<UInt8>) -> Bool {
    let part = bytes.prefix(count - waiting.count)
    waiting += part
    bytes = bytes.dropFirst(part.count)
    return waiting.count == count
  }

  private mutating func begin(_ bytes: [UInt8], _ visit: (Event) throws -> Void) throws {
    guard bytes.contains(where: { $0 != 0 }) else {
      // Two blocks of zeros are the end.
      zeros += 1
      if zeros == 2 { stage = .ended }
      return
    }
    guard zeros == 0 else { throw ArchiveError(.tar, "a header follows a block of zeros") }
    let header = try TarHeader(bytes)
    let padding = Int((512 - header.size % 512) % 512)
    if header.type == UInt8(ascii: "x") {
      guard extended.isEmpty, header.size > 0, header.size <= Self.extendedLimit else {
        throw ArchiveError(.tar, "an extended header is doubled, empty or too large")
      }
      stage = .extended(left: Int(header.size), padding: padding)
      return
    }
    let entry = try entry(header)
    stage = entry.size > 0 ? .content(left: entry.size, padding: Int((512 - entry.size % 512) % 512)) : .header
    try visit(.entry(entry))
    if entry.size == 0, !entry.isFolder { try visit(.end) }
  }

  private mutating func entry(_ header: TarHeader) throws(ArchiveError) -> TarEntry {
    let isFolder = header.type == UInt8(ascii: "5")
    guard isFolder || header.type == UInt8(ascii: "0") || header.type == 0 else {
      throw ArchiveError(.notAFile, "an entry is a link, a device or of a kind that no bundle has")
    }
    let components = try ArchiveName.components(extended.path ?? header.name)
    let size = extended.size ?? header.size
    extended = PaxRecords()
    guard !isFolder || size == 0 else { throw ArchiveError(.tar, "a folder has content") }
    total += size
    guard total <= limits.bytes else {
      throw ArchiveError(.tooLarge, "its files have more than \(limits.bytes) bytes")
    }
    guard names.count < limits.entries else {
      throw ArchiveError(.tooLarge, "it has more than \(limits.entries) files")
    }
    let name = ArchiveName.folded(components.joined(separator: "/"))
    guard names.insert(name).inserted else {
      throw ArchiveError(.doubled, "two entries have the same name, or names that differ in case only")
    }
    return TarEntry(components: components, size: size, isFolder: isFolder)
  }
}
