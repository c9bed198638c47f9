import Foundation
import Platform

/// Bundles that were made to do harm, each with the codes by which it may be refused.
struct HostileBundles {
  typealias Files = [(name: String, bytes: [UInt8])]

  let identity = AgeIdentity()
  private let store = Array("SQLite format 3\u{0}".utf8)

  /// A bundle, what is wrong with it, and how it is refused.
  struct Case {
    var name: String
    var bytes: [UInt8]
    var codes: Set<String>
  }

  func good() -> Files {
    let manifest = "\(FileDigest(of: store).hexadecimal)  data/store/App.sqlite\n"
    let info = "Lazaret-Bundle-Version: 1\nLazaret-Level: full\nPayload-Oxum: \(store.count).1\nLazaret-Store: App\n"
    return sealed([
      ("bag-info.txt", Array(info.utf8)),
      ("bagit.txt", Array("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n".utf8)),
      ("manifest-sha256.txt", Array(manifest.utf8)), ("data/store/App.sqlite", store),
    ])
  }

  private func sealed(_ files: Files) -> Files {
    let tags = files.filter { !$0.name.hasPrefix("data/") && $0.name != "tagmanifest-sha256.txt" }
    let list = tags.map { "\(FileDigest(of: $0.bytes).hexadecimal)  \($0.name)\n" }.joined()
    return files.filter { $0.name != "tagmanifest-sha256.txt" } + [("tagmanifest-sha256.txt", Array(list.utf8))]
  }

  private func replaced(_ name: String, _ text: String) -> Files {
    sealed(good().map { $0.name == name ? (name, Array(text.utf8)) : $0 })
  }

  private func tar(_ files: Files) throws -> [UInt8] {
    var writer = TarWriter(secondsSince1970: 0)
    var bytes: [UInt8] = []
    for file in files {
      bytes += try writer.begin("bag/" + file.name, size: Int64(file.bytes.count))
      bytes += try writer.write(file.bytes)
    }
    return bytes + (try writer.finish())
  }

  func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
    var writer = try GzipWriter(level: 6)
    return try writer.write(bytes) + writer.finish()
  }

  func packed(_ files: Files) throws -> [UInt8] { try gzip(try tar(files)) }

  /// The first header's fields changed, its sum right again.
  private func altered(_ archive: [UInt8], at offset: Int, to bytes: [UInt8]) -> [UInt8] {
    var archive = archive
    archive.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
    archive.replaceSubrange(148..<156, with: [UInt8](repeating: 32, count: 8))
    let digits = String(archive[..<512].reduce(0) { $0 + Int($1) }, radix: 8)
    let text = String(repeating: "0", count: 6 - digits.count) + digits
    archive.replaceSubrange(148..<156, with: Array(text.utf8) + [0, 32])
    return archive
  }

  func all() throws -> [Case] {
    var cases: [Case] = []
    func add(_ name: String, _ bytes: [UInt8], _ codes: String...) {
      cases.append(Case(name: name, bytes: bytes, codes: Set(codes)))
    }
    let archive = try tar(good())
    for name in [
      "../evil", "bag/../../evil", "/etc/evil", "bag//evil", "bag/./evil", "bag\\..\\evil", "C:evil", "bag/..",
      "bag/\u{7}x", "bag/x\u{202e}gpj", "bag/con.", "bag/ ", "other/evil", "evil",
    ] {
      let padded = Array(name.utf8) + [UInt8](repeating: 0, count: 100 - name.utf8.count)
      add("name \(name)", try gzip(altered(archive, at: 0, to: padded)), "archive-name")
    }
    for type in ["1", "2", "3", "4", "5", "6", "7", "S", "L", "g", "D"] {
      add(
        "type \(type)", try gzip(altered(archive, at: 156, to: Array(type.utf8))),
        type == "5" ? "tar-damaged" : "archive-not-a-file")
    }
    for name in ["data/store/App.sqlite", "data/store/APP.sqlite", "DATA/store/App.sqlite"] {
      add("doubled \(name)", try packed(good() + [(name, [1])]), "archive-name-doubled")
    }
    let sum = FileDigest(of: store).hexadecimal
    let zeros = String(repeating: "0", count: 64)
    let lies: [(String, Files)] = [
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
      ("other size", replaced("bag-info.txt", "Lazaret-Bundle-Version: 1\nLazaret-Level: full\nPayload-Oxum: 9.1\n")),
      ("unlisted", good() + [("data/extra", [1])]), ("unlisted tag", good() + [("notes.txt", [1])]),
      ("altered tag", good().map { $0.name == "bag-info.txt" ? ($0.name, $0.bytes + Array("X: y\n".utf8)) : $0 }),
    ]
    for (name, files) in lies { add(name, try packed(files), "bundle-damaged") }
    for name in ["bagit.txt", "bag-info.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt"] {
      add("without \(name)", try packed(good().filter { $0.name != name }), "bundle-damaged")
    }
    add("bomb of zeros", try packed([("data/zeros", [UInt8](repeating: 0, count: 4 << 20))]), "archive-too-large")
    add("bomb of files", try packed((0..<60).map { ("data/\($0)", []) }), "archive-too-large")
    add(
      "lie about a size", try gzip(altered(archive, at: 124, to: Array("77777777777".utf8))), "archive-too-large")
    add("packed twice", try gzip(try gzip(archive)), "tar-damaged", "archive-cut-off")
    let bundle = try gzip(archive)
    for count in [1, 2, 9, 10, 40, bundle.count / 2, bundle.count - 9, bundle.count - 1] {
      add(
        "cut off at \(count)", Array(bundle.prefix(count)), "archive-cut-off", "gzip-damaged", "bundle-unreadable",
        "gzip-cut-off", "tar-damaged")
    }
    add("more behind", bundle + [1, 2, 3], "gzip-damaged")
    var flipped = bundle
    flipped[flipped.count - 6] ^= 4
    add("flipped bit", flipped, "gzip-damaged")
    add("another archive", Array("PK\u{3}\u{4}".utf8), "bundle-unreadable")
    var sealer = try AgeSealer(to: [identity.recipient])
    let encrypted = try sealer.seal(bundle) + sealer.finish()
    for count in [60, 150, 200, 230, encrypted.count - 1] {
      add(
        "encrypted, cut off at \(count)", Array(encrypted.prefix(count)), "age-header", "age-cut-off", "age-payload",
        "age-damaged", "age-header-damaged", "age-payload-damaged", "archive-cut-off", "gzip-damaged")
    }
    let stanzas = "age-encryption.org/v1\n" + String(repeating: "-> X25519 AAAA\n\n", count: 20_000)
    add("thousands of stanzas", Array(stanzas.utf8), "age-header-too-large")
    var other = try AgeSealer(to: [identity.recipient])
    add("encrypted, no bag", try other.seal(Array("hello".utf8)) + other.finish(), "gzip-damaged")
    var strange = try AgeSealer(to: [AgeIdentity().recipient])
    add(
      "for another recipient", try strange.seal(bundle) + strange.finish(), "age-no-key", "age-not-for-us",
      "age-no-identity")
    return cases
  }
}
