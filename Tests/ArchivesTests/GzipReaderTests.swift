import Platform
import TestSupport
import Testing

private func unpack(_ bytes: [UInt8], piece: Int = 997, limits: UnpackingLimits = UnpackingLimits()) throws -> [UInt8] {
  var reader = try GzipReader(limits: limits)
  var made: [UInt8] = []
  for start in stride(from: 0, to: bytes.count, by: piece) {
    try reader.read(Array(bytes[start..<min(start + piece, bytes.count)])) { made += $0 }
  }
  try reader.finish()
  return made
}

private func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
  let folder = try TemporaryFolder()
  try folder.write(bytes, to: "a")
  let run = try ChildProcess.run("gzip", ["-6", "a"], in: folder.path)
  #expect(run.status == 0)
  return try FileSystem().contents(of: folder.appending("a.gz"), limit: 1 << 24)
}

struct GzipReaderTests {
  @Test(arguments: [0, 1, 100_000, 1_000_000])
  func whatGzipPackedIsUnpacked(_ count: Int) throws {
    var generator = SeededGenerator(seed: 4)
    let content = (0..<count).map { _ in UInt8.random(in: 0...20, using: &generator) }
    let packed = try gzip(content)
    for piece in [1_000_000, 997, 13] where piece > 13 || count < 200_000 {
      let unpacked = try unpack(packed, piece: piece)
      #expect(unpacked == content)
    }
    let twice = try unpack(packed + packed)
    #expect(twice == content + content)
    for cut in [0, 5, packed.count / 2, packed.count - 1] {
      #expect(throws: FileError.self) { try unpack(Array(packed.prefix(cut))) }
    }
    #expect(throws: FileError.self) { try unpack(packed + [1, 2, 3]) }
    var lenient = try GzipReader(ignoringRest: true)
    var made: [UInt8] = []
    try lenient.read(packed + [0, 0, 0] + packed) { made += $0 }
    try lenient.finish()
    #expect(made == content)
    var flipped = packed
    flipped[packed.count - 5] ^= 1
    #expect(throws: FileError.self) { try unpack(flipped) }
  }

  @Test func bombsAreRefused() throws {
    let packed = try gzip([UInt8](repeating: 0, count: 16 << 20))
    let error = #expect(throws: FileError.self) { try unpack(packed, limits: UnpackingLimits(bytes: 1 << 20)) }
    #expect(error?.kind == .archiveTooLarge)
    let bomb = (0..<6).flatMap { _ in packed }
    let ratio = #expect(throws: FileError.self) { try unpack(bomb, limits: UnpackingLimits(ratio: 100)) }
    #expect(ratio?.kind == .archiveTooLarge)
  }

  @Test func mutatedFilesNeverCrash() throws {
    let packed = try gzip(Array(String(repeating: "some text ", count: 300).utf8))
    var mutation = Mutation(seed: 5)
    for _ in 0..<mutationCount(usually: 2000) {
      do { _ = try unpack(mutation.apply(to: packed)) } catch is FileError {}
    }
  }
}
