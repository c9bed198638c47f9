/// What a file is, as its first bytes tell; for saying what stands in a database's place.
public enum FileKind: String, Sendable, Hashable {
  /// A SQLite 3 database.
  case database = "sqlite"

  /// A database of SQLite 2, which SQLite 3 cannot read.
  case databaseOfVersion2 = "sqlite-2"

  /// A SQLite write-ahead log.
  case writeAheadLog = "wal"

  /// A SQLite rollback journal.
  case rollbackJournal = "journal"

  /// Nothing: no byte.
  case empty = "empty"

  /// Zeros only.
  case zeros = "zeros"

  /// HTML or XML.
  case markup = "markup"

  /// JSON.
  case json = "json"

  /// Other text, UTF-8 or UTF-16 with a byte order mark.
  case text = "text"

  /// A gzip file.
  case gzip = "gzip"

  /// A zip archive.
  case zip = "zip"

  /// A binary property list.
  case binaryPropertyList = "binary-plist"

  /// Bytes without any pattern, as encryption makes them.
  case encrypted = "encrypted"

  /// None of these.
  case other = "other"

  /// How many bytes from a file's beginning are worth giving.
  public static let sampleLength = 4096

  /// Tells a file's kind from its first bytes; ``sampleLength`` of them are enough.
  public init(firstBytes bytes: [UInt8]) {
    let sample = Array(bytes.prefix(FileKind.sampleLength))
    if sample.isEmpty {
      self = .empty
    } else if let kind = FileKind.kindBySignature(sample) {
      self = kind
    } else if sample.allSatisfy({ $0 == 0 }) {
      self = .zeros
    } else if let kind = FileKind.kindOfText(sample) {
      self = kind
    } else {
      self = FileKind.looksRandom(sample) ? .encrypted : .other
    }
  }

  /// The kind in plain words, as the end of "it is …".
  public var words: String {
    switch self {
    case .database: "a SQLite database"
    case .databaseOfVersion2: "a database of SQLite 2"
    case .writeAheadLog: "a SQLite write-ahead log without its database"
    case .rollbackJournal: "a SQLite rollback journal without its database"
    case .empty: "an empty file"
    case .zeros: "a file of zeros"
    case .markup: "an HTML or XML document"
    case .json: "a JSON document"
    case .text: "a text file"
    case .gzip: "a gzip file"
    case .zip: "a zip archive"
    case .binaryPropertyList: "a binary property list"
    case .encrypted: "encrypted, or random bytes"
    case .other: "of an unknown kind"
    }
  }

  private static func kindBySignature(_ bytes: [UInt8]) -> FileKind? {
    let signatures: [([UInt8], FileKind)] = [
      (DatabaseHeader.magic, .database),
      (Array("** This file contains an SQLite 2".utf8), .databaseOfVersion2),
      ([0x37, 0x7f, 0x06, 0x82], .writeAheadLog),
      ([0x37, 0x7f, 0x06, 0x83], .writeAheadLog),
      (RollbackJournal.magic, .rollbackJournal),
      ([0x1f, 0x8b, 0x08], .gzip),
      ([0x50, 0x4b, 0x03, 0x04], .zip),
      ([0x50, 0x4b, 0x05, 0x06], .zip),
      (Array("bplist".utf8), .binaryPropertyList),
    ]
    return signatures.first { bytes.starts(with: $0.0) }?.1
  }

  private static func kindOfText(_ bytes: [UInt8]) -> FileKind? {
    if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) { return .text }
    var rest = bytes[...]
    if rest.starts(with: [0xef, 0xbb, 0xbf]) { rest = rest.dropFirst(3) }
    let isPlain = rest.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 9 || $0 == 10 || $0 == 12 || $0 == 13 }
    // The sample may end inside a character of up to four bytes.
    guard isPlain, (0...3).contains(where: { String(validating: rest.dropLast($0), as: UTF8.self) != nil }) else {
      return nil
    }
    switch rest.first(where: { $0 > 0x20 }) {
    case UInt8(ascii: "<"): return .markup
    case UInt8(ascii: "{"), UInt8(ascii: "["): return .json
    default: return .text
    }
  }

  /// Whether the byte values are spread as evenly as those of a cipher: a chi-square test with 255 degrees of freedom.
  ///
  /// Random bytes give 255 ± 23; compressed or structured content gives far more.
  private static func looksRandom(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 1024 else { return false }
    var counts = [Int](repeating: 0, count: 256)
    for byte in bytes { counts[Int(byte)] += 1 }
    let expected = Double(bytes.count) / 256
    let distance = counts.reduce(0.0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
    return distance < 400
  }
}
