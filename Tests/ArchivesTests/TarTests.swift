import Platform
import SystemPackage
import TestSupport
import Testing

/// What an archive holds, read in pieces of a size.
func unpacked(_ bytes: [UInt8], piece: Int = 777, limits: UnpackingLimits = UnpackingLimits()) throws -> [String:
  [UInt8]?]
{
  var reader = TarReader(limits: limits)
  var files: [String: [UInt8]?] = [:]
  var (current, ended): (TarEntry?, Bool) = (nil, true)
  for start in stride(from: 0, to: bytes.count, by: piece) {
    try reader.read(bytes[start..<min(start + piece, bytes.count)]) { event in
      switch event {
      case .entry(let entry):
        #expect(ended)
        current = entry
        ended = entry.isFolder
        files[entry.name] = entry.isFolder ? .some(nil) : []
      case .content(let part):
        guard let name = current?.name, let content = files[name], let content else {
          Issue.record("content without a file")
          return
        }
        files[name] = content + part
      case .end: ended = true
      }
    }
  }
  try reader.finish()
  return files
}

private func packed(_ files: [(String, [UInt8])]) throws -> [UInt8] {
  var writer = TarWriter(secondsSince1970: 1_795_000_000)
  var bytes: [UInt8] = []
  for (name, content) in files {
    bytes += try writer.begin(name, size: Int64(content.count))
    for start in stride(from: 0, to: content.count, by: 1000) {
      bytes += try writer.write(Array(content[start..<min(start + 1000, content.count)]))
    }
  }
  return bytes + (try writer.finish())
}

/// Fields of a header changed, and its sum made right again.
private func altered(_ archive: [UInt8], at offset: Int, to bytes: some Collection<UInt8>) -> [UInt8] {
  var archive = archive
  archive.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
  archive.replaceSubrange(148..<156, with: [UInt8](repeating: 32, count: 8))
  let sum = archive[..<512].reduce(0) { $0 + Int($1) }
  let digits = String(sum, radix: 8)
  let text = String(repeating: "0", count: 6 - digits.count) + digits
  archive.replaceSubrange(148..<156, with: Array(text.utf8) + [0, 32])
  return archive
}

struct TarTests {
  private let long = (0..<12).map { "a-rather-long-folder-\($0)" }.joined(separator: "/") + "/größe.txt"

  @Test(arguments: [1, 511, 512, 777, 1_000_000])
  func filesComeBack(_ piece: Int) throws {
    let files: [(String, [UInt8])] = [
      ("bagit.txt", Array("hello".utf8)), ("data/empty", []), ("data/block", [UInt8](repeating: 7, count: 512)),
      (String(repeating: "f", count: 120) + "/" + String(repeating: "g", count: 90), [1]),
      (long, [UInt8](repeating: 9, count: 3333)),
    ]
    let read = try unpacked(try packed(files), piece: piece)
    #expect(read.count == files.count)
    for (name, content) in files { #expect(read[name] == .some(content)) }
  }

  @Test func theProgramTarReadsIt() throws {
    let folder = try TemporaryFolder()
    let content = (0..<5000).map { UInt8(truncatingIfNeeded: $0) }
    try folder.write(try packed([("bag/data/a", content), ("bag/\(long)", [1, 2])]), to: "a.tar")
    let run = try ChildProcess.run("tar", ["-xf", "a.tar"], in: folder.path)
    #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
    let first = try FileSystem().contents(of: folder.appending("bag/data/a"), limit: 10_000)
    #expect(first == content)
    let second = try FileSystem().contents(of: folder.path.appending("bag").pushing(FilePath(long)), limit: 10)
    #expect(second == [1, 2])
  }

  @Test(arguments: ["posix", "ustar"])
  func whatTheProgramTarWroteIsRead(_ format: String) throws {
    let folder = try TemporaryFolder()
    try FileSystem().makeDirectory(folder.appending("bag/data"))
    try folder.write("one", to: "bag/data/one")
    try folder.write("", to: "bag/\(String(repeating: "n", count: 99))")
    let run = try ChildProcess.run("tar", ["--format", format, "-cf", "a.tar", "bag"], in: folder.path)
    #expect(run.status == 0, "\(run.errors)")
    let files = try unpacked(try FileSystem().contents(of: folder.appending("a.tar"), limit: 1 << 20))
    #expect(files["bag/data/one"] == .some(Array("one".utf8)))
    #expect(files.keys.sorted().first == "bag")
    #expect(files.count == 4)
  }

  @Test(arguments: [
    "../up", "a/../../b", "/absolute", "a//b", "a/./b", "", ".", "a\\b", "C:/x", "a\u{0}b/../c", "a/\u{7}", "a/b.",
    "a/\u{202e}txt", "con\u{301}/..",
  ])
  func namesThatLeadElsewhereAreRefused(_ name: String) throws {
    let archive = try packed([("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", [1])])
    let field = Array(name.utf8) + [UInt8](repeating: 0, count: 100 - name.utf8.count)
    // A NUL ends the name in a header; what is before it is a name like any other.
    if name.contains("\u{0}") {
      let read = try unpacked(altered(archive, at: 0, to: field))
      #expect(read.keys.sorted() == ["a"])
      return
    }
    let error = #expect(throws: FileError.self) { try unpacked(altered(archive, at: 0, to: field)) }
    #expect(error?.kind == .archiveName)
  }

  @Test(arguments: ["1", "2", "3", "4", "6", "7", "L", "K", "S", "g", "V", "?"])
  func whatIsNoFileIsRefused(_ type: String) throws {
    let archive = altered(try packed([("name", [])]), at: 156, to: Array(type.utf8))
    let error = #expect(throws: FileError.self) { try unpacked(archive) }
    #expect(error?.kind == .archiveNotAFile)
  }

  @Test func doubledNamesAreRefused() throws {
    for second in ["data/a", "data/A"] {
      let error = #expect(throws: FileError.self) { try unpacked(try packed([("data/a", [1]), (second, [2])])) }
      #expect(error?.kind == .archiveNameDoubled)
    }
    let error = #expect(throws: FileError.self) {
      try unpacked(try packed([("e\u{301}", [1]), ("\u{e9}", [2])]))
    }
    #expect(error?.kind == .archiveNameDoubled)
  }

  @Test func tooMuchIsRefused() throws {
    let archive = try packed([("a", [UInt8](repeating: 0, count: 2000)), ("b", [1])])
    #expect(throws: FileError.self) { try unpacked(archive, limits: UnpackingLimits(bytes: 2000)) }
    #expect(throws: FileError.self) { try unpacked(archive, limits: UnpackingLimits(entries: 1)) }
    let size = altered(archive, at: 124, to: Array("77777777777".utf8))
    let error = #expect(throws: FileError.self) { try unpacked(size, limits: UnpackingLimits(bytes: 1 << 30)) }
    #expect(error?.kind == .archiveTooLarge)
    // GNU's binary sizes.
    let binary = altered(archive, at: 124, to: [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    #expect(throws: FileError.self) { try unpacked(binary) }
  }

  @Test func everyCutIsSeen() throws {
    let archive = try packed([("a", [1, 2, 3]), ("b/c", [UInt8](repeating: 0, count: 700))])
    for count in 0..<archive.count {
      #expect(throws: FileError.self, "cut at \(count)") { try unpacked(Array(archive.prefix(count))) }
    }
    #expect(throws: FileError.self) { try unpacked(archive + [1]) }
    let padded = try unpacked(archive + [UInt8](repeating: 0, count: 8704))
    #expect(padded.count == 2)
  }

  @Test func mutatedArchivesNeverCrash() throws {
    let archive = try packed([("a", [1, 2, 3]), (long, [UInt8](repeating: 0, count: 700))])
    var mutation = Mutation(seed: 11)
    for _ in 0..<mutationCount(usually: 2000) {
      do {
        let files = try unpacked(mutation.apply(to: archive))
        for name in files.keys { #expect(!name.hasPrefix("/") && !name.split(separator: "/").contains("..")) }
      } catch is FileError {}
    }
  }
}
