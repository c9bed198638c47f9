import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// What stays of a released store is named, listed, and removed on request.
struct ReleasedStoreTests {
  private func released() throws -> (desk: Desk, id: String, told: [String: Any]) {
    let desk = try Desk()
    let broken = try desk.makeBrokenStore()
    _ = try desk.lazaret("open", broken, "--model", desk.model)
    let id = try desk.quarantinedID()
    let result = try desk.lazaret("quarantine", "release", id, "--to", "Stores/Back.sqlite", "--json")
    #expect(result.status == 0, "\(result.errors)")
    return (desk, id, try #require(try json(result.output) as? [String: Any]))
  }

  private func files(_ items: Any?) -> Set<String> {
    Set((items as? [[String: Any]] ?? []).compactMap { $0["name"] as? String })
  }

  @Test func whatStaysIsToldAndCanBeDiscarded() throws {
    let (desk, id, told) = try released()
    let folder = desk.stores.appending("Incompatible")
    let there = Set(try FileSystem().entries(of: folder).map(\.string))
    #expect(there.contains("\(id).salvaged.sqlite") && there.contains("\(id).released.json"))
    #expect(files(told["left"]) == there)
    #expect((told["discard"] as? String)?.contains("quarantine discard") == true)
    let list = try #require(try json(try desk.lazaret("quarantine", "list", "--json").output) as? [String: Any])
    #expect((list["stores"] as? [Any])?.isEmpty == true)
    let left = try #require((list["released"] as? [[String: Any]])?.first)
    #expect(left["id"] as? String == id && files(left["files"]) == there)
    let text = try desk.lazaret("quarantine", "list").output
    #expect(text.contains("Of 1 released store something is left") && text.contains(id), "\(text)")
    // Any other verb says what it is.
    let shown = try desk.lazaret("quarantine", "show", folder.appending("\(id).sqlite").string)
    #expect(shown.status == 1 && shown.errors.contains("it was released to"), "\(shown.errors)")
    let before = try FolderContents(of: desk.folder.path)
    let kept = try desk.lazaret("quarantine", "discard", id, input: "n\n")
    #expect(kept.status == 1 && kept.errors.contains("The store itself was released to"), "\(kept.errors)")
    for name in there { #expect(kept.errors.contains(name), "\(name)") }
    #expect(try FolderContents(of: desk.folder.path) == before)
    let back = try FileSystem().contents(of: desk.stores.appending("Back.sqlite"), limit: 1 << 24)
    let gone = try desk.lazaret("quarantine", "discard", id, "--yes", "--json")
    #expect(gone.status == 0, "\(gone.errors)")
    #expect(files((try json(gone.output) as? [String: Any])?["files"]) == there)
    #expect(try FileSystem().entries(of: folder).isEmpty)
    #expect(try FileSystem().contents(of: desk.stores.appending("Back.sqlite"), limit: 1 << 24) == back)
  }

  @Test func theTextNamesEveryFile() throws {
    let desk = try Desk()
    _ = try desk.lazaret("open", try desk.makeBrokenStore(), "--model", desk.model)
    let id = try desk.quarantinedID()
    let text = try desk.lazaret("quarantine", "release", id, "--to", "Stores/Back.sqlite").output
    for name in try FileSystem().entries(of: desk.stores.appending("Incompatible")) {
      #expect(text.contains(name.string), "\(name)")
    }
    #expect(text.contains("Remove it with: lazaret quarantine discard "), "\(text)")
  }
}
