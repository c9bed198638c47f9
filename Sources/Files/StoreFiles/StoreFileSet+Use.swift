import SystemPackage

/// What other processes do with a store's log.
extension StoreFileSet {
  /// The first bytes of the log's index, and whether another process has the log open; nil where there is no index.
  ///
  /// An index that no process has open may have been copied at another time than the log.
  package func logIndex(
    length: Int, in fileSystem: FileSystem
  ) throws(FileError) -> (bytes: [UInt8], isInUse: Bool)? {
    guard try fileSystem.status(of: path(of: .sharedMemory))?.kind == .regular else { return nil }
    let file = try LastingFile(path(of: .sharedMemory), in: fileSystem)
    let owner = try file.lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.conflictingLock(on: descriptor, range: .connections, exclusive: true)
    }
    return (try file.bytes(at: 0, length: length), owner != nil)
  }

  /// The process, in words, that has the store and its log open although the log's name was deleted; nil where none has, or
  /// where the system does not tell.
  ///
  /// What it has written since is in that file alone, and goes with the process.
  package func holderOfDeletedLog(in fileSystem: FileSystem) throws(FileError) -> String? {
    guard let status = try fileSystem.status(of: main) else { return nil }
    return OpenFiles.processWithDeletedLog(of: self, main: status.identity)?.description
  }
}
