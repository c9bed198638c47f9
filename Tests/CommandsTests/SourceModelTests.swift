import Foundation
import Platform
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

/// The lint and the lock file of Swift sources.
@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct SourceLintTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try write(live: "var title: String")
  }

  private var sources: String { desk.folder.appending("Sources").string }
  private var lock: String { desk.folder.appending("model.lock").string }

  private func write(live: String) throws {
    try desk.folder.write(
      "import SwiftData\n@Model final class Book {\n  \(live)\n  init() {}\n}\n", to: "Sources/Book.swift")
    try desk.folder.write(
      """
      import SwiftData
      enum V1: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Book.self] }
      }
      enum Plan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [V1.self] }
        static var stages: [MigrationStage] { [] }
      }

      """, to: "Sources/V1.swift")
  }

  private func findings(_ arguments: String...) throws -> [[String: Any]] {
    let result = try desk.run(["model", "lint", sources] + arguments + ["--json"])
    let all = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
    return try #require(all["findings"] as? [[String: Any]])
  }

  @Test func anEditedVersionIsFoundAtItsLineAndFrozenFromTheLockFile() throws {
    #expect(try findings("--lock", lock).isEmpty)
    try write(live: "var title: String\n  var pages: Int?")
    let edited = try #require(try findings("--lock", lock).first { $0["rule"] as? String == "edited-after-release" })
    #expect((edited["file"] as? String)?.hasSuffix("Sources/Book.swift") == true && edited["line"] as? Int == 4)
    #expect((edited["detail"] as? String)?.hasSuffix("pages (added)") == true)
    // What stores of the released version have is in the lock file still.
    let file = desk.folder.appending("V1.swift").string
    let frozen = try desk.lazaret("model", "freeze", lock, "--version-name", "V1", "--schema", "V1", "-o", file)
    #expect(frozen.status == 0, "\(frozen.errors)")
    let text = String(decoding: try FileSystem().contents(of: FilePath(file), limit: 1 << 20), as: UTF8.self)
    #expect(text.contains("enum V1: VersionedSchema") && text.contains("var title: String") && !text.contains("pages"))
    #expect(
      try desk.lazaret("model", "freeze", lock, "--version-name", "V1", "--schema", "V1", "--check", file).status == 0)
    // The sources are not what was released.
    let other = try desk.lazaret("model", "freeze", sources, "--lock", lock, "--version-name", "V1")
    #expect(other.status == 1 && other.errors.contains("[model-lock-invalid]"), "\(other.errors)")
  }

  @Test func aStoreOfNoVersionIsFoundAtTheLineThatDiffers() throws {
    #expect(try desk.lazaret("open", desk.store, "--model", sources).status == 0)
    #expect(try findings("--store", desk.store).isEmpty)
    try write(live: "var title: String\n  var pages: Int?")
    let found = try #require(try findings("--store", desk.store).first { $0["rule"] as? String == "unknown-release" })
    #expect((found["file"] as? String)?.hasSuffix("Sources/Book.swift") == true && found["line"] as? Int == 4)
    #expect((found["detail"] as? String)?.contains("Book.pages (only in the version)") == true)
  }

  @Test func withoutSchemasAStoreIsTakenForTheVersionBefore() throws {
    try FileSystem().unlink(FilePath(sources).appending("V1.swift"))
    #expect(try desk.lazaret("open", desk.store, "--model", sources).status == 0)
    try write(live: "var pages: Int?")
    try FileSystem().unlink(FilePath(sources).appending("V1.swift"))
    let found = try findings("--store", desk.store)
    #expect(!found.contains { $0["rule"] as? String == "unknown-release" })
    let loss = try #require(found.first { $0["rule"] as? String == "data-loss" })
    #expect(loss["place"] as? String == "App.sqlite → current" && loss["property"] as? String == "title")
    #expect((loss["file"] as? String)?.hasSuffix("Sources/Book.swift") == true)
  }

  @Test func aRenameAndAMandatoryPropertyHaveTheirLines() throws {
    try desk.folder.write(
      """
      import SwiftData
      enum V1: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Book.self] }
        @Model final class Book { var title: String; init() {} }
      }
      enum V2: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
        static var models: [any PersistentModel.Type] { [Book.self] }
        @Model final class Book {
          var titel: String = ""
          var pages: Int
          init() {}
        }
      }
      """, to: "Schemas/Schemas.swift")
    let result = try desk.lazaret("model", "lint", desk.folder.appending("Schemas").string, "--json")
    let all = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
    let findings = try #require(all["findings"] as? [[String: Any]])
    let rename = try #require(findings.first { $0["rule"] as? String == "possible-rename" })
    #expect(rename["line"] as? Int == 11 && (rename["hint"] as? String)?.contains("@Attribute(originalName:)") == true)
    let mandatory = try #require(findings.first { $0["property"] as? String == "pages" })
    #expect(mandatory["line"] as? Int == 12)
    #expect((mandatory["hint"] as? String)?.contains("initial value") == true)
  }

  @Test func storesAndSourcesTogetherAreAHistory() throws {
    let store = desk.folder.appending("History/App-1.0.sqlite")
    try FileSystem().makeDirectory(store.removingLastComponent())
    #expect(try desk.lazaret("open", store.string, "--model", sources).status == 0)
    try desk.folder.write(
      "import SwiftData\n@Model final class Book { var title: String; var pages: Int?; init() {} }\n",
      to: "History/Now/Book.swift")
    let history = desk.folder.appending("History").string
    let result = try desk.lazaret("model", "diff", history, "--json")
    #expect(result.status == 0, "\(result.errors)")
    let plan = try desk.lazaret("plan", store.string, "--model", history, "--json")
    let all = try #require(try JSONSerialization.jsonObject(with: Data(plan.output.utf8)) as? [String: Any])
    #expect(all["from"] as? String == "App-1.0" && all["to"] as? String == "Now")
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
