extension StoreFileSet {
  /// Puts the bytes of a new store into the set's place, whole or not at all.
  ///
  /// The place must be empty: a write-ahead log or a journal that is left over there would be taken for the new store's.
  /// The caller holds the folder's lock.
  ///
  /// - Throws: `file-exists` where any part of a set is there.
  package func install(_ bytes: [UInt8], in fileSystem: FileSystem) throws(FileError) {
    if let member = try members(in: fileSystem).first {
      throw FileError(.alreadyExists, operation: "create the store", path: member.path)
    }
    try fileSystem.writeAtomically(bytes, to: main, replacing: false)
  }
}
