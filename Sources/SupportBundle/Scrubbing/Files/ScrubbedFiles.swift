internal import Platform
internal import SystemPackage

/// The output files, zero where unwritten.
final class ScrubbedSet {
  let files: StoreFileSet
  private let fileSystem: FileSystem
  private let main: ScrubbedFile
  private let log: ScrubbedFile?
  private let journal: ScrubbedFile?

  init(
    _ files: StoreFileSet, main: any ByteSource, log: (any ByteSource)?, journal: (any ByteSource)?,
    in fileSystem: FileSystem
  ) throws(FileError) {
    self.files = files
    self.fileSystem = fileSystem
    self.main = try ScrubbedFile(files.main, size: main.count, in: fileSystem)
    self.log = try log.map { source throws(FileError) in
      try ScrubbedFile(files.path(of: .wal), size: source.count, in: fileSystem)
    }
    self.journal = try journal.map { source throws(FileError) in
      try ScrubbedFile(files.path(of: .journal), size: source.count, in: fileSystem)
    }
  }

  func write(_ image: PageImage, _ bytes: [UInt8], count: Int, at offset: Int64) throws(FileError) {
    switch image {
    case .main: try main.write(bytes, count: count, at: offset)
    case .log: try log?.write(bytes, count: count, at: offset)
    case .journal: try journal?.write(bytes, count: count, at: offset)
    }
  }

  func read(_ image: PageImage, at offset: Int64, into buffer: inout [UInt8]) throws(FileError) -> Int {
    let part: StoreFileSet.Part =
      switch image {
      case .main: .main
      case .log: .wal
      case .journal: .journal
      }
    return try open(part).read(at: offset, length: buffer.count, into: &buffer)
  }

  func write(_ part: StoreFileSet.Part, _ bytes: [UInt8], at offset: Int64) throws(FileError) {
    switch part {
    case .main: try main.write(bytes, count: bytes.count, at: offset)
    case .wal: try log?.write(bytes, count: bytes.count, at: offset)
    case .journal: try journal?.write(bytes, count: bytes.count, at: offset)
    case .sharedMemory, .externalData: break
    }
  }

  func open(_ part: StoreFileSet.Part) throws(FileError) -> ReadableFile { try fileSystem.open(files.path(of: part)) }

  func synchronize() throws(FileError) {
    try main.synchronize()
    try log?.synchronize()
    try journal?.synchronize()
  }
}

final class ScrubbedFile {
  private let file: WritableFile

  let path: FilePath

  init(_ path: FilePath, size: Int64, in fileSystem: FileSystem) throws(FileError) {
    self.path = path
    file = try fileSystem.create(path, permissions: .ownerReadWrite)
    try file.truncate(to: size)
  }

  func write(_ bytes: [UInt8], count: Int, at offset: Int64) throws(FileError) {
    if count == bytes.count {
      try file.write(bytes, at: offset)
    } else {
      try file.write(bytes[..<count], at: offset)
    }
  }

  func synchronize() throws(FileError) { try file.synchronize() }
}

/// Scrubs external values: noise of the same length, and pseudonyms for names, except Core Data's folder.
struct ExternalValues {
  private let source: FilePath
  private let target: FilePath
  private let fileSystem: FileSystem

  private(set) var count = 0

  private static let pieceLength = 65536
  private static let ownFolder: FilePath.Component = "_EXTERNAL_DATA"

  init(_ source: FilePath, to target: FilePath, in fileSystem: FileSystem) {
    self.source = source
    self.target = target
    self.fileSystem = fileSystem
  }

  private func files() throws(FileError) -> (folders: [[FilePath.Component]], files: [FileSystem.Descendant])? {
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return nil }
    return try fileSystem.descendants(of: source)
  }

  mutating func note(_ pseudonyms: Pseudonyms) throws(FileError) {
    for file in try files()?.files ?? [] where file.status.kind == .regular {
      count += 1
      for component in file.relative where component != Self.ownFolder {
        let name = Array(component.string.utf8)
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

  private struct Names {
    private var known: [FilePath.Component: FilePath.Component] = [ownFolder: ownFolder]
    private var taken: Set<FilePath.Component> = [ownFolder]

    mutating func path(_ path: [FilePath.Component], _ pseudonyms: Pseudonyms) -> [FilePath.Component] {
      path.map { component in
        if let name = known[component] { return name }
        var name = Self.name(component.string, pseudonyms)
        var result = FilePath.Component(name) ?? "_"
        while taken.contains(result) {
          name += "_"
          result = FilePath.Component(name) ?? "_"
        }
        known[component] = result
        taken.insert(result)
        return result
      }
    }

    /// Identifiers get the same pseudonym as in records.
    private static func name(_ name: String, _ pseudonyms: Pseudonyms) -> String {
      var bytes = Array(name.utf8)
      if BlobForm.isIdentifierText(bytes.span, 0..<bytes.count) {
        return String(decoding: pseudonyms.identifier(for: bytes), as: UTF8.self)
      }
      guard bytes.allSatisfy({ $0 < 0x80 }) else { return "_" + String(bytes.count) }
      pseudonyms.replaceAscii(&bytes, 0..<bytes.count)
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// Writes the output files, omitting links.
  func write(_ pseudonyms: Pseudonyms) throws(FileError) {
    guard let found = try files() else { return }
    var names = Names()
    try fileSystem.makeDirectory(target, permissions: .init(rawValue: 0o700))
    for folder in found.folders {
      try fileSystem.makeDirectory(
        target.appending(names.path(folder, pseudonyms)), permissions: .init(rawValue: 0o700))
    }
    for file in found.files where file.status.kind == .regular {
      let original = try fileSystem.open(file.path)
      let output = try fileSystem.create(target.appending(names.path(file.relative, pseudonyms)))
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
