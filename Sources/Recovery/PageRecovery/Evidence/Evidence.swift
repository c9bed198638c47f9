internal import SQLiteFormat
package import StoreFiles
package import SystemPackage

/// The bytes of a store as they lie on the disk: opened for reading, never written, never shown to SQLite.
package struct Evidence {
  /// The set of files.
  package let files: StoreFileSet

  /// What the files are read through.
  let fileSystem: FileSystem

  /// The database file; no byte where it is missing and a log or journal of it is there.
  let main: any ByteSource

  /// The write-ahead log, where there is one with any byte.
  let log: (any ByteSource)?

  /// Whether there is a file for the write-ahead log, be it empty.
  let hasLogFile: Bool

  /// The rollback journal, where there is one with any byte.
  let journal: (any ByteSource)?

  /// Opens the set that a path stands for.
  ///
  /// - Parameter realigns: whether a database file within which bytes shifted is read as it was before.
  package init(_ path: FilePath, in fileSystem: FileSystem, realigns: Bool = true) throws(SalvageError) {
    self.fileSystem = fileSystem
    let main: any ByteSource
    do throws(FileError) {
      files = try StoreFileSet.locate(path, in: fileSystem)
      var log = try Self.part(.wal, of: files, in: fileSystem)
      var journal = try Self.part(.journal, of: files, in: fileSystem)
      if log == nil, journal == nil, let alone = try Self.fileAlone(files.main, in: fileSystem) {
        // A log or a journal is given by itself, under whatever name.
        main = MemoryBytes([])
        if alone.kind == .writeAheadLog { log = alone.file } else { journal = alone.file }
      } else if log != nil || journal != nil, try fileSystem.status(of: files.main) == nil {
        main = MemoryBytes([])
      } else {
        main = try Self.withoutHole(fileSystem.open(files.main))
      }
      (self.log, self.journal) = (log, journal)
      hasLogFile = try fileSystem.status(of: files.path(of: .wal)) != nil
    } catch {
      throw SalvageError(error)
    }
    self.main = realigns ? try RealignmentSearch.realigned(main) : main
  }

  /// A file that is a log or a journal itself; nil for any other.
  private static func fileAlone(
    _ path: FilePath, in fileSystem: FileSystem
  ) throws(FileError) -> (kind: FileKind, file: ReadableFile)? {
    guard try fileSystem.status(of: path) != nil else { return nil }
    let file = try fileSystem.open(path)
    let kind = FileKind(firstBytes: try file.bytes(at: 0, length: FileKind.sampleLength))
    return kind == .writeAheadLog || kind == .rollbackJournal ? (kind, file) : nil
  }

  /// The length from which a hole at the end of a file is left out, in bytes.
  private static let holeLength: Int64 = 64 << 20

  /// The file without a long hole at its end, which has no page in it; what the header counts as pages stays.
  private static func withoutHole(_ file: ReadableFile) throws(FileError) -> any ByteSource {
    let end = file.dataEnd
    guard file.count - end >= holeLength else { return file }
    var length = (end + 0xffff) & ~0xffff
    let header = DatabaseHeader(try file.bytes(at: 0, length: DatabaseHeader.length))
    if let header, header.hasMagic, header.isConsistent, header.isPageCountValid, let size = header.pageSize {
      length = max(length, Int64(header.pageCount) * Int64(size))
    }
    return length < file.count ? FileBeginning(file: file, count: length) : file
  }

  private static func part(
    _ part: StoreFileSet.Part, of files: StoreFileSet, in fileSystem: FileSystem
  ) throws(FileError) -> (any ByteSource)? {
    let path = files.path(of: part)
    guard try fileSystem.status(of: path) != nil else { return nil }
    let file = try fileSystem.open(path)
    return file.count > 0 ? file : nil
  }
}

extension ByteSource {
  /// The bytes of a range, cut off at the end of the source.
  func piece(at offset: Int64, length: Int) throws(SalvageError) -> [UInt8] {
    do throws(FileError) {
      return try bytes(at: offset, length: length)
    } catch {
      throw SalvageError(error)
    }
  }

  /// Reads bytes into a buffer that has room for them; returns how many there were.
  func piece(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(SalvageError) -> Int {
    do throws(FileError) {
      return try read(at: offset, length: length, into: &buffer)
    } catch {
      throw SalvageError(error)
    }
  }
}
