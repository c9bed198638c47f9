import Foundation
import HTTPServer
import Inspector
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("The description of the API")
struct DescriptionTests {
  private static let path = RealMaterial.projectRoot.appending("Documentation/openapi.json")

  @Test("the file in the documentation is what the routes say")
  func file() throws {
    let browser = try Browser(try Scene().inspector(receives: true))
    let served = try JSONSerialization.jsonObject(with: Data(try browser.get("/api.json").bytes ?? []))
    let pretty = try JSONSerialization.data(
      withJSONObject: served, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
    if ProcessInfo.processInfo.environment["LAZARET_RECORD"] != nil {
      try FileSystem().writeAtomically(Array(pretty) + [10], to: Self.path, replacing: true)
    }
    let kept = try FileSystem().contents(of: Self.path, limit: 1 << 24)
    #expect(
      String(decoding: kept, as: UTF8.self) == String(decoding: pretty, as: UTF8.self) + "\n",
      "record it with LAZARET_RECORD=1")
  }

  @Test("every page has a twin, every action is a POST, and no pattern ends with any text")
  func routes() throws {
    let inspector = try Scene().inspector(receives: true)
    let browser = try Browser(inspector)
    let paths = try #require(try browser.json("/api.json")["paths"] as? [String: [String: Any]])
    for route in inspector.documentedRoutes where !route.pattern.hasPrefix("/public/") {
      #expect(paths[route.pattern]?[route.method.rawValue.lowercased()] != nil, "\(route.pattern)")
      switch route.kind {
      case .page:
        #expect(route.method == .get)
        #expect(paths[route.pattern + ".json"]?["get"] != nil, "\(route.pattern)")
      case .action: #expect(route.method == .post)
      // The end of a session is a POST too, and has no twin.
      case .other: #expect(route.method == (route.pattern == "/session/end" ? .post : .get))
      }
    }
    let identifiers = paths.values.flatMap { $0.values }.compactMap {
      ($0 as? [String: Any])?["operationId"] as? String
    }
    #expect(Set(identifiers).count == identifiers.count)
  }

  @Test("the page of the documentation names every address")
  func page() throws {
    let text = String(
      decoding: try FileSystem().contents(
        of: RealMaterial.projectRoot.appending("Documentation/API.md"), limit: 1 << 20), as: UTF8.self)
    for route in try Scene().inspector(receives: true).documentedRoutes where !route.pattern.hasPrefix("/public/") {
      #expect(text.contains("`\(route.pattern)`"), "\(route.pattern)")
    }
  }
}
