import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// `lazaret serve --inbox` as a process of its own, which is killed now and then.
@Suite("The inbox on the command line", .enabled(if: ChildProcess.exists("curl") && ChildProcess.exists("tar")))
struct InboxCommandTests {
  /// A home, a sender, and a server that can be begun again.
  private final class Site {
    let folder: TemporaryFolder
    let token: String
    private(set) var process: ChildProcess?
    private(set) var origin = ""

    init() throws {
      folder = try TemporaryFolder()
      let made = try ChildProcess.run(
        ChildProcess.tool, ["inbox", "token", "new", "Sender", "--json"], in: folder.path)
      let json = try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any]
      token = try #require(json?["token"] as? String)
    }

    func start(_ more: [String] = [], environment: [String: String] = [:]) throws {
      let arguments = ["serve", "--inbox", "--port", "0", "--no-browser", "--json"] + more
      let program = environment.isEmpty ? ChildProcess.tool : "env"
      let process = try ChildProcess(
        program,
        environment.isEmpty
          ? arguments : environment.map { "\($0.key)=\($0.value)" } + [ChildProcess.tool] + arguments,
        in: folder.path)
      #expect(try process.waits(for: "\n"))
      let line = try JSONSerialization.jsonObject(with: Data(try process.output().utf8)) as? [String: Any]
      origin = "http://127.0.0.1:\(try #require(line?["port"] as? Int))"
      self.process = process
    }

    func kill() throws {
      process?.kill()
      _ = try process?.finish()
    }

    func stop() throws {
      process?.interrupt()
      let result = try #require(try process?.finish())
      #expect(result.status == 0)
      #expect(result.errors.isEmpty, "\(result.errors)")
    }

    /// The status and the fields of an answer, and its body.
    func ask(_ method: String, _ address: String, _ fields: [String: String] = [:], file: FilePath? = nil) throws
      -> String
    {
      var arguments = ["-sS", "-i", "--max-time", "20", "-X", method]
      if method == "HEAD" { arguments = ["-sS", "-I", "--max-time", "20"] }
      let all = ["Authorization": "Bearer \(token)", "Tus-Resumable": "1.0.0", "Expect": ""].merging(fields) { $1 }
      for (name, value) in all { arguments += ["-H", "\(name): \(value)"] }
      if let file { arguments += ["--data-binary", "@\(file.string)"] }
      return try ChildProcess.run("curl", arguments + [origin + address]).output
    }

    func create(_ length: Int) throws -> String {
      let answer = try ask("POST", "/inbox/uploads", ["Upload-Length": "\(length)", "Content-Length": "0"])
      return try #require(field("Location", answer), "\(answer)")
    }

    func field(_ name: String, _ answer: String) -> String? {
      answer.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
        .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
    }

    /// What became of everything, by the states of bundles, as soon as nothing waits; as the records have it.
    func settled() throws -> [String: Int] {
      var states: [String: Int] = [:]
      for _ in 0..<6000 {
        let bundles = try FileSystem().entries(of: folder.appending("Inbox/Bundles"))
        states = [:]
        for bundle in bundles {
          let path = folder.appending("Inbox/Bundles").appending(bundle)
          let isSalvaged =
            try FileSystem().status(of: path.appending("Incompatible")) != nil
            && FileSystem().entries(of: path.appending("Incompatible")).contains {
              // A second attempt, after a kill, may have a number.
              $0.string.contains(".salvage") && $0.string.hasSuffix(".json")
            }
          states[isSalvaged ? "salvaged" : "not", default: 0] += 1
        }
        if states["not"] == nil { return states }
        Thread.sleep(forTimeInterval: 0.1)
      }
      return states
    }
  }

  /// A bundle with a store, packed by tar.
  private static func bundle(_ number: Int, store: FilePath) throws -> FilePath {
    let folder = try TemporaryFolder(in: store.removingLastComponent())
    func digest(_ name: String) throws -> String {
      try FileDigest(of: FileSystem().open(folder.appending("bag/" + name))).hexadecimal
    }
    let content = try FileSystem().contents(of: store, limit: 1 << 26)
    try folder.write(content, to: "bag/data/store/App.sqlite")
    try folder.write("number \(number)", to: "bag/data/README.txt")
    try folder.write("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n", to: "bag/bagit.txt")
    try folder.write("Lazaret-Bundle-Version: 1\nLazaret-Level: full\nLazaret-Store: App\n", to: "bag/bag-info.txt")
    let files = ["data/store/App.sqlite", "data/README.txt"]
    try folder.write(try files.map { "\(try digest($0))  \($0)\n" }.joined(), to: "bag/manifest-sha256.txt")
    let tags = ["bagit.txt", "bag-info.txt", "manifest-sha256.txt"]
    try folder.write(try tags.map { "\(try digest($0))  \($0)\n" }.joined(), to: "bag/tagmanifest-sha256.txt")
    let path = store.removingLastComponent().appending("bundle-\(number).tar.gz")
    let result = try ChildProcess.run(
      "tar",
      ["-czf", path.string] + tags.map { "bag/" + $0 } + ["bag/tagmanifest-sha256.txt"] + files.map { "bag/" + $0 },
      in: folder.path)
    #expect(result.status == 0, "\(result.errors)")
    return path
  }

  private static func store() throws -> (desk: Desk, store: FilePath) {
    let desk = try Desk()
    let sound = try desk.makeOldStore()
    let broken = desk.folder.appending("Broken.sqlite")
    let result = try desk.lazaret("damage", sound, "-o", broken.string, "--kind", "zero:20", "--seed", "7")
    #expect(result.status == 0, "\(result.errors)")
    return (desk, broken)
  }

  private static let part = ["Content-Type": "application/offset+octet-stream"]

  @Test func aKillInTheMiddleOfAnUploadLosesLittle() throws {
    let site = try Site()
    try site.start()
    let size = 40 << 20
    let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 12) }
    let file = try site.folder.write(content, to: "content")
    let upload = try site.create(size)
    // Slow enough to be killed in the middle of it.
    let sending = try ChildProcess(
      "curl",
      [
        "-sS", "--limit-rate", "20M", "-X", "PATCH", "-H", "Authorization: Bearer \(site.token)", "-H",
        "Tus-Resumable: 1.0.0", "-H", "Upload-Offset: 0", "-H", "Content-Type: application/offset+octet-stream",
        "-H", "Expect:", "--data-binary", "@\(file.string)", site.origin + upload,
      ])
    let path = site.folder.appending("Inbox/Uploads/\(upload.suffix(36))")
    for _ in 0..<1000 {
      if try (FileSystem().status(of: path)?.size ?? 0) > 24 << 20 { break }
      Thread.sleep(forTimeInterval: 0.01)
    }
    try site.kill()
    _ = try sending.finish()
    try site.start()
    let answer = try site.ask("HEAD", upload)
    let offset = try #require(site.field("Upload-Offset", answer).flatMap { Int($0) }, "\(answer)")
    #expect(offset >= 16 << 20 && offset < size, "\(offset)")
    let rest = try site.folder.write(content[offset...], to: "rest")
    let last = try site.ask("PATCH", upload, Self.part.merging(["Upload-Offset": "\(offset)"]) { $1 }, file: rest)
    #expect(last.hasPrefix("HTTP/1.1 204"), "\(last)")
    let receipt = try site.ask("GET", upload)
    #expect(receipt.contains(FileDigest(of: content).hexadecimal), "\(receipt)")
    try site.stop()
  }

  @Test func killsInTheMiddleOfWorkLoseNothing() throws {
    let (desk, store) = try Self.store()
    let site = try Site()
    try site.start(["--workers", "2"])
    let count = 8
    for number in 0..<count {
      let bundle = try Self.bundle(number, store: store)
      let size = try #require(try FileSystem().status(of: bundle)).size
      let upload = try site.create(Int(size))
      let answer = try site.ask("PATCH", upload, Self.part.merging(["Upload-Offset": "0"]) { $1 }, file: bundle)
      #expect(answer.hasPrefix("HTTP/1.1 204"), "\(answer)")
    }
    for time in [0.05, 0.15, 0.3] {
      Thread.sleep(forTimeInterval: time)
      try site.kill()
      try site.start(["--workers", "2"])
    }
    #expect(try site.settled() == ["salvaged": count])
    try site.stop()
    // The records agree with the disk.
    let list = try ChildProcess.run(ChildProcess.tool, ["quarantine", "list", "--json"], in: site.folder.path)
    #expect(list.output.components(separatedBy: "\"id\"").count - 1 >= count)
    _ = desk
  }

  @Test func workersThatNeedTooMuchAreKilledAndTheServerGoesOn() throws {
    let (desk, store) = try Self.store()
    let site = try Site()
    // With so little memory no worker even begins.
    try site.start(environment: ["LAZARET_WORKER_MEMORY": "64"])
    let bundle = try Self.bundle(1, store: store)
    let size = try #require(try FileSystem().status(of: bundle)).size
    let upload = try site.create(Int(size))
    _ = try site.ask("PATCH", upload, Self.part.merging(["Upload-Offset": "0"]) { $1 }, file: bundle)
    Thread.sleep(forTimeInterval: 2)
    #expect(try site.ask("GET", upload).contains("\"sha256\""))
    let another = try site.create(100)
    #expect(try site.ask("HEAD", another).contains("Upload-Offset: 0"))
    try site.stop()
    _ = desk
  }

  @Test func aSecondServerAndAWrongKeyAreRefused() throws {
    let site = try Site()
    try site.start()
    let second = try ChildProcess.run(
      ChildProcess.tool, ["serve", "--inbox", "--port", "0", "--no-browser", "--json"], in: site.folder.path)
    #expect(second.status == 3)
    #expect(second.errors.contains("inbox-in-use"))
    try site.stop()
    try site.folder.write("no key", to: "key")
    let wrong = try ChildProcess.run(
      ChildProcess.tool, ["serve", "--inbox", "--identity", "key", "--port", "0", "--json"], in: site.folder.path)
    #expect(wrong.status == 1)
    #expect(wrong.errors.contains("age-identity"))
    #expect(!wrong.errors.contains("no key at all"))
    let alone = try ChildProcess.run(ChildProcess.tool, ["serve", "--identity", "key"], in: site.folder.path)
    #expect(alone.status == 64)
  }

  @Test func tokensAreShownOnce() throws {
    let folder = try TemporaryFolder()
    func run(_ arguments: String...) throws -> ChildProcess.Result {
      try ChildProcess.run(ChildProcess.tool, ["inbox", "token"] + arguments, in: folder.path)
    }
    let made = try run("new", "Garage 2", "--quota", "5MB")
    #expect(made.status == 0)
    let token = try #require(
      made.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.first { $0.hasPrefix("lzi_") })
    #expect(token.count == 68)
    let list = try run("list")
    #expect(list.output.contains("Garage 2") && list.output.contains("5.0 MB") && !list.output.contains(token))
    #expect(try run("new", "Garage 2").status == 1)
    #expect(try run("new", "x", "--quota", "much").status == 64)
    #expect(try run("revoke", "Garage 2").status == 0)
    #expect(try run("revoke", "Garage 3").status == 1)
    #expect(try run("list").output.contains("revoked"))
  }
}
