import Platform
import SystemPackage
import TestSupport
import Testing

/// Who may read what is written, and what a file that takes another's place keeps of it.
struct FileAccessTests {
  let folder: TemporaryFolder
  let system = FileSystem()

  init() throws { folder = try TemporaryFolder() }

  private func mode(_ path: FilePath) throws -> CInterop.Mode? { try system.status(of: path)?.permissions.rawValue }

  @Test func whatIsWrittenIsItsOwnersAlone() throws {
    let place = folder.appending("a/b")
    try system.makeDirectory(place)
    #expect(try mode(folder.appending("a")) == 0o700)
    #expect(try mode(place) == 0o700)
    let file = place.appending("note")
    try system.writeAtomically([1], to: file, replacing: true)
    #expect(try mode(file) == 0o600)
    let open = try system.create(place.appending("open"), permissions: .init(rawValue: 0o644))
    try open.commit()
    _ = try system.copy(place.appending("open"), to: place.appending("copy"))
    #expect(try mode(place.appending("copy")) == 0o600)
  }

  @Test func theAccessOfAFileIsGivenToAnother() throws {
    let (model, copy) = (folder.appending("model"), folder.appending("copy"))
    let file = try system.create(model, permissions: .init(rawValue: 0o600))
    try file.commit()
    var status = try #require(try system.status(of: model))
    status.permissions = .init(rawValue: 0o640)
    try system.adoptAccess(of: status, to: model)
    let hasAttributes = setAttribute("user.lazaret.kept", [1, 0, 2], of: model)
    try system.writeAtomically([1], to: copy, replacing: false)
    _ = setAttribute("user.lazaret.gone", [3], of: copy)
    try system.adoptAccess(of: model, to: copy)
    #expect(try mode(copy) == 0o640)
    let access = try #require(try system.access(to: copy))
    #expect(access.attributes == (try #require(try system.access(to: model))).attributes)
    if hasAttributes { #expect(access.attributes["user.lazaret.kept"] == [1, 0, 2]) }
    #expect(access.attributes["user.lazaret.gone"] == nil)
  }

  @Test func aTreeKeepsTheAccessOfItsFiles() throws {
    let source = folder.appending("source")
    try system.makeDirectory(source)
    let file = try system.create(source.appending("a"), permissions: .init(rawValue: 0o600))
    try file.commit()
    var status = try #require(try system.status(of: source.appending("a")))
    status.permissions = .init(rawValue: 0o664)
    try system.adoptAccess(of: status, to: source.appending("a"))
    try system.copyTree(source, to: folder.appending("target"))
    #expect(try mode(folder.appending("target/a")) == 0o664)
    #expect(try mode(folder.appending("target")) == 0o700)
  }

  @Test func anAppMayUseWhatStandsInForAStoreThatItCouldNotWrite() throws {
    let path = folder.appending("model")
    let file = try system.create(path, permissions: .init(rawValue: 0o440))
    try file.commit()
    #expect(try system.access(to: path)?.usable.status.permissions.rawValue == 0o640)
    #expect(try system.access(to: folder.appending("nothing")) == nil)
  }
}
