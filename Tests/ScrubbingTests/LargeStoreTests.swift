import Foundation
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// How long a large store takes; by hand, with `LAZARET_SCRUB_STORE` set to its path.
@Suite("Scrubbing large stores", .enabled(if: environment("LAZARET_SCRUB_STORE") != nil))
struct LargeStoreTests {
  @Test("Time and memory") func time() throws {
    let store = FilePath(environment("LAZARET_SCRUB_STORE") ?? "")
    let target = try TemporaryFolder(in: FilePath(environment("LAZARET_SCRUB_PLACE") ?? "/tmp"))
    let start = Date()
    let result = try StoreScrubber(key: .random()).scrub(StoreFileSet(main: store), into: target.path) {
      phase, done, total in
      if done % 65536 == 0 { print(phase, done, total, Date().timeIntervalSince(start)) }
      return true
    }
    print("seconds", Date().timeIntervalSince(start))
    let encoder = JSONEncoder()
    encoder.outputFormatting = .prettyPrinted
    var report = result.report
    report.gaps = Array(report.gaps.prefix(3))
    print(String(decoding: try encoder.encode(report), as: UTF8.self))
    if let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) {
      for line in status.split(separator: "\n") where line.hasPrefix("VmHWM") { print(line) }
    }
  }
}
