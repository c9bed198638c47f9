import Foundation
import Scrubbing
import StoreFiles
import SystemPackage
import TestSupport
import Testing

/// The check for original values.
@Suite("The scanner")
struct ValueScannerTests {
  @Test("It finds what is there, raw, in UTF-16 and packed")
  func finds() throws {
    let scene = try ScrubScene.plain(seed: 6, rows: 60)
    let result = try scene.scrubbed().result
    let own = try result.scanner.scan(scene.store)
    #expect(own.count > 100)
    let folder = try TemporaryFolder()
    let place = try folder.write(try scene.files()["main"] ?? [], to: "plain")
    let packed = try ChildProcess.run("gzip", ["-k", "-1", place.string])
    #expect(packed.status == 0)
    #expect(try result.scanner.scan(folder.appending("plain.gz")).count >= own.count)
    let wide = try ScrubScene.plain(seed: 6, rows: 60, setup: "PRAGMA encoding = 'UTF-16le'")
    #expect(try result.scanner.scan(wide.store).count > 100)
    #expect(!result.scanner.scan(Array("nothing of it".utf8), named: "x").places.contains { $0.length > 20 })
  }
}
