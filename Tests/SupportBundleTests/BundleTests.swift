import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

private let subject = BundleWriter.Subject(
  app: "com.example.Garage", store: "App", date: Timestamp(secondsSince1970: 1_795_255_872))

struct BundleTests {
  private func items(_ folder: TemporaryFolder) throws -> [BundleItem] {
    let large = try folder.write((0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) }, to: "large")
    return [
      BundleItem("report.json", .bytes(Array("{}".utf8)), words: "the report"),
      BundleItem("empty.txt", .bytes([]), words: "nothing"),
      BundleItem("store/App.sqlite", .file(large, size: 300_000), words: "the store"),
      BundleItem("odd %name\n", .bytes([1]), words: "a name that the list has to encode"),
    ]
  }

  @Test(arguments: [false, true])
  func itIsWrittenAndRead(isEncrypted: Bool) throws {
    let folder = try TemporaryFolder()
    let identity = AgeIdentity()
    let writer = BundleWriter(to: isEncrypted ? [identity.recipient] : [])
    let items = Array(try items(folder).dropLast())
    let bundle = try writer.write(items, level: .scrubbed, subject: subject, into: folder.path)
    let path = try #require(bundle.path.path)
    let name = try #require(path.lastComponent?.string)
    #expect(name.hasPrefix("com.example.Garage-App-2026-11-21-10-11-12-"))
    #expect(name.hasSuffix(isEncrypted ? ".lazaret.tar.gz.age" : ".lazaret.tar.gz"))
    let status = try #require(try FileSystem().status(of: path))
    #expect(status.size == bundle.bytes)
    #expect(status.permissions == .ownerReadWrite)
    let digest = try FileDigest(of: try FileSystem().open(path))
    #expect(digest.hexadecimal == bundle.sha256)

    let target = folder.appending("out")
    let reader = BundleReader(identities: [identity])
    let received = try reader.unpack(path, into: target)
    #expect(received.level == .scrubbed)
    #expect(received.isEncrypted == isEncrypted)
    #expect(received.app == "com.example.Garage")
    #expect(received.sha256 == bundle.sha256)
    #expect(received.files.map(\.name) == ["empty.txt", "report.json", "store/App.sqlite"])
    let store = try FileSystem().contents(of: try #require(received.storePath), limit: 1 << 20)
    let original = try FileSystem().contents(of: folder.appending("large"), limit: 1 << 20)
    #expect(store == original)
    if isEncrypted {
      let other = folder.appending("other")
      let needed = #expect(throws: SupportBundleError.self) {
        try BundleReader().unpack(path, into: other)
      }
      #expect(needed?.code == "bundle-key-needed")
      let wrong = #expect(throws: SupportBundleError.self) {
        try BundleReader(identities: [AgeIdentity()]).unpack(path, into: other)
      }
      #expect(wrong?.code == "age-no-identity")
      #expect(try FileSystem().status(of: other) == nil)
    }
  }

  @Test func equalContentGivesEqualBundles() throws {
    let folder = try TemporaryFolder()
    let items = Array(try items(folder).dropLast())
    let first = try BundleWriter().write(items, level: .facts, subject: subject, to: folder.appending("a"))
    let second = try BundleWriter().write(items, level: .facts, subject: subject, to: folder.appending("b"))
    #expect(first.sha256 == second.sha256)
    let again = #expect(throws: SupportBundleError.self) {
      try BundleWriter().write(items, level: .facts, subject: subject, to: folder.appending("b"))
    }
    #expect(again?.code == "file-exists")
  }

  /// What others have to check it with: `tar`, and `sha256sum` of coreutils.
  @Test(.enabled(if: ChildProcess.exists("sha256sum"), "sha256sum is not installed"))
  func otherProgramsProveIt() throws {
    let folder = try TemporaryFolder()
    let items = Array(try items(folder).dropLast())
    let bundle = try BundleWriter().write(items, level: .facts, subject: subject, into: folder.path)
    let path = try #require(bundle.path.path)
    let name = try #require(path.lastComponent?.string)
    let run = try ChildProcess.run(
      "sh",
      [
        "-c",
        "tar -xzf \"$1\" && cd com.example* && sha256sum --quiet --strict -c manifest-sha256.txt tagmanifest-sha256.txt",
        "sh", name,
      ], in: folder.path)
    #expect(run.status == 0 && run.output.isEmpty && run.errors.isEmpty, "\(run.output)\(run.errors)")
  }

  @Test(arguments: [Trouble.Kind.failure(.noSpace), .failure(.ioError), .death])
  func noHalfBundleHasItsName(_ kind: Trouble.Kind) throws {
    let folder = try TemporaryFolder()
    let items = Array(try items(folder).dropLast())
    let path = folder.appending("bundle")
    for step in 1..<100 {
      let trouble = Trouble(kind, atStep: step)
      let writer = BundleWriter(surroundings: Surroundings.still(fileSystem: trouble.fileSystem))
      do throws(SupportBundleError) {
        _ = try writer.write(items, level: .facts, subject: subject, to: path)
        #expect(trouble.steps < step)
        #expect(step > 5)
        break
      } catch {
        #expect(error.isEnvironmental, "step \(step): \(error)")
        if try FileSystem().status(of: path) != nil {
          let target = folder.appending("out")
          let received = try BundleReader().unpack(path, into: target)
          #expect(received.files.count == items.count)
          try FileSystem().removeTree(target)
        }
        try FileSystem().unlink(path)
      }
    }
  }
}
