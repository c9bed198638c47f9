import Platform
import SystemPackage
import TestSupport
import Testing

/// Names as long as file systems allow.
struct LongNameTests {
  let folder: TemporaryFolder
  let system = FileSystem()

  init() throws { folder = try TemporaryFolder() }

  private func path(_ length: Int, _ letter: String = "n", ending: String = ".sqlite") -> FilePath {
    folder.appending(String(repeating: letter, count: length - ending.utf8.count) + ending)
  }

  private func length(_ path: FilePath) -> Int { path.lastComponent?.string.utf8.count ?? 0 }

  @Test(arguments: [1, 100, 225, 226, 240, 247, 248, 255])
  func namesMadeOfOthersAreNeverTooLong(count: Int) throws {
    let path = path(count, ending: "")
    for made in [
      path.hiddenSibling(suffix: ".migrating"), path.sibling(suffix: ".salvage.json"),
      path.hiddenSibling(suffix: ".unfinished").sibling(suffix: "-set-aside"),
    ] {
      #expect(length(made) <= 240)
      #expect(made.folder == path.folder)
      _ = try folder.write("x", to: made.lastComponent?.string ?? "")
    }
    #expect(path.hiddenSibling(suffix: ".migrating") == path.hiddenSibling(suffix: ".migrating"))
    #expect(length(path.hiddenSibling(suffix: ".migrating")) == min(count + 11, 240))
    #expect(path.hiddenSibling(suffix: ".migrating").string.hasSuffix(".migrating"))
  }

  @Test func namesThatDifferOnlyAtTheirEndStayApart() {
    let (one, other) = (path(255, ending: "1.sqlite"), path(255, ending: "2.sqlite"))
    #expect(one.hiddenSibling(suffix: ".replaced") != other.hiddenSibling(suffix: ".replaced"))
  }

  @Test func noCharacterIsCutInTwo() throws {
    for lead in ["", "a", "ab", "abc"] {
      let path = folder.appending(lead + String(repeating: "🦊", count: 63))
      let made = try #require(path.hiddenSibling(suffix: ".migrating").lastComponent)
      #expect(!made.string.contains("\u{FFFD}"))
      #expect(made.string.utf8.count <= 240)
    }
  }

  @Test func aFileWhoseNameCannotBeIsNotThere() throws {
    let path = path(255)
    try folder.write("x", to: path.lastComponent?.string ?? "")
    let set = try StoreFileSet.locate(path, in: system)
    #expect(set.path(of: .journal).lastComponent?.string.hasSuffix(".sqlite-journal") == true)
    #expect(try system.status(of: set.path(of: .journal)) == nil)
    #expect(try set.members(in: system).map(\.part) == [.main])
    try system.unlink(set.path(of: .wal))
  }

  @Test func sqliteNeedsRoomForItsJournal() throws {
    // `-wal` and `-journal` behind it, where a name has 255 bytes at most.
    for (usesLog, longest) in [(true, 251), (false, 247)] {
      try StoreFileSet(main: path(longest)).requireRoomForSQLite(to: "open the store", usesLog: usesLog)
      let error = #expect(throws: FileError.self) {
        try StoreFileSet(main: path(longest + 1)).requireRoomForSQLite(to: "open the store", usesLog: usesLog)
      }
      #expect(error?.code == "name-too-long")
      #expect(error?.isEnvironmental == false)
      #expect(error?.hint.contains("\(longest)") == true)
    }
  }

  // MARK: Holes

  @Test func holesTakeNoRoomAndStayHoles() throws {
    let (path, copied) = (folder.appending("Sparse"), folder.appending("Copy"))
    let length: Int64 = 256 << 20
    let file = try system.create(path)
    try file.write([1, 2, 3])
    try file.write([4, 5, 6], at: 64 << 20)
    try file.truncate(to: length)
    try file.commit()
    let status = try #require(try system.status(of: path))
    #expect(status.size == length)
    #expect(status.occupiedSize < 1 << 20)
    try system.duplicate(path, to: copied)
    let copy = try #require(try system.status(of: copied))
    #expect(copy.size == length)
    #expect(copy.occupiedSize < 1 << 20)
    let opened = try system.open(copied)
    #expect(try opened.bytes(at: 0, length: 4) == [1, 2, 3, 0])
    #expect(try opened.bytes(at: (64 << 20) - 1, length: 5) == [0, 4, 5, 6, 0])
    #expect(opened.dataEnd < 65 << 20)
  }

  @Test func aDigestOfAFileWithLongHolesLeavesOutWhatIsZero() throws {
    let (path, copied) = (folder.appending("Sparse"), folder.appending("Copy"))
    let length: Int64 = 3 << 30
    let file = try system.create(path)
    try file.write([1, 2, 3], at: 65_535)
    try file.write([UInt8](repeating: 0, count: 65_536), at: 1 << 30)
    try file.write([4], at: 2 << 30)
    try file.truncate(to: length)
    try file.commit()
    let number = { (value: UInt64) in (0..<8).map { UInt8(value >> (56 - 8 * $0) & 0xff) } }
    let zeros = [UInt8](repeating: 0, count: 65_534)
    var expected = number(0) + [0] + zeros + [1] + number(1) + [2, 3] + zeros
    expected += number(1 << 15) + [4, 0] + zeros + number(3 << 30)
    let sum = "sparse-" + FileDigest(of: expected).hexadecimal
    #expect(try KeptFileDigest(of: system.open(path)).text == sum)
    #expect(try system.copy(path, to: copied).text == sum)
    // A file with shorter holes has its SHA-256, or the other digest if asked.
    let short = try folder.write([7], to: "Short")
    let piece = FileDigest(of: number(0) + [7] + number(1)).hexadecimal
    #expect(try KeptFileDigest(of: system.open(short)).text == FileDigest(of: [7]).hexadecimal)
    #expect(try KeptFileDigest(of: system.open(short), like: sum).text == "sparse-" + piece)
  }

  @Test func aFileWithoutHolesOccupiesItsLength() throws {
    let path = try folder.write(String(repeating: "x", count: 5000), to: "Plain")
    let status = try #require(try system.status(of: path))
    #expect(status.occupiedSize <= status.size)
    #expect(try system.open(path).dataEnd == 5000)
  }
}
