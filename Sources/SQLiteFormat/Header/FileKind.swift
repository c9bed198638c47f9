internal import Platform

/// A file's kind by its first bytes.
public enum FileKind: String, Sendable, Hashable {
  case database = "sqlite"

  /// Unreadable by SQLite 3.
  case databaseOfVersion2 = "sqlite-2"

  case writeAheadLog = "wal"

  case rollbackJournal = "journal"

  case empty = "empty"

  case zeros = "zeros"

  /// LiteFS or Litestream (LTX).
  case transactions = "ltx"

  case berkeleyDatabase = "berkeley-db"

  /// Mlocate or plocate.
  case locateDatabase = "locate-db"

  /// Realm, Microsoft Access and others.
  case otherDatabase = "other-database"

  case markup = "markup"

  case json = "json"

  /// UTF-8, or UTF-16 with a byte order mark.
  case text = "text"

  case gzip = "gzip"

  case zip = "zip"

  /// Tar, 7z, xz, bzip2, zstd and others.
  case archive = "archive"

  case binaryPropertyList = "binary-plist"

  case propertyList = "plist"

  /// PNG, JPEG, GIF, TIFF, WebP, HEIC and others.
  case picture = "picture"

  case media = "media"

  /// An office document, PDF or PostScript.
  case document = "document"

  /// ELF, Mach-O, PE, WebAssembly, Java.
  case program = "program"

  case script = "script"

  /// Age, OpenPGP, OpenSSL.
  case sealed = "encrypted-file"

  case encrypted = "encrypted"

  case other = "other"

  /// The useful number of first bytes.
  public static let sampleLength = 4096

  /// Detects a file's kind from its first ``sampleLength`` bytes.
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

  /// The kind in words, to follow "it is".
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

  /// Whether the kind is clearly no part of a SQLite database.
  public var isForeign: Bool {
    switch self {
    case .database, .writeAheadLog, .rollbackJournal, .empty, .zeros, .encrypted, .other: false
    case .databaseOfVersion2, .transactions, .berkeleyDatabase, .locateDatabase, .otherDatabase, .markup, .json, .text,
      .gzip, .zip, .archive, .binaryPropertyList, .propertyList, .picture, .media, .document, .program, .script,
      .sealed:
      true
    }
  }

  /// Whether a signature identifies the kind; text and markup have none.
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
    guard isPlain, (0...3).contains(where: { String(utf8: rest.dropLast($0)) != nil }) else { return nil }
    if rest.starts(with: "#!".utf8) { return .script }
    switch rest.first(where: { $0 > 0x20 }) {
    case UInt8(ascii: "<") where isPropertyList(rest): return .propertyList
    case UInt8(ascii: "<"): return .markup
    case UInt8(ascii: "{"), UInt8(ascii: "["): return .json
    default: return .text
    }
  }

  /// Whether markup is an XML property list.
  private static func isPropertyList(_ text: ArraySlice<UInt8>) -> Bool {
    let head = String(decoding: text.prefix(512), as: UTF8.self)
    return head.contains("<!DOCTYPE plist") || head.contains("<plist")
  }

  /// Whether byte values are as even as a cipher's: a chi-square test with 255 degrees of freedom.
  ///
  /// Random bytes give 255 ± 23; other content far more.
  public static func looksRandom(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 1024 else { return false }
    var counts = [Int](repeating: 0, count: 256)
    for byte in bytes { counts[Int(byte)] += 1 }
    let expected = Double(bytes.count) / 256
    let distance = counts.reduce(0.0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
    return distance < 400
  }
}

enum FileSignature {
  /// Bytes, which may be written as text.
  private struct Mark: ExpressibleByArrayLiteral, ExpressibleByStringLiteral {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    init(arrayLiteral bytes: UInt8...) { self.init(bytes) }

    init(stringLiteral text: String) { self.init(Array(text.utf8)) }
  }

  static func kind(of sample: [UInt8]) -> FileKind? {
    let known = all.first { _, offset, marks in
      marks.contains { sample.dropFirst(offset).starts(with: $0.bytes) }
    }
    return known?.kind ?? kindOfContainer(sample) ?? kindOfWeakSignature(sample)
  }

  /// The first that fits counts.
  private static let all: [(kind: FileKind, offset: Int, marks: [Mark])] = [
    (.database, 0, [Mark(DatabaseHeader.magic)]),
    (.databaseOfVersion2, 0, ["** This file contains an SQLite 2"]),
    (.writeAheadLog, 0, [[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83]]),
    (.rollbackJournal, 0, [Mark(RollbackJournal.magic)]),
    (.transactions, 0, ["LTX1"]),
    (.otherDatabase, 16, ["T-DB"]),
    (.otherDatabase, 0, ["\0\u{1}\0\0Standard Jet DB", "\0\u{1}\0\0Standard ACE DB"]),
    (.berkeleyDatabase, 12, [[0x61, 0x15, 0x06, 0, 0], [0x62, 0x31, 0x05, 0, 0]]),
    (.berkeleyDatabase, 11, [[0, 0, 0x06, 0x15, 0x61], [0, 0, 0x05, 0x31, 0x62]]),
    (.otherDatabase, 8, ["DUCK"]),
    // Berkeley DB 1 hashes and trees in both byte orders, with version.
    (.berkeleyDatabase, 0, [[0, 0x06, 0x15, 0x61, 0, 0, 0, 2], [0x61, 0x15, 0x06, 0, 2, 0, 0, 0]]),
    (.berkeleyDatabase, 0, [[0, 0x05, 0x31, 0x62, 0, 0, 0, 3], [0x62, 0x31, 0x05, 0, 3, 0, 0, 0]]),
    (.locateDatabase, 0, ["\0mlocate", "\0plocate"]),
    (.otherDatabase, 16, [[0xde, 0xc0, 0xef, 0xbe]]),
    (.otherDatabase, 0, ["TDB file\n", "ToKyO CaBiNeT\n", "KC\n\0", "REDIS0", "!BDN"]),
    (.otherDatabase, 0, [[0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a], "PAR1"]),
    (.gzip, 0, [[0x1f, 0x8b, 0x08]]),
    (.zip, 0, [[0x50, 0x4b, 0x03, 0x04], [0x50, 0x4b, 0x05, 0x06]]),
    (.archive, 257, ["ustar"]),
    (.archive, 0, [[0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]]),
    (.archive, 0, [[0x28, 0xb5, 0x2f, 0xfd], [0x04, 0x22, 0x4d, 0x18], [0x52, 0x61, 0x72, 0x21, 0x1a, 0x07]]),
    (.archive, 0, ["xar!", "!<arch>\n", "pbzx", "LZIP", "MSCF\0\0\0\0", "070701", "ANDROID BACKUP\n", "bvx2"]),
    (.archive, 0, [[0x51, 0x46, 0x49, 0xfb], "vhdxfile"]),
    (.sealed, 0, ["age-encryption.org/v1\n", "-----BEGIN AGE ENCRYPTED FILE-----"]),
    (.sealed, 0, ["-----BEGIN PGP MESSAGE-----", "Salted__"]),
    (.picture, 0, [[0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], [0xff, 0xd8, 0xff], "GIF87a", "GIF89a"]),
    (.picture, 0, [[0x49, 0x49, 0x2a, 0], [0x4d, 0x4d, 0, 0x2a], "8BPS", "icns"]),
    (.picture, 0, [[0, 0, 0, 0x0c, 0x4a, 0x58, 0x4c, 0x20]]),
    (.media, 0, ["ID3", "OggS", "fLaC", "MThd", "caff", [0x1a, 0x45, 0xdf, 0xa3]]),
    (.binaryPropertyList, 0, ["bplist"]),
    (.document, 0, ["%PDF-", "%!PS", "{\\rtf", [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]]),
    (.program, 0, [[0x7f, 0x45, 0x4c, 0x46], [0xfe, 0xed, 0xfa, 0xce], [0xfe, 0xed, 0xfa, 0xcf]]),
    (.program, 0, [[0xce, 0xfa, 0xed, 0xfe], [0xcf, 0xfa, 0xed, 0xfe], [0xca, 0xfe, 0xba, 0xbe]]),
    (.program, 0, [[0, 0x61, 0x73, 0x6d, 0x01, 0, 0, 0]]),
  ]

  /// Detects RIFF, IFF and ISO base media containers.
  private static func kindOfContainer(_ sample: [UInt8]) -> FileKind? {
    func word(_ offset: Int) -> String { String(decoding: sample.dropFirst(offset).prefix(4), as: UTF8.self) }
    switch (word(0), word(4), word(8)) {
    case ("RIFF", _, "WEBP"): return .picture
    case ("RIFF", _, "WAVE"), ("RIFF", _, "AVI "), ("FORM", _, "AIFF"), ("FORM", _, "AIFC"): return .media
    case (_, "ftyp", "heic"), (_, "ftyp", "heix"), (_, "ftyp", "mif1"), (_, "ftyp", "avif"): return .picture
    case (_, "ftyp", _): return .media
    default: return nil
    }
  }

  /// Checks short signatures further.
  private static func kindOfWeakSignature(_ sample: [UInt8]) -> FileKind? {
    if sample.starts(with: "MZ".utf8), sample.count >= 64 {
      let place = (60..<64).reversed().reduce(0) { $0 << 8 | Int(sample[$1]) }
      return sample.dropFirst(place).starts(with: [0x50, 0x45, 0, 0]) ? .program : nil
    }
    if sample.starts(with: "BZh".utf8), sample.count > 10, (0x31...0x39).contains(sample[3]) {
      return sample[4..<10].elementsEqual([0x31, 0x41, 0x59, 0x26, 0x53, 0x59]) ? .archive : nil
    }
    if sample.starts(with: "BM".utf8), sample.count > 30 {
      // Reserved bytes, and a known header length.
      return sample[6..<10].allSatisfy { $0 == 0 } && [12, 40, 52, 56, 64, 108, 124].contains(sample[14])
        && sample[15..<18].allSatisfy { $0 == 0 } ? .picture : nil
    }
    return nil
  }
}
