internal import Compatibility

/// What a file is, as its first bytes tell; for saying what stands in a database's place.
public enum FileKind: String, Sendable, Hashable {
  /// A SQLite 3 database.
  case database = "sqlite"

  /// A database of SQLite 2, which SQLite 3 cannot read.
  case databaseOfVersion2 = "sqlite-2"

  case writeAheadLog = "wal"

  case rollbackJournal = "journal"

  case empty = "empty"

  case zeros = "zeros"

  /// Changes of a SQLite database as LiteFS and Litestream keep them (LTX).
  case transactions = "ltx"

  /// A database of Berkeley DB.
  case berkeleyDatabase = "berkeley-db"

  /// A database of file names, mlocate's or plocate's.
  case locateDatabase = "locate-db"

  /// Another database: Realm, Microsoft Access and others.
  case otherDatabase = "other-database"

  case markup = "markup"

  case json = "json"

  /// Other text, UTF-8 or UTF-16 with a byte order mark.
  case text = "text"

  case gzip = "gzip"

  case zip = "zip"

  /// An archive or a compressed file of another kind than gzip and zip: tar, 7z, xz, bzip2, zstd and others.
  case archive = "archive"

  case binaryPropertyList = "binary-plist"

  /// A property list in XML.
  case propertyList = "plist"

  /// A picture: PNG, JPEG, GIF, TIFF, WebP, HEIC and others.
  case picture = "picture"

  case media = "media"

  /// A document of an office, PDF or PostScript.
  case document = "document"

  /// A program or a library: ELF, Mach-O, PE, WebAssembly, Java.
  case program = "program"

  /// A script, which says in its first line what runs it.
  case script = "script"

  /// An encrypted file that says so: age, OpenPGP, OpenSSL.
  case sealed = "encrypted-file"

  /// Bytes without any pattern, as encryption makes them.
  case encrypted = "encrypted"

  case other = "other"

  /// How many bytes from a file's beginning are worth giving.
  public static let sampleLength = 4096

  /// Tells a file's kind from its first bytes; ``sampleLength`` of them are enough.
  public init(firstBytes bytes: [UInt8]) {
    let sample = Array(bytes.prefix(FileKind.sampleLength))
    if sample.isEmpty {
      self = .empty
    } else if let kind = FileSignature.kind(of: sample) {
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
    case .transactions: "an LTX file, of which LiteFS or Litestream makes a database"
    case .berkeleyDatabase: "a database of Berkeley DB"
    case .locateDatabase: "a database of mlocate or plocate"
    case .otherDatabase: "a database that is not SQLite's"
    case .markup: "an HTML or XML document"
    case .json: "a JSON document"
    case .text: "a text file"
    case .gzip: "a gzip file"
    case .zip: "a zip archive"
    case .archive: "an archive or a compressed file"
    case .binaryPropertyList: "a binary property list"
    case .propertyList: "a property list"
    case .picture: "a picture"
    case .media: "a sound or film file"
    case .document: "a document"
    case .program: "a program or a library"
    case .script: "a script"
    case .sealed: "an encrypted file"
    case .encrypted: "encrypted, or random bytes"
    case .other: "of an unknown kind"
    }
  }

  /// Whether files of this kind are plainly something else than a SQLite database or a part of one.
  public var isForeign: Bool {
    switch self {
    case .database, .writeAheadLog, .rollbackJournal, .empty, .zeros, .encrypted, .other: false
    case .databaseOfVersion2, .transactions, .berkeleyDatabase, .locateDatabase, .otherDatabase, .markup, .json, .text,
      .gzip, .zip, .archive, .binaryPropertyList,
      .propertyList, .picture, .media, .document, .program, .script, .sealed:
      true
    }
  }

  /// Whether the kind is known by a signature that no other content begins with by chance; text and markup have none.
  public var hasSignature: Bool {
    switch self {
    case .markup, .json, .text, .script, .propertyList: false
    case .database, .databaseOfVersion2, .writeAheadLog, .rollbackJournal, .empty, .zeros, .transactions,
      .berkeleyDatabase, .locateDatabase, .otherDatabase, .gzip, .zip, .archive, .binaryPropertyList, .picture, .media,
      .document, .program, .sealed, .encrypted, .other:
      isForeign
    }
  }

  private static func kindOfText(_ bytes: [UInt8]) -> FileKind? {
    if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) { return .text }
    var rest = bytes[...]
    if rest.starts(with: [0xef, 0xbb, 0xbf]) { rest = rest.dropFirst(3) }
    let isPlain = rest.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 9 || $0 == 10 || $0 == 12 || $0 == 13 }
    // The sample may end inside a character of up to four bytes.
    guard isPlain, (0...3).contains(where: { String(utf8: rest.dropLast($0)) != nil }) else {
      return nil
    }
    if rest.starts(with: "#!".utf8) { return .script }
    switch rest.first(where: { $0 > 0x20 }) {
    case UInt8(ascii: "<") where isPropertyList(rest): return .propertyList
    case UInt8(ascii: "<"): return .markup
    case UInt8(ascii: "{"), UInt8(ascii: "["): return .json
    default: return .text
    }
  }

  /// Whether markup is a property list in XML, as its type or its outermost element says.
  private static func isPropertyList(_ text: ArraySlice<UInt8>) -> Bool {
    let head = String(decoding: text.prefix(512), as: UTF8.self)
    return head.contains("<!DOCTYPE plist") || head.contains("<plist")
  }

  /// Whether the byte values are spread as evenly as those of a cipher: a chi-square test with 255 degrees of freedom.
  ///
  /// Random bytes give 255 ± 23; compressed or structured content gives far more.
  public static func looksRandom(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 1024 else { return false }
    var counts = [Int](repeating: 0, count: 256)
    for byte in bytes { counts[Int(byte)] += 1 }
    let expected = Double(bytes.count) / 256
    let distance = counts.reduce(0.0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
    return distance < 400
  }
}
