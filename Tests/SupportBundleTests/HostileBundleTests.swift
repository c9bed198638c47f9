import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Bundles that were made to do harm: refused by name, and nothing is written outside of the folder.
struct HostileBundleTests {
  private typealias Files = [(name: String, bytes: [UInt8])]

  private let store = Array("SQLite format 3\u{0}".utf8)

  private func good() -> Files {
    let manifest = "\(FileDigest(of: store).hexadecimal)  data/store/App.sqlite\n"
    let info = "Lazaret-Bundle-Version: 1\nLazaret-Level: full\nPayload-Oxum: \(store.count).1\nLazaret-Store: App\n"
    return sealed([
      ("bag-info.txt", Array(info.utf8)),
      ("bagit.txt", Array("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n".utf8)),
      ("manifest-sha256.txt", Array(manifest.utf8)), ("data/store/App.sqlite", store),
    ])
  }

  /// With the sums of the tag files.
  private func sealed(_ files: Files) -> Files {
    let tags = files.filter { !$0.name.hasPrefix("data/") && $0.name != "tagmanifest-sha256.txt" }
    let list = tags.map { "\(FileDigest(of: $0.bytes).hexadecimal)  \($0.name)\n" }.joined()
    return files.filter { $0.name != "tagmanifest-sha256.txt" } + [("tagmanifest-sha256.txt", Array(list.utf8))]
  }

  private func replaced(_ name: String, _ text: String) -> Files {
    sealed(good().map { $0.name == name ? (name, Array(text.utf8)) : $0 })
  }

  private func tar(_ files: Files, root: String = "bag/") throws -> [UInt8] {
    var writer = TarWriter(secondsSince1970: 0)
    var bytes: [UInt8] = []
    for file in files {
      bytes += try writer.begin(root + file.name, size: Int64(file.bytes.count))
      bytes += try writer.write(file.bytes)
    }
    return bytes + (try writer.finish())
  }

  private func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
    var writer = try GzipWriter(level: 6)
    return try writer.write(bytes) + writer.finish()
  }

  /// The code with which a bundle is refused; nil where it is taken.
  ///
  /// Nothing may be left or be written elsewhere.
  private func code(
    _ bytes: [UInt8], identities: [AgeIdentity] = [], limits: UnpackingLimits = UnpackingLimits(bytes: 64 << 20)
  ) throws -> String? {
    let folder = try TemporaryFolder()
    let bundle = try folder.write(bytes, to: "bundle")
    let target = folder.appending("inbox")
    do throws(SupportBundleError) {
      let received = try BundleReader(identities: identities, limits: limits).unpack(bundle, into: target)
      #expect(received.level == .full)
    } catch {
      let names = try FileSystem().entries(of: folder.path).map(\.string)
      #expect(names == ["bundle"], "something is left: \(names)")
      return error.code
    }
    try FileSystem().removeTree(target)
    return nil
  }

  /// A header's fields changed, its sum right again.
  private func altered(_ archive: [UInt8], file index: Int = 0, at offset: Int, to bytes: [UInt8]) -> [UInt8] {
    var archive = archive
    let start = index * 1024
    archive.replaceSubrange((start + offset)..<(start + offset + bytes.count), with: bytes)
    archive.replaceSubrange((start + 148)..<(start + 156), with: [UInt8](repeating: 32, count: 8))
    let sum = archive[start..<(start + 512)].reduce(0) { $0 + Int($1) }
    let digits = String(sum, radix: 8)
    let text = String(repeating: "0", count: 6 - digits.count) + digits
    archive.replaceSubrange((start + 148)..<(start + 156), with: Array(text.utf8) + [0, 32])
    return archive
  }

  private func padded(_ name: String) -> [UInt8] {
    Array(name.utf8) + [UInt8](repeating: 0, count: 100 - name.utf8.count)
  }

  @Test func aGoodOneIsTaken() throws {
    let plain = try code(try gzip(try tar(good())))
    #expect(plain == nil)
    let identity = AgeIdentity()
    var sealer = try AgeSealer(to: [identity.recipient])
    let sealed = try sealer.seal(try gzip(try tar(good()))) + sealer.finish()
    let encrypted = try code(sealed, identities: [identity])
    #expect(encrypted == nil)
  }

  @Test(arguments: [
    "../evil", "bag/../../evil", "/etc/evil", "bag//evil", "bag/./evil", "bag\\..\\evil", "C:evil", "bag/..",
    "bag/\u{7}x",
    "bag/x\u{202e}gpj", "bag/con.", "bag/ ", "other/evil", "evil",
  ])
  func namesThatLeadElsewhere(_ name: String) throws {
    let archive = altered(try tar(good()), at: 0, to: padded(name))
    let refusal = try code(try gzip(archive))
    #expect(refusal == "archive-name")
  }

  @Test(arguments: ["1", "2", "3", "4", "5", "6", "7", "S", "L", "g", "D"])
  func whatIsNoFile(_ type: String) throws {
    let archive = altered(try tar(good()), at: 156, to: Array(type.utf8))
    let refusal = try code(try gzip(archive))
    // A folder with content is no tar archive; everything else is no file.
    #expect(refusal == (type == "5" ? "tar-damaged" : "archive-not-a-file"))
  }

  @Test func doubledNames() throws {
    for name in ["data/store/App.sqlite", "data/store/APP.sqlite", "DATA/store/App.sqlite"] {
      let refusal = try code(try gzip(try tar(good() + [(name, [1])])))
      #expect(refusal == "archive-name-doubled")
    }
  }

  @Test func listsThatLie() throws {
    let sum = FileDigest(of: store).hexadecimal
    let zeros = String(repeating: "0", count: 64)
    let cases: [(String, Files)] = [
      ("wrong sum", replaced("manifest-sha256.txt", "\(zeros)  data/store/App.sqlite\n")),
      ("empty list", replaced("manifest-sha256.txt", "")),
      ("missing file", replaced("manifest-sha256.txt", "\(sum)  data/store/App.sqlite\n\(zeros)  data/gone\n")),
      ("outside of data", replaced("manifest-sha256.txt", "\(sum)  data/store/App.sqlite\n\(zeros)  bagit.txt\n")),
      ("twice", replaced("manifest-sha256.txt", "\(sum)  data/store/App.sqlite\n\(sum)  data/store/App.sqlite\n")),
      ("no list", replaced("manifest-sha256.txt", "hello\n")),
      ("bad code", replaced("manifest-sha256.txt", "\(sum)  data/store/App%2Esqlite\n")),
      ("not UTF-8", sealed(good().map { $0.name == "manifest-sha256.txt" ? ($0.name, [0xff, 0xfe]) : $0 })),
      ("no bag", replaced("bagit.txt", "BagIt-Version: 0.97\n")),
      ("no level", replaced("bag-info.txt", "Lazaret-Bundle-Version: 1\n")),
      ("unknown level", replaced("bag-info.txt", "Lazaret-Bundle-Version: 1\nLazaret-Level: all\n")),
      ("later version", replaced("bag-info.txt", "Lazaret-Bundle-Version: 2\nLazaret-Level: full\n")),
      (
        "other size",
        replaced("bag-info.txt", "Lazaret-Bundle-Version: 1\nLazaret-Level: full\nPayload-Oxum: 999.1\n")
      ),
      ("unlisted", good() + [("data/extra", [1])]), ("unlisted tag", good() + [("notes.txt", [1])]),
      ("altered tag", good().map { $0.name == "bag-info.txt" ? ($0.name, $0.bytes + Array("X: y\n".utf8)) : $0 }),
    ]
    for (name, files) in cases {
      let refusal = try code(try gzip(try tar(files)))
      #expect(refusal == "bundle-damaged", "\(name)")
    }
    for name in ["bagit.txt", "bag-info.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt"] {
      let refusal = try code(try gzip(try tar(good().filter { $0.name != name })))
      #expect(refusal == "bundle-damaged", "without \(name)")
    }
  }

  @Test func bombs() throws {
    let large = UnpackingLimits(bytes: 1 << 20, ratio: 100, entries: 50)
    let zeros = try code(try gzip(try tar([("data/zeros", [UInt8](repeating: 0, count: 4 << 20))])), limits: large)
    #expect(zeros == "archive-too-large")
    let many = try code(try gzip(try tar((0..<60).map { ("data/\($0)", []) })), limits: large)
    #expect(many == "archive-too-large")
    let lie = try code(try gzip(altered(try tar(good()), at: 124, to: Array("77777777777".utf8))), limits: large)
    #expect(lie == "archive-too-large")
    let nested = try code(try gzip(try gzip(try tar(good()))))
    #expect(nested == "tar-damaged" || nested == "archive-cut-off")
  }

  @Test func whatIsCutOffOrDamaged() throws {
    let bundle = try gzip(try tar(good()))
    for count in [0, 1, 2, 9, 10, 40, bundle.count / 2, bundle.count - 9, bundle.count - 1] {
      let refusal = try code(Array(bundle.prefix(count)))
      #expect(refusal != nil, "cut off at \(count)")
    }
    let more = try code(bundle + [1, 2, 3])
    #expect(more == "gzip-damaged")
    var flipped = bundle
    flipped[flipped.count - 6] ^= 4
    let sum = try code(flipped)
    #expect(sum == "gzip-damaged")
    let other = try code(Array("PK\u{3}\u{4}".utf8))
    #expect(other == "bundle-unreadable")
  }

  @Test func hostileEncryption() throws {
    let identity = AgeIdentity()
    var sealer = try AgeSealer(to: [identity.recipient])
    let good = try sealer.seal(try gzip(try tar(good()))) + sealer.finish()
    for count in [21, 60, 150, 200, 230, good.count - 1] {
      let refusal = try code(Array(good.prefix(count)), identities: [identity])
      #expect(refusal != nil, "cut off at \(count)")
    }
    let stanzas = "age-encryption.org/v1\n" + String(repeating: "-> X25519 AAAA\n\n", count: 20_000)
    let refusal = try code(Array(stanzas.utf8), identities: [identity])
    #expect(refusal == "age-header-too-large")
    let keyless = try code(good)
    #expect(keyless == "bundle-key-needed")
    var wrong = try AgeSealer(to: [identity.recipient])
    let noBag = try wrong.seal(Array("hello".utf8)) + wrong.finish()
    let content = try code(noBag, identities: [identity])
    #expect(content == "gzip-damaged")
  }

  @Test func mutatedBundlesNeverCrash() throws {
    let archive = try tar(good())
    var mutation = Mutation(seed: 21)
    for _ in 0..<mutationCount(usually: 150) { _ = try code(try gzip(mutation.apply(to: archive))) }
    let bundle = try gzip(archive)
    for _ in 0..<mutationCount(usually: 150) { _ = try code(mutation.apply(to: bundle)) }
  }
}
