import Platform
import SystemPackage
import TestSupport
import Testing

struct StoreFileSetTests {
  let folder: TemporaryFolder
  let system = FileSystem()

  init() throws { folder = try TemporaryFolder() }

  @Test(arguments: [
    ("App.sqlite", "App.sqlite-wal", ".App_SUPPORT"), ("App", "App-wal", ".App_SUPPORT"),
    ("a.b.store", "a.b.store-wal", ".a.b_SUPPORT"), (".hidden", ".hidden-wal", "..hidden_SUPPORT"),
    (
      "with 'quotes' \"and\" 🦊\nnewline.sqlite", "with 'quotes' \"and\" 🦊\nnewline.sqlite-wal",
      ".with 'quotes' \"and\" 🦊\nnewline_SUPPORT"
    ),
  ])
  func namesItsPartsAsSQLiteAndCoreDataDo(name: String, wal: String, support: String) throws {
    let path = try folder.write("x", to: name)
    let set = try StoreFileSet.locate(path, in: system)
    #expect(set.path(of: .wal).lastComponent?.string == wal)
    #expect(set.path(of: .externalData).lastComponent?.string == support)
  }

  @Test func keepsNamesThatAreNotUTF8() throws {
    let name = try #require(FilePath.Component(platformBytes: [0x61, 0xFF, 0xFE, 0x2E, 0x64, 0x62]))
    let path = folder.path.appending(name)
    let file = try system.create(path)
    try file.write([1])
    let set = try StoreFileSet.locate(path, in: system)
    #expect(
      set.path(of: .wal).lastComponent?.platformBytes == [0x61, 0xFF, 0xFE, 0x2E, 0x64, 0x62, 0x2D, 0x77, 0x61, 0x6C])
    #expect(PathText(path).path == path)
    #expect(PathText(path).bytes != nil)
    #expect(PathText("plain").bytes == nil)
  }

  @Test func followsSymbolicLinksAsSQLiteDoes() throws {
    let real = try folder.write("x", to: "real/App.sqlite")
    try folder.write("w", to: "real/App.sqlite-wal")
    try symlink(real, at: folder.appending("Link.sqlite"))
    let set = try StoreFileSet.locate(folder.appending("Link.sqlite"), in: system)
    #expect(set.main == real)
    #expect(try set.members(in: system).map(\.part) == [.main, .wal])
  }

  @Test func largeValuesAreListedByWhatIsRead() throws {
    let set = StoreFileSet(main: folder.appending("App.sqlite"))
    let values = folder.appending(".App_SUPPORT/_EXTERNAL_DATA")
    try folder.write("one", to: ".App_SUPPORT/_EXTERNAL_DATA/file")
    let other = try folder.write("another", to: "elsewhere/value")
    try symlink(other, at: values.appending("link"))
    try symlink(folder.appending("nowhere"), at: values.appending("dangling"))
    try symlink(values.appending("loop"), at: values.appending("loop"))
    try symlink(folder.appending("elsewhere"), at: values.appending("tree"))
    #expect(makeNamedPipe(values.appending("pipe")) == 0)
    let found = try set.largeValues(in: system).files
    #expect(found.map { $0.relative.last?.string } == ["dangling", "file", "link", "loop", "pipe", "tree"])
    #expect(found.filter(\.isLink).map { $0.relative.last?.string } == ["dangling", "link", "loop", "tree"])
    #expect(found.filter { $0.status.kind == .regular }.map(\.status.size) == [3, 7])
    #expect(try set.largeValueNames(in: system) == ["file", "link"])
    // The folder itself is a link.
    try system.rename(folder.appending(".App_SUPPORT"), to: folder.appending("moved"))
    try symlink(folder.appending("moved"), at: folder.appending(".App_SUPPORT"))
    #expect(try set.largeValues(in: system).files.map(\.status.kind) == [.symbolicLink])
    #expect(try set.largeValueNames(in: system).isEmpty)
  }

  @Test func whatIsNoStoreIsNamed() throws {
    try symlink(folder.appending("nowhere"), at: folder.appending("dangling"))
    try folder.write("x", to: "folder/inside")
    try folder.write("", to: ".Cloud.sqlite.icloud")
    expect(.danglingLink, at: "dangling")
    expect(.isDirectory, at: "folder")
    expect(.notDownloaded, at: "Cloud.sqlite")
    expect(.notFound, at: "no/such/folder.sqlite")
    expect(.notFound, at: "folder/inside/file.sqlite")
    #expect(try StoreFileSet.locate(folder.appending("missing.sqlite"), in: system).members(in: system).isEmpty)
  }

  private func expect(_ kind: FileError.Kind, at name: String, _ location: SourceLocation = #_sourceLocation) {
    let error = #expect(throws: FileError.self, sourceLocation: location) {
      try StoreFileSet.locate(folder.appending(name), in: system)
    }
    #expect(error?.kind == kind, sourceLocation: location)
    #expect(error?.hint.isEmpty == false, sourceLocation: location)
  }

  @Test func aNewStoreNeverMeetsLeftovers() throws {
    let set = StoreFileSet(main: folder.appending("App.sqlite"))
    try folder.write("stale", to: "App.sqlite-wal")
    let error = #expect(throws: FileError.self) { try StagedStore([1, 2, 3], for: set, in: system).install() }
    #expect(error?.kind == .alreadyExists)
    try system.unlink(set.path(of: .wal))
    try StagedStore([1, 2, 3], for: set, in: system).install()
    #expect(try system.contents(of: set.main, limit: 10) == [1, 2, 3])
    #expect(try system.entries(of: folder.path).count == 1)
  }

  @Test func installingSurvivesTroubleAtEveryStep() throws {
    let bytes = [UInt8](repeating: 7, count: 5000)
    let rehearsal = Trouble(.failure(.ioError), atStep: 0)
    let counted = StoreFileSet(main: folder.appending("count.sqlite"))
    try StagedStore(bytes, for: counted, in: rehearsal.fileSystem).install()
    #expect(rehearsal.steps > 4)
    for step in 1...rehearsal.steps {
      for kind in [Trouble.Kind.failure(.noSpace), .failure(.ioError), .failure(.permissionDenied), .death] {
        let set = StoreFileSet(main: folder.appending("step\(step).sqlite"))
        let trouble = Trouble(kind, atStep: step)
        // Once the store is in its place, trouble in tidying up is no failure; what counts is what is there.
        do { try StagedStore(bytes, for: set, in: trouble.fileSystem).install() } catch {}
        if try system.status(of: set.main) != nil {
          #expect(try system.contents(of: set.main, limit: 10_000) == bytes)
        } else {
          try StagedStore(bytes, for: set, in: system).install()
        }
        #expect(try system.contents(of: set.main, limit: 10_000) == bytes)
        try system.unlink(set.main)
      }
    }
  }
}

/// Makes a symbolic link; the library itself never does.
func symlink(_ target: FilePath, at path: FilePath) throws {
  let result = unsafe target.withPlatformString { target in
    unsafe path.withPlatformString { path in unsafe systemSymlink(target, path) }
  }
  try #require(result == 0)
}
