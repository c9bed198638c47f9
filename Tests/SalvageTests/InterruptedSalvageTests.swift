import Foundation
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Kills and failures while a store is salvaged: the evidence stays as it is, the result is there whole or not at all, and
/// the next run succeeds.
@Suite(.serialized)
struct InterruptedSalvageTests {
  private static let isLong = environment("LAZARET_LONG") != nil

  /// A damaged store with large values beside it and a place for the result.
  private struct Scene {
    let scene: RebuildScene
    let store: FilePath
    let results: FilePath
    let before: [String: [UInt8]]

    init() throws {
      scene = try RebuildScene(seed: 11, records: 60)
      // Half pairs are set aside.
      try scene.change("DELETE FROM ZPORT WHERE Z_PK % 2 = 0")
      store = try scene.damaged("zero:8", seed: 11)
      let external = StoreFileSet(main: store).path(of: .externalData)
      try FileSystem().makeDirectory(external.appending("_EXTERNAL_DATA"))
      let file = try FileSystem().create(external.appending("_EXTERNAL_DATA").appending("A-1"))
      try file.write([1, 2, 3])
      results = scene.folder.appending("results")
      try FileSystem().makeDirectory(results)
      before = try Self.parts(store)
    }

    var out: FilePath { results.appending("Out.sqlite") }

    /// The bytes of a store's files, and of one large value.
    static func parts(_ store: FilePath) throws -> [String: [UInt8]] {
      var parts: [String: [UInt8]] = [:]
      for member in try StoreFileSet(main: store).members(in: FileSystem()) where member.status.kind == .regular {
        parts["\(member.part)"] = try FileSystem().contents(of: member.path, limit: 1 << 28)
      }
      return parts
    }

    func salvage(_ fileSystem: FileSystem = FileSystem()) throws {
      _ = try Salvager(surroundings: .still(fileSystem: fileSystem)).salvage(
        store, to: out, model: .coreData(scene.bundle))
    }

    /// The evidence is untouched, and the result is whole where it has its name.
    func expectWholeOrNothing(_ result: [String: [UInt8]], _ comment: Comment) throws {
      #expect(try Self.parts(store) == before, comment)
      let here = try Self.parts(out)
      guard here["main"] != nil else { return }
      #expect(here == result, comment)
      let aside = try FileSystem().status(of: results.appending("Out.sqlite-set-aside"))
      #expect(aside != nil, comment)
      let external = StoreFileSet(main: out).path(of: .externalData)
      let value = try FileSystem().status(of: external.appending("_EXTERNAL_DATA").appending("A-1"))
      #expect(value?.size == 3, comment)
    }

    /// Another run makes what the first did not.
    func expectGoesOn(_ result: [String: [UInt8]], _ comment: Comment) throws {
      if try Self.parts(out)["main"] == nil { try salvage() }
      try expectWholeOrNothing(result, comment)
      #expect(try Self.parts(out)["main"] != nil, comment)
    }
  }

  private static func rehearsal() throws -> (steps: Int, result: [String: [UInt8]]) {
    let scene = try Scene()
    let trouble = Trouble(.death, atStep: 0)
    try scene.salvage(trouble.fileSystem)
    let names = try FileSystem().entries(of: scene.results).map(\.string).sorted()
    #expect(names == [".Out_SUPPORT", "Out.sqlite", "Out.sqlite-set-aside"])
    return (trouble.steps, try Scene.parts(scene.out))
  }

  @Test(arguments: [Errno?.none, .noSpace, .ioError])
  func troubleAtEveryWrite(errno: Errno?) throws {
    let (steps, result) = try Self.rehearsal()
    #expect(steps > 20)
    let start = Self.isLong ? 1 : [1, 2, 3][errno == nil ? 0 : errno == .noSpace ? 1 : 2]
    for step in stride(from: start, through: steps, by: Self.isLong ? 1 : 4) {
      let scene = try Scene()
      let trouble = Trouble(errno.map { .failure($0) } ?? .death, atStep: step)
      do {
        try scene.salvage(trouble.fileSystem)
      } catch let error as SalvageError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      try scene.expectWholeOrNothing(result, "step \(step)")
      try scene.expectGoesOn(result, "step \(step)")
    }
  }

  @Test func killAtEveryWrite() async throws {
    let (steps, result) = try Self.rehearsal()
    print("a salvage has \(steps) writes of its own")
    for step in stride(from: Self.isLong ? 1 : 2, through: steps, by: Self.isLong ? 1 : 5) {
      let scene = try Scene()
      let store = scene.store.string
      let out = scene.out.string
      await #expect(processExitsWith: .signal(SIGKILL), "step \(step)") {
        [store = store as String, out = out as String, step = step as Int] in
        let trouble = Trouble(.kill, atStep: step)
        _ = try Salvager(surroundings: .still(fileSystem: trouble.fileSystem)).salvage(
          FilePath(store), to: FilePath(out), model: .coreData(RebuildScene.bundle()))
      }
      try scene.expectWholeOrNothing(result, "step \(step)")
      try scene.expectGoesOn(result, "step \(step)")
    }
  }

  @Test("Two salvages to one place do not mix: one of them has it")
  func twoAtOnce() async throws {
    let (_, result) = try Self.rehearsal()
    let scene = try Scene()
    let store = scene.store
    let out = scene.out
    let bundle = scene.scene.bundle
    let outcomes = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<3 {
        group.addTask {
          do {
            _ = try Salvager(surroundings: .still()).salvage(store, to: out, model: .coreData(bundle))
            return true
          } catch {
            return false
          }
        }
      }
      return await group.reduce(into: [Bool]()) { $0.append($1) }
    }
    #expect(outcomes.count { $0 } == 1)
    try scene.expectWholeOrNothing(result, "three at once")
  }

  @Test("A disk that is too full is told before anything is written")
  func tooFull() throws {
    guard geteuid() == 0, ChildProcess.exists("mount") else { return }
    let scene = try Scene()
    let disk = try TemporaryFolder()
    let mounted = try ChildProcess.run(
      "mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", disk.path.string])
    guard mounted.status == 0 else { return }
    defer { _ = try? ChildProcess.run("umount", ["-l", disk.path.string]) }
    let error = #expect(throws: SalvageError.self) {
      try Salvager().salvage(scene.store, to: disk.appending("Out.sqlite"), model: .coreData(scene.scene.bundle))
    }
    #expect(error?.code == "no-space")
    #expect(error?.isEnvironmental == true)
    #expect(try FileSystem().entries(of: disk.path).isEmpty)
  }
}
