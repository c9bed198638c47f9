internal import Platform
internal import SupportBundle
internal import SystemPackage

/// Reads bytes as archives and bags.
enum ArchiveReading {
  /// What a reader met, so that two ways of reading can be compared.
  private struct Account: Equatable {
    var entries: [String] = []
    var content: [UInt8] = []
    var failure: String?
  }

  // MARK: Archives

  static func run(tar bytes: [UInt8]) throws(FuzzFailure) {
    let whole = try account(of: bytes, pieces: bytes.count)
    for length in [1, 511, 700] where bytes.count / length < 20_000 {
      let pieces = try account(of: bytes, pieces: length)
      try expect(whole == pieces, "an archive is another one in pieces of \(length) bytes")
    }
  }

  private static func account(of bytes: [UInt8], pieces length: Int) throws(FuzzFailure) -> Account {
    var account = Account()
    var tar = TarReader(limits: UnpackingLimits(bytes: 1 << 20, entries: 200))
    var open: Int64?
    var contradiction: String?
    do {
      for start in stride(from: 0, to: bytes.count, by: max(1, length)) {
        try tar.read(bytes[start..<min(bytes.count, start + length)]) { event in
          switch event {
          case .entry(let entry):
            if let open, open > 0 { contradiction = "a file ends before its last byte" }
            for part in entry.components where part.isEmpty || part == "." || part == ".." || part.utf8.contains(0x2f) {
              contradiction = "a name leads elsewhere"
            }
            if entry.components.isEmpty { contradiction = "an entry has no name" }
            open = entry.isFolder ? nil : entry.size
            account.entries.append("\(entry.name) \(entry.size) \(entry.isFolder)")
          case .content(let content):
            guard let left = open else {
              contradiction = "content belongs to no file"
              return
            }
            open = left - Int64(content.count)
            if left < Int64(content.count) { contradiction = "a file has more bytes than it says" }
            account.content += content
          case .end:
            if open != 0 { contradiction = "a file ends before its last byte" }
            open = nil
          }
        }
      }
      try tar.finish()
    } catch let error as FileError {
      account.failure = error.code
    } catch {
      throw FuzzFailure("an error of another module: \(error)")
    }
    if let contradiction { throw FuzzFailure(contradiction) }
    return account
  }

  // MARK: Bags

  /// Reads an archive as a bundle: as it is, and with the lists of sums put right.
  static func run(bag bytes: [UInt8]) throws(FuzzFailure) {
    _ = try unpack(bytes)
    if let repaired = repaired(bytes) { _ = try unpack(repaired) }
  }

  /// Packs an archive and unpacks it as a bundle.
  ///
  /// - Returns: whether it was taken.
  @discardableResult
  private static func unpack(_ tar: [UInt8]) throws(FuzzFailure) -> Bool {
    let folder = try FuzzFolder()
    let packed: [UInt8]
    do throws(FileError) {
      var writer = try GzipWriter(level: 1)
      let body = try writer.write(tar)
      packed = body + (try writer.finish())
    } catch {
      throw FuzzFailure("it cannot be packed: \(error.detail)")
    }
    let path = try folder.write(packed, to: "bundle")
    // Whether it is refused does not matter here.
    _ = try? BundleLook(at: path, in: FileSystem())
    let target = folder.path.appending("out")
    let received: ReceivedBundle
    do throws(SupportBundleError) {
      received = try BundleReader(limits: UnpackingLimits(bytes: 1 << 20, entries: 200)).unpack(path, into: target)
    } catch {
      let left = try folder.content()
      try expect(left.keys.sorted() == ["bundle"], "a bundle that is refused leaves something")
      return false
    }
    let left = try folder.content()
    try expect(left.keys.sorted() == ["bundle", "out"], "a bundle writes outside of its folder")
    do {
      let system = FileSystem()
      let found = try system.descendants(of: target)
      for file in found.files {
        try expect(file.status.kind == .regular, "a bundle makes a link")
        try expect(file.status.permissions == .ownerReadWrite, "a bundle says who may read it")
      }
      for file in received.files {
        let path = target.appending("data").pushing(FilePath(file.name))
        let status = try system.status(of: path, followingLinks: false)
        try expect(status?.size == file.bytes, "a file of the bundle is missing")
      }
    } catch let failure as FuzzFailure {
      throw failure
    } catch {
      throw FuzzFailure("\(error)")
    }
    return true
  }

  /// The same files with lists that have their sums, which a fuzzer cannot guess; nil where it is no archive.
  private static func repaired(_ bytes: [UInt8]) -> [UInt8]? {
    var files: [(name: String, bytes: [UInt8])] = []
    do {
      var tar = TarReader(limits: UnpackingLimits(bytes: 1 << 20, entries: 200))
      try tar.read(bytes[...]) { event in
        switch event {
        case .entry(let entry): if !entry.isFolder { files.append((entry.name, [])) }
        case .content(let content): files[files.count - 1].bytes += content
        case .end: break
        }
      }
    } catch {
      // What was read so far is a bag of its own.
    }
    guard let root = files.first?.name.split(separator: "/").first.map(String.init) else { return nil }
    func list(_ suffix: (String) -> Bool) -> [UInt8] {
      var text = ""
      for file in files where suffix(file.name) {
        text += "\(FileDigest(of: file.bytes).hexadecimal)  \(file.name.dropFirst(root.count + 1))\n"
      }
      return Array(text.utf8)
    }
    files.removeAll { $0.name.hasSuffix("manifest-sha256.txt") }
    files.append((root + "/manifest-sha256.txt", list { $0.hasPrefix(root + "/data/") }))
    files.append((root + "/tagmanifest-sha256.txt", list { !$0.hasPrefix(root + "/data/") }))
    do throws(FileError) {
      var writer = TarWriter(secondsSince1970: 0)
      var tar: [UInt8] = []
      for file in files {
        tar += try writer.begin(file.name, size: Int64(file.bytes.count))
        tar += try writer.write(file.bytes)
      }
      return tar + (try writer.finish())
    } catch {
      return nil
    }
  }

  // MARK: Seeds

  /// The archives of bundles that our own writer made.
  static func seeds() throws -> [FuzzSeed] {
    var seeds: [FuzzSeed] = []
    let long = String(repeating: "folder/", count: 8) + String(repeating: "long", count: 40)
    for (name, items) in [
      ("facts", [("facts.json", Array("{\"level\": \"facts\"}".utf8))]),
      ("store", [("facts.json", Array("{}".utf8)), ("store/App.sqlite", Array(repeating: 7, count: 700))]),
      ("names", [("e\u{301} name", [1]), ("a%b", [2]), (long, [3]), ("empty", [])]),
    ] {
      let folder = try FuzzFolder()
      let summary = try BundleWriter().write(
        items.map { BundleItem($0.0, .bytes($0.1), words: "") }, level: .scrubbed,
        subject: .init(app: "com.example.Garage", store: "App", date: Timestamp(secondsSince1970: 1)),
        to: folder.path.appending("bundle"))
      guard let path = summary.path.path else { continue }
      var gzip = try GzipReader()
      var tar: [UInt8] = []
      try gzip.read(try FileSystem().contents(of: path, limit: 1 << 20)) { tar += $0 }
      seeds.append(FuzzSeed(name, tar))
    }
    return seeds
  }
}
