import Foundation
import ManagedObjectModel
import Platform
import SwiftModelSources
import SystemPackage
import TestSupport
import Testing

@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct SourceFileTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func model(_ name: String) -> String { "@Model class \(name) { var n: Int; init() {} }\n" }

  @Test func aFolderIsReadWithThoseInIt() throws {
    try folder.write(model("A"), to: "App/Models/A.swift")
    try folder.write(model("B"), to: "App/B.swift")
    try folder.write(model("Hidden"), to: "App/.build/Hidden.swift")
    try folder.write(model("Tested"), to: "App/AppTests/Tested.swift")
    try folder.write(model("Pod"), to: "App/Pods/Pod.swift")
    let models = try SwiftSources.load(folder.appending("App"))
    #expect(models.hashes.keys.sorted() == ["A", "B"] && models.name == "App")
    #expect(try SwiftSources.load(folder.appending("App/B.swift")).hashes.keys.sorted() == ["B"])
    #expect(models.current?.classes["A"]?.file.hasSuffix("App/Models/A.swift") == true)
  }

  private func link(_ target: String, at name: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: folder.appending(name).string, withDestinationPath: folder.appending(target).string)
  }

  @Test func linksAreNotFollowed() throws {
    try folder.write(model("A"), to: "App/A.swift")
    try folder.write(model("Outside"), to: "Other/Outside.swift")
    try link("Other", at: "App/Link")
    try link("App", at: "App/Circle")
    try link("Other/Outside.swift", at: "App/Outside.swift")
    #expect(try SwiftSources.load(folder.appending("App")).hashes.keys.sorted() == ["A"])
  }

  @Test func sourcesAreToldFromOtherModels() throws {
    try folder.write(model("A"), to: "App/Deep/A.swift")
    try folder.write("<model/>", to: "M.xcdatamodeld/M.xcdatamodel/contents")
    try folder.write(model("A"), to: "M.xcdatamodeld/Extra.swift")
    try folder.write("x", to: "Empty/readme.txt")
    #expect(try SwiftSources.isSource(folder.appending("App")))
    #expect(try SwiftSources.isSource(folder.appending("App/Deep/A.swift")))
    #expect(try !SwiftSources.isSource(folder.appending("M.xcdatamodeld")))
    #expect(try !SwiftSources.isSource(folder.appending("Empty")))
    #expect(try !SwiftSources.isSource(folder.appending("Missing")))
  }

  @Test func aFileThatIsTooLargeIsRefused() throws {
    let place = try folder.write(Array(repeating: UInt8(ascii: " "), count: (4 << 20) + 1), to: "Large.swift")
    #expect { try SwiftSources.load(place) } throws: { ($0 as? FileError)?.code == "file-too-large" }
  }

  @Test(arguments: [
    ("try ", "1", ""), ("(", "1", ")"), ("[", "1", "]"), ("- ", "1", ""), ("a ? b : ", "1", ""), ("{", "1", "}()"),
  ])
  func deepExpressionsEndNothing(open: String, middle: String, close: String) throws {
    for count in [8, 90, 200, 50_000] {
      let value = String(repeating: open, count: count) + middle + String(repeating: close, count: count)
      let models = try sourceModels(
        "@Model class A { var n: Int; var x: Int? = \(value); init() {} }", model("B"), types: ["B"])
      #expect(models.hashes.keys.sorted() == ["B"])
    }
  }

  @Test(arguments: ["Array<", "() -> ", "A.", "some ", "["])
  func deepTypesEndNothing(open: String) throws {
    for count in [8, 90, 200, 50_000] {
      let type = String(repeating: open, count: count) + "Int"
      let models = try sourceModels("@Model class A { var x: \(type); init() {} }", model("B"), types: ["B"])
      #expect(models.hashes.keys.sorted() == ["B"])
    }
  }

  @Test(arguments: [
    ("#if X\n", "#endif\n"), ("class C { ", "}"), ("func f() { if x { } else ", ""), ("/*", ""),
    (#"var s = "\("#, #")""#),
  ])
  func deepDeclarationsEndNothing(open: String, close: String) throws {
    for count in [8, 90, 20_000] {
      let text = String(repeating: open, count: count) + String(repeating: close, count: count)
      #expect(try sourceModels(text, model("B"), types: ["B"]).hashes.keys.sorted() == ["B"])
    }
  }

  @Test func aTypeThatHoldsItselfEnds() throws {
    let models = try sourceModels(
      """
      @Model class A { var tree: Tree; var loop: Loop; init() {} }
      indirect enum Loop: Codable { case more(Loop), end }
      struct Tree: Codable { var left: Tree?; var right: Tree? }
      typealias Round = Circle
      typealias Circle = Round
      @Model class B { var x: Round; init() {} }
      """, types: ["A", "B"])
    #expect(models.current?.incompleteEntities == ["A", "B"])
  }
}
