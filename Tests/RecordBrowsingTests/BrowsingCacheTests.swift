import Inspector
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("The cache of what was made to be browsed")
struct BrowsingCacheTests {
  private func fill(_ bytes: Int) -> (FilePath) throws -> Void {
    { folder in
      let file = try FileSystem().create(folder.appending("Store.sqlite"))
      try file.write([UInt8](repeating: 7, count: bytes))
      try file.commit()
    }
  }

  @Test("An entry is made once; what fails leaves nothing")
  func once() throws {
    let home = try TemporaryFolder()
    let cache = BrowsingCache(home: home.path)
    var made = 0
    for _ in 0..<3 {
      let folder = try cache.entry("one") { folder in
        made += 1
        try fill(10)(folder)
      }
      #expect(try FileSystem().status(of: folder.appending("Store.sqlite"))?.size == 10)
    }
    #expect(made == 1)
    struct Wrong: Error {}
    #expect(throws: Wrong.self) { try cache.entry("two") { _ in throw Wrong() } }
    #expect(try FileSystem().entries(of: cache.path).map(\.string) == ["one"])
    #expect(throws: FileError.self) { try cache.entry("..", make: fill(1)) }
    #expect(throws: FileError.self) { try cache.entry("a/b", make: fill(1)) }
    #expect(try FileSystem().status(of: cache.path)?.permissions == .ownerReadWriteExecute)
  }

  @Test("What is old or too much goes, but nothing that is open")
  func bounds() throws {
    let home = try TemporaryFolder()
    var limits = BrowsingCache.Limits()
    limits.bytes = 2_500
    let cache = BrowsingCache(home: home.path, limits: limits)
    for name in ["a", "b", "c"] { _ = try cache.entry(name, make: fill(1_000)) }
    #expect(try FileSystem().entries(of: cache.path).map(\.string) == ["a", "b", "c"], "all three are open")
    cache.release("a")
    cache.release("b")
    _ = try cache.entry("d", make: fill(1_000))
    #expect(try FileSystem().entries(of: cache.path).map(\.string) == ["c", "d"])

    let now = Surroundings.machine.now()
    var later = Surroundings.machine
    later.now = { Timestamp(secondsSince1970: now.secondsSince1970 + 8 * 86_400) }
    try FileSystem().makeDirectory(cache.path.appending("making-x"))
    try BrowsingCache(home: home.path, surroundings: later).clean()
    #expect(try FileSystem().entries(of: cache.path).isEmpty)
  }
}
