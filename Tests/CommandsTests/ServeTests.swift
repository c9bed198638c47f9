import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// `lazaret serve`, as a process of its own.
struct ServeTests {
  private func serve(_ arguments: [String] = [], in folder: TemporaryFolder) throws -> ChildProcess {
    try ChildProcess(ChildProcess.tool, ["serve", "--port", "0", "--no-browser"] + arguments, in: folder.path)
  }

  @Test(.enabled(if: ChildProcess.exists("curl"))) func aLinkLeadsToTheStoresAndCtrlCEnds() throws {
    let folder = try TemporaryFolder()
    let started = ContinuousClock.now
    let process = try serve(["--json"], in: folder)
    #expect(try process.waits(for: "\n"))
    let line = try #require(
      try JSONSerialization.jsonObject(with: Data(try process.output().utf8)) as? [String: Any])
    let url = try #require(line["url"] as? String)
    #expect(line["home"] as? String == folder.path.string)
    let jar = folder.appending("jar").string
    let page = try ChildProcess.run("curl", ["-sL", "-c", jar, "-b", jar, "--max-time", "10", url])
    #expect(page.output.contains("<h1>Stores</h1>"))
    #expect(started.duration(to: .now) < .seconds(60))
    let again = try ChildProcess.run("curl", ["-s", "--max-time", "10", url])
    #expect(again.output.contains("403"))
    let other = try ChildProcess.run("curl", ["-s", "--max-time", "10", "-H", "Host: evil.example", url])
    #expect(other.output.contains("421"))
    process.interrupt()
    let result = try process.finish()
    #expect(result.status == 0)
    #expect(result.errors.isEmpty)
  }

  @Test(.enabled(if: ChildProcess.exists("curl"))) func aLinkThatGoesIntoAFileIsNotPrinted() throws {
    let folder = try TemporaryFolder()
    let process = try serve(["--link-file", "link"], in: folder)
    #expect(try process.waits(for: "Ctrl-C"))
    #expect(!(try process.output()).contains("/open/"))
    let path = folder.appending("link")
    let link = String(decoding: try FileSystem().contents(of: path, limit: 1 << 10), as: UTF8.self)
    #expect(try FileSystem().status(of: path)?.permissions == .ownerReadWrite)
    let jar = folder.appending("jar").string
    let url = try #require(link.split(separator: "\n").first.map(String.init))
    let page = try ChildProcess.run("curl", ["-sL", "-c", jar, "-b", jar, "--max-time", "10", url])
    #expect(page.output.contains("<h1>Stores</h1>"))
    process.interrupt()
    #expect(try process.finish().status == 0)
  }

  @Test func aLinkFileThatCannotBeWrittenEndsIt() throws {
    let folder = try TemporaryFolder()
    let result = try ChildProcess.run(
      ChildProcess.tool, ["serve", "--port", "0", "--no-browser", "--link-file", "gone/link"], in: folder.path)
    #expect(result.status != 0 && !result.errors.isEmpty)
  }

  @Test func beyondThisMachineItWantsTLSOrToBeTold() throws {
    let folder = try TemporaryFolder()
    let open = try ChildProcess.run(ChildProcess.tool, ["serve", "--listen", "0.0.0.0"], in: folder.path)
    #expect(open.status == 64)
    #expect(open.errors.contains("--insecure"))
    let half = try ChildProcess.run(ChildProcess.tool, ["serve", "--tls-cert", "cert.pem"], in: folder.path)
    #expect(half.status == 64)
    let wrong = try ChildProcess.run(
      ChildProcess.tool, ["serve", "--listen", "nowhere", "--insecure", "--json"], in: folder.path)
    #expect(wrong.status == 1)
    #expect(wrong.errors.contains("address-invalid"))
  }

  @Test func aPortThatIsTakenIsTold() throws {
    let folder = try TemporaryFolder()
    let first = try serve(["--json"], in: folder)
    #expect(try first.waits(for: "\n"))
    let line = try #require(try JSONSerialization.jsonObject(with: Data(try first.output().utf8)) as? [String: Any])
    let port = try #require(line["port"] as? Int)
    let second = try ChildProcess.run(
      ChildProcess.tool, ["serve", "--port", String(port), "--no-browser", "--json"], in: folder.path)
    #expect(second.status == 1)
    #expect(second.errors.contains("server-not-started"))
    first.interrupt()
    _ = try first.finish()
  }
}
