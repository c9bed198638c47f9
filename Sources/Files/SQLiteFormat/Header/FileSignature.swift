/// Bytes that files of one kind begin with, or have at a fixed place.
struct FileSignature {
  /// What is at the place.
  let bytes: [UInt8]

  let offset: Int

  /// What files with it are.
  let kind: FileKind

  private init(_ bytes: [UInt8], at offset: Int = 0, _ kind: FileKind) {
    self.bytes = bytes
    self.offset = offset
    self.kind = kind
  }

  private init(_ text: String, at offset: Int = 0, _ kind: FileKind) { self.init(Array(text.utf8), at: offset, kind) }

  private func isIn(_ sample: [UInt8]) -> Bool { sample.dropFirst(offset).starts(with: bytes) }

  /// The kind that a file's first bytes show by a signature; nil where they have none.
  static func kind(of sample: [UInt8]) -> FileKind? {
    if let known = all.first(where: { $0.isIn(sample) }) { return known.kind }
    return kindOfContainer(sample) ?? kindOfWeakSignature(sample)
  }

  private static let all: [FileSignature] = sqlite + databases + archives + pictures + media + documents + programs

  private static let sqlite = [
    FileSignature(DatabaseHeader.magic, .database),
    FileSignature("** This file contains an SQLite 2", .databaseOfVersion2),
    FileSignature([0x37, 0x7f, 0x06, 0x82], .writeAheadLog),
    FileSignature([0x37, 0x7f, 0x06, 0x83], .writeAheadLog),
    FileSignature(RollbackJournal.magic, .rollbackJournal),
    FileSignature("LTX1", .transactions),
  ]

  private static let databases = [
    FileSignature("T-DB", at: 16, .otherDatabase),
    FileSignature([0, 1, 0, 0] + Array("Standard Jet DB".utf8), .otherDatabase),
    FileSignature([0, 1, 0, 0] + Array("Standard ACE DB".utf8), .otherDatabase),
    FileSignature([0x61, 0x15, 0x06, 0, 0], at: 12, .berkeleyDatabase),
    FileSignature([0x62, 0x31, 0x05, 0, 0], at: 12, .berkeleyDatabase),
    FileSignature([0, 0, 0x06, 0x15, 0x61], at: 11, .berkeleyDatabase),
    FileSignature([0, 0, 0x05, 0x31, 0x62], at: 11, .berkeleyDatabase),
    FileSignature("DUCK", at: 8, .otherDatabase),
    // Hashes and trees of Berkeley DB 1, in both byte orders, with the version behind them.
    FileSignature([0, 0x06, 0x15, 0x61, 0, 0, 0, 2], .berkeleyDatabase),
    FileSignature([0x61, 0x15, 0x06, 0, 2, 0, 0, 0], .berkeleyDatabase),
    FileSignature([0, 0x05, 0x31, 0x62, 0, 0, 0, 3], .berkeleyDatabase),
    FileSignature([0x62, 0x31, 0x05, 0, 3, 0, 0, 0], .berkeleyDatabase),
    FileSignature("\0mlocate", .locateDatabase),
    FileSignature("\0plocate", .locateDatabase),
    FileSignature([0xde, 0xc0, 0xef, 0xbe], at: 16, .otherDatabase),
    FileSignature("TDB file\n", .otherDatabase),
    FileSignature("ToKyO CaBiNeT\n", .otherDatabase),
    FileSignature("KC\n\0", .otherDatabase),
    FileSignature("REDIS0", .otherDatabase),
    FileSignature("!BDN", .otherDatabase),
    FileSignature([0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a], .otherDatabase),
    FileSignature("PAR1", .otherDatabase),
  ]

  private static let archives = [
    FileSignature([0x1f, 0x8b, 0x08], .gzip),
    FileSignature([0x50, 0x4b, 0x03, 0x04], .zip),
    FileSignature([0x50, 0x4b, 0x05, 0x06], .zip),
    FileSignature("ustar", at: 257, .archive),
    FileSignature([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], .archive),
    FileSignature([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0], .archive),
    FileSignature([0x28, 0xb5, 0x2f, 0xfd], .archive),
    FileSignature([0x04, 0x22, 0x4d, 0x18], .archive),
    FileSignature([0x52, 0x61, 0x72, 0x21, 0x1a, 0x07], .archive),
    FileSignature("xar!", .archive),
    FileSignature("!<arch>\n", .archive),
    FileSignature("pbzx", .archive),
    FileSignature("LZIP", .archive),
    FileSignature("MSCF\0\0\0\0", .archive),
    FileSignature("070701", .archive),
    FileSignature("ANDROID BACKUP\n", .archive),
    FileSignature("bvx2", .archive),
    FileSignature([0x51, 0x46, 0x49, 0xfb], .archive),
    FileSignature("vhdxfile", .archive),
    FileSignature("age-encryption.org/v1\n", .sealed),
    FileSignature("-----BEGIN AGE ENCRYPTED FILE-----", .sealed),
    FileSignature("-----BEGIN PGP MESSAGE-----", .sealed),
    FileSignature("Salted__", .sealed),
  ]

  private static let pictures = [
    FileSignature([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], .picture),
    FileSignature([0xff, 0xd8, 0xff], .picture),
    FileSignature("GIF87a", .picture),
    FileSignature("GIF89a", .picture),
    FileSignature([0x49, 0x49, 0x2a, 0], .picture),
    FileSignature([0x4d, 0x4d, 0, 0x2a], .picture),
    FileSignature("8BPS", .picture),
    FileSignature("icns", .picture),
    FileSignature([0, 0, 0, 0x0c, 0x4a, 0x58, 0x4c, 0x20], .picture),
  ]

  private static let media = [
    FileSignature("ID3", .media),
    FileSignature("OggS", .media),
    FileSignature("fLaC", .media),
    FileSignature("MThd", .media),
    FileSignature("caff", .media),
    FileSignature([0x1a, 0x45, 0xdf, 0xa3], .media),
  ]

  private static let documents = [
    FileSignature("bplist", .binaryPropertyList),
    FileSignature("%PDF-", .document),
    FileSignature("%!PS", .document),
    FileSignature("{\\rtf", .document),
    FileSignature([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1], .document),
  ]

  private static let programs = [
    FileSignature([0x7f, 0x45, 0x4c, 0x46], .program),
    FileSignature([0xfe, 0xed, 0xfa, 0xce], .program),
    FileSignature([0xfe, 0xed, 0xfa, 0xcf], .program),
    FileSignature([0xce, 0xfa, 0xed, 0xfe], .program),
    FileSignature([0xcf, 0xfa, 0xed, 0xfe], .program),
    FileSignature([0xca, 0xfe, 0xba, 0xbe], .program),
    FileSignature([0, 0x61, 0x73, 0x6d, 0x01, 0, 0, 0], .program),
  ]

  /// Containers that name what they hold: RIFF, IFF and the boxes of ISO's base media format.
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

  /// Kinds whose signature is short: something more of them has to be as it must.
  private static func kindOfWeakSignature(_ sample: [UInt8]) -> FileKind? {
    if sample.starts(with: "MZ".utf8), sample.count >= 64 {
      let place = (60..<64).reversed().reduce(0) { $0 << 8 | Int(sample[$1]) }
      return sample.dropFirst(place).starts(with: [0x50, 0x45, 0, 0]) ? .program : nil
    }
    if sample.starts(with: "BZh".utf8), sample.count > 10, (0x31...0x39).contains(sample[3]) {
      return sample[4..<10].elementsEqual([0x31, 0x41, 0x59, 0x26, 0x53, 0x59]) ? .archive : nil
    }
    if sample.starts(with: "BM".utf8), sample.count > 30 {
      // Reserved bytes, and a header whose length is one of those that exist.
      return sample[6..<10].allSatisfy { $0 == 0 } && [12, 40, 52, 56, 64, 108, 124].contains(sample[14])
        && sample[15..<18].allSatisfy { $0 == 0 } ? .picture : nil
    }
    return nil
  }
}
