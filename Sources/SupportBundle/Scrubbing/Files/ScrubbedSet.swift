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

  func finish() throws(FileError) {
    try main.finish()
    try log?.finish()
    try journal?.finish()
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

  func finish() throws(FileError) { try file.synchronize() }
}
