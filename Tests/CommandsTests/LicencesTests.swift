import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// `lazaret licences`: everything that is linked, with its licence.
struct LicencesTests {
  private struct Listing: Decodable {
    struct Component: Decodable {
      var name: String
      var version: String?
      var licence: String
      var linking: String
      var texts: [String]
    }

    var version: String
    var components: [Component]
    var texts: [String: String]?
  }

  private struct Package: Decodable {
    var version: String
    var home: String
  }

  private func listing(_ arguments: String...) throws -> Listing {
    let result = try ChildProcess.run(ChildProcess.tool, ["licences", "--json"] + arguments)
    #expect(result.status == 0)
    return try JSONDecoder().decode(Listing.self, from: Data(result.output.utf8))
  }

  private func projectFile(_ name: String) throws -> String {
    String(
      decoding: try FileSystem().contents(of: RealMaterial.projectRoot.appending(name), limit: 1 << 20), as: UTF8.self)
  }

  @Test func everyPackageOfTheBuildIsListedWithItsExactVersion() throws {
    let recorded = try JSONDecoder().decode(
      [String: Package].self, from: Data(try projectFile("Packaging/versions.json").utf8))
    #expect(recorded.count >= 5)
    let listed = try listing("--list").components.filter { $0.linking == "included" && $0.version != nil }
    let expected = recorded.values.map { "\($0.home.split(separator: "/").last ?? "") \($0.version)" }
    #expect(Set(listed.map { "\($0.name) \($0.version ?? "")" }) == Set(expected))
  }

  @Test func everyTextIsThereAndIsOfAComponent() throws {
    let listing = try listing()
    let texts = try #require(listing.texts)
    #expect(Set(listing.components.flatMap(\.texts)) == Set(texts.keys))
    #expect(
      texts["Lazaret"]?.trimmingCharacters(in: .whitespacesAndNewlines)
        == (try projectFile("LICENSE")).trimmingCharacters(in: .whitespacesAndNewlines))
    for component in listing.components where component.linking != "shared" {
      #expect(!component.texts.isEmpty, "\(component.name)")
    }
    for (name, text) in texts { #expect(text.count > 200, "\(name)") }
    // What has notices has them besides the licence.
    let log = try #require(listing.components.first { $0.name == "swift-log" })
    #expect(log.texts.contains { texts[$0]?.contains("The SwiftLog Project") == true })
    #expect(log.texts.contains { texts[$0]?.contains("END OF TERMS AND CONDITIONS") == true })
  }

  @Test func theListHasNoTexts() throws {
    #expect(try listing("--list").texts == nil)
    let list = try ChildProcess.run(ChildProcess.tool, ["licences", "--list"]).output
    let whole = try ChildProcess.run(ChildProcess.tool, ["licences"]).output
    #expect(whole.hasPrefix(list))
    #expect(!list.contains("END OF TERMS AND CONDITIONS"))
    for name in ["GRDB.swift", "OpenSSL", "ICU", "SQLite", "libmicrohttpd"] { #expect(list.contains(name)) }
  }

  @Test func everyTextIsPrintedOnce() throws {
    let texts = try #require(try listing().texts)
    let whole = try ChildProcess.run(ChildProcess.tool, ["licences"]).output
    for (name, text) in texts { #expect(whole.components(separatedBy: text).count == 2, "\(name)") }
  }

  @Test func itIsFoundUnderBothSpellings() throws {
    let british = try ChildProcess.run(ChildProcess.tool, ["licences", "--list"])
    let american = try ChildProcess.run(ChildProcess.tool, ["licenses", "--list"])
    #expect(british.status == 0)
    #expect(american.output == british.output)
  }
}
