import Foundation
import StoreFiles
import SwiftModelSources
import SystemPackage
import TestSupport
import Testing

/// Swift sources where a model is taken.
@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct SourceModelTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try write("var title: String; var pages: Int?")
  }

  private var sources: String { desk.folder.appending("Sources").string }

  private func write(_ properties: String) throws {
    try desk.folder.write(
      "import SwiftData\n@Model final class Book {\n  \(properties)\n  init() {}\n}\nlet schema = Schema([Book.self])\n",
      to: "Sources/Models/Book.swift")
  }

  private func json(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  @Test func hashesHaveTheShapeOfAnyModel() throws {
    let result = try desk.lazaret("model", "hashes", sources, "--types", "Book", "--json")
    #expect(result.status == 0 && result.errors.isEmpty)
    let versions = try #require(try json(result.output)["versions"] as? [[String: Any]])
    #expect(versions.count == 1 && versions[0]["name"] as? String == "current")
    let hash = try #require((versions[0]["entities"] as? [String: String])?["Book"])
    #expect(hash.count == 64)
    // From verhash_swiftdata.py, of the same declaration.
    #expect(hash == "f9d63aaf7807ff133920085497063812cb1d859613e3809d3555858452baf31f")
  }

  @Test func whatOnlyACompilerCouldTellHasNoHash() throws {
    try write("var title: String; var cover: Cover")
    let result = try desk.lazaret("model", "hashes", sources, "--json")
    #expect(result.status == 2)
    let all = try json(result.output)
    let version = try #require((all["versions"] as? [[String: Any]])?.first)
    #expect((version["entities"] as? [String: String])?.isEmpty == true && version["checksum"] as? String == "")
    #expect(version["incomplete"] as? [String] == ["Book"])
    let finding = try #require(((all["sources"] as? [String: Any])?["findings"] as? [[String: Any]])?.first)
    #expect(finding["kind"] as? String == "unresolved-type" && finding["line"] as? Int == 3)
    #expect((finding["file"] as? String)?.hasSuffix("Sources/Models/Book.swift") == true)
    // Nothing is migrated or created by it.
    let opened = try desk.lazaret("open", desk.store, "--model", sources)
    #expect(
      opened.status == 1 && opened.errors.contains("[model-unresolved-source]") && opened.errors.contains("line 3"))
    #expect(try FileSystem().status(of: FilePath(desk.store)) == nil)
    let lint = try desk.lazaret("model", "lint", sources)
    #expect(lint.status == 2 || lint.status == 1)
  }

  @Test func aStoreIsCreatedRecognizedAndMigrated() throws {
    #expect(try desk.lazaret("open", desk.store, "--model", sources).status == 0)
    let first = try json(try desk.lazaret("inspect", desk.store, "--model", sources, "--json").output)
    #expect(first["verdict"] as? String == "compatible" && first["modelVersion"] as? String == "current")
    #expect(first["nearestVersion"] == nil)
    try write("var title: String; var year: Int?")
    let second = try json(try desk.lazaret("inspect", desk.store, "--model", sources, "--json").output)
    #expect(second["modelVersion"] is NSNull)
    let nearest = try #require(second["nearestVersion"] as? [String: Any])
    #expect(nearest["name"] as? String == "current" && nearest["equal"] as? Int == 0)
    let entity = try #require((nearest["entities"] as? [[String: Any]])?.first)
    #expect(entity["name"] as? String == "Book" && entity["change"] as? String == "changed")
    #expect(entity["differences"] as? [String] == ["pages: only in the store", "year: only in the version"])
    #expect(try desk.lazaret("inspect", desk.store, "--model", sources).output.contains("nearest version: current"))
  }

  @Test func aStoresVersionIsFrozenAndChecked() throws {
    #expect(try desk.lazaret("open", desk.store, "--model", sources).status == 0)
    let file = desk.folder.appending("BookV1.swift").string
    #expect(try desk.lazaret("model", "freeze", desk.store, "--schema", "BookV1", "--output", file).status == 0)
    // No file is replaced.
    #expect(try desk.lazaret("model", "freeze", desk.store, "--schema", "BookV1", "--output", file).status == 1)
    let check = ["model", "freeze", desk.store, "--schema", "BookV1", "--check", file]
    #expect(try ChildProcess.run(ChildProcess.tool, check).status == 0)
    let text = String(decoding: try FileSystem().contents(of: FilePath(file), limit: 1 << 20), as: UTF8.self)
    try desk.folder.write(text.replacingOccurrences(of: "var pages: Int?", with: "var pages: Int"), to: "BookV1.swift")
    let changed = try ChildProcess.run(ChildProcess.tool, check + ["--json"])
    #expect(changed.status == 2)
    #expect(try json(changed.output)["differing"] as? [String] == ["Book"])
  }
}

@Suite(.enabled(if: !SwiftSources.isAvailable, "built with the trait SwiftSources"))
struct SourcesNotBuiltInTests {
  @Test func sourcesAreRefusedWithTheWayToHaveThem() throws {
    let desk = try Desk()
    try desk.folder.write("@Model class A {}", to: "Sources/A.swift")
    let result = try desk.lazaret("model", "hashes", desk.folder.appending("Sources").string)
    #expect(result.status == 1 && result.errors.contains("[model-sources-not-built-in]"))
    #expect(result.errors.contains("--traits SwiftSources"))
  }
}
