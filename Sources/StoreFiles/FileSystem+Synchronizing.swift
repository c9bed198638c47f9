public import SystemPackage

extension FileSystem {
  /// Pushes a file that somebody else wrote, such as SQLite, to the disk.
  public func synchronizeFile(_ path: FilePath) throws(FileError) {
    try perform(.synchronize, path, "write the file to the disk") { () throws(Errno) in
      try errno {
        let descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
        try descriptor.closeAfter { try SystemCalls.synchronize(descriptor) }
      }
    }
  }
}
