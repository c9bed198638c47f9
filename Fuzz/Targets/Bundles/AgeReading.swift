internal import Platform

/// Reads bytes as encrypted files.
enum AgeReading {
  /// A key that everybody knows, so that inputs that were found can be opened again.
  private static let secret = "AGE-SECRET-KEY-1XVL086T3SRM2YJC770M0VLZAT3DSFHHR985GDS9MJJMY7WR73UQSDWLRX6"

  private static func identity() throws(FuzzFailure) -> AgeIdentity {
    do throws(FileError) {
      return try AgeIdentity(secret)
    } catch {
      throw FuzzFailure("the known key cannot be read")
    }
  }

  private enum Outcome: Equatable {
    case opened([UInt8])
    case refused(String)
  }

  private static func open(_ bytes: [UInt8], pieces length: Int) throws(FuzzFailure) -> Outcome {
    var opener = AgeOpener(with: [try identity()])
    do throws(FileError) {
      var opened: [UInt8] = []
      for start in stride(from: 0, to: bytes.count, by: max(1, length)) {
        opened += try opener.open(bytes[start..<min(bytes.count, start + length)])
      }
      return .opened(opened + (try opener.finish()))
    } catch {
      return .refused(error.code)
    }
  }

  private static func seal(_ bytes: [UInt8], armored: Bool) throws -> [UInt8] {
    var sealer = try AgeSealer(to: [try AgeIdentity(secret).recipient], armored: armored)
    let first = try sealer.seal(bytes)
    return first + (try sealer.finish())
  }

  /// A whole file; that of an encrypted one, or the armour of one.
  static func run(file bytes: [UInt8]) throws(FuzzFailure) {
    let whole = try open(bytes, pieces: bytes.count)
    for length in [64, 1000] where bytes.count / length < 2000 {
      let pieces = try open(bytes, pieces: length)
      // Where it is refused in two ways, the one that is met first may be another.
      if case .refused = whole, case .refused = pieces { continue }
      try expect(whole == pieces, "a file is another one in pieces of \(length) bytes")
    }
    if case .opened(let content) = whole {
      try expect(AgeOpener.isAge(bytes), "a file is opened that is none")
      try expect(content.count < bytes.count, "more comes out of a file than is in it")
    }
  }

  /// A header: what is read is written as it was.
  static func run(header bytes: [UInt8]) throws(FuzzFailure) {
    let read: (text: [UInt8], length: Int)?
    do throws(FileError) {
      read = try AgeHeaderText.read(bytes)
    } catch {
      return
    }
    guard let read else { return }
    try expect(read.length <= bytes.count, "a header goes beyond the end")
    try expect(Array(bytes[..<read.length]) == read.text, "a header has two spellings")
  }

  /// Content: what is sealed is opened, and what is altered on the way is not.
  static func run(content bytes: [UInt8]) throws(FuzzFailure) {
    for armored in [false, true] {
      let sealed: [UInt8]
      do {
        sealed = try seal(bytes, armored: armored)
      } catch {
        throw FuzzFailure("it cannot be sealed: \(error)")
      }
      try expect(try open(sealed, pieces: 997) == .opened(bytes), "what was sealed is not what is opened")
      guard !armored, let first = bytes.first else { continue }
      // The input itself says where it is altered.
      let place = bytes.prefix(4).reduce(0) { ($0 << 8 | Int($1)) & 0xFFFF_FFFF } % sealed.count
      var flipped = sealed
      flipped[place] ^= first | 1
      for altered in [flipped, Array(sealed[..<place]), sealed + [first]] {
        if case .opened = try open(altered, pieces: 4096) { throw FuzzFailure("a file that was altered is opened") }
      }
    }
  }

  /// The seeds: whole files, armoured or not.
  static func files() throws -> [FuzzSeed] {
    [
      FuzzSeed("short", try seal([1, 2, 3], armored: false)), FuzzSeed("empty", try seal([], armored: false)),
      FuzzSeed("armored", try seal(Array("some text".utf8), armored: true)),
    ]
  }

  /// The seeds: armour alone.
  static func armors() throws -> [FuzzSeed] {
    let text = String(decoding: try seal(Array("some text".utf8), armored: true), as: UTF8.self)
    return [
      FuzzSeed("armor", text), FuzzSeed("crlf", text.replacing("\n", with: "\r\n")),
      FuzzSeed("spaces", " \n\t" + text + "\n \n"),
    ]
  }

  /// The seeds: headers.
  static func headers() throws -> [FuzzSeed] {
    let file = try seal([], armored: false)
    let other = "age-encryption.org/v1\n-> X25519 " + String(repeating: "A", count: 43) + "\n"
    let body = String(repeating: "A", count: 64) + "\n\n-> scrypt a 18\n" + String(repeating: "A", count: 43) + "\n"
    return [
      FuzzSeed("file", file), FuzzSeed("stanzas", other + body + "--- " + String(repeating: "A", count: 43) + "\n"),
    ]
  }
}
