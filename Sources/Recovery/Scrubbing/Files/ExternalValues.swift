internal import StoreFiles
internal import SystemPackage

/// The values that a store keeps in files of their own, which become noise of the same length under the pseudonyms of their
/// names.
struct ExternalValues {
  private let source: FilePath
  private let target: FilePath
  private let fileSystem: FileSystem

  /// How many there are.
  private(set) var count = 0

  private static let pieceLength = 65536

  init(_ source: FilePath, to target: FilePath, in fileSystem: FileSystem) {
    self.source = source
    self.target = target
    self.fileSystem = fileSystem
  }

  private func files() throws(FileError) -> (folders: [[FilePath.Component]], files: [FileSystem.Descendant])? {
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return nil }
    return try fileSystem.descendants(of: source)
  }

  /// Takes note of the values.
  mutating func note(_ pseudonyms: Pseudonyms) throws(FileError) {
    for file in try files()?.files ?? [] where file.status.kind == .regular {
      count += 1
      if let name = file.relative.last.map({ Array($0.string.utf8) }) {
        pseudonyms.watch(utf8: name.span, 0..<name.count)
      }
      let source = try fileSystem.open(file.path)
      var offset: Int64 = 0
      while offset < source.count {
        let bytes = try source.bytes(at: offset, length: Self.pieceLength)
        if bytes.isEmpty { break }
        pseudonyms.note(12 + 2 * Int64(bytes.count), bytes.span, 0..<bytes.count, FieldRule())
        offset += Int64(bytes.count)
      }
    }
  }

  /// The name of a file in the result: another identifier where it is one, as references in records have it.
  private static func name(_ name: String, _ pseudonyms: Pseudonyms) -> String {
    var bytes = Array(name.utf8)
    if BlobForm.isIdentifierText(bytes.span, 0..<bytes.count) {
      return String(decoding: pseudonyms.identifier(for: bytes), as: UTF8.self)
    }
    guard bytes.allSatisfy({ $0 < 0x80 }) else { return "_" + String(bytes.count) }
    pseudonyms.replaceAscii(&bytes, 0..<bytes.count)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Writes the files of the result; links are left out.
  func write(_ pseudonyms: Pseudonyms) throws(FileError) {
    guard let found = try files() else { return }
    try fileSystem.makeDirectory(target, permissions: .init(rawValue: 0o700))
    for folder in found.folders {
      try fileSystem.makeDirectory(target.appending(folder), permissions: .init(rawValue: 0o700))
    }
    for file in found.files where file.status.kind == .regular {
      let original = try fileSystem.open(file.path)
      let name = Self.name(file.relative.last?.string ?? "", pseudonyms)
      let output = try fileSystem.create(
        target.appending(file.relative.dropLast() + [FilePath.Component(name) ?? "_"]))
      var offset: Int64 = 0
      while offset < original.count {
        var bytes = try original.bytes(at: offset, length: Self.pieceLength)
        if bytes.isEmpty { break }
        let count = Int64(bytes.count)
        _ = pseudonyms.replace(12 + 2 * count, &bytes, 0..<bytes.count, FieldRule())
        try output.write(bytes, at: offset)
        offset += count
      }
      try output.synchronize()
    }
  }
}
