package import StoreFiles
package import SystemPackage

/// Where an inbox keeps what: `Inbox/` in a home, its owner's alone.
package struct InboxFolders: Sendable, Hashable {
  /// `Inbox/`.
  package let root: FilePath

  /// The folders of a home's inbox.
  package init(home: FilePath) { root = home.appending("Inbox") }

  /// The database file.
  package var records: FilePath { root.appending("records.sqlite") }

  /// The mark of the database server's records; there where these are not in a file.
  package var place: FilePath { root.appending("place") }

  /// What is on its way in, a file for each upload.
  package var uploads: FilePath { root.appending("Uploads") }

  /// What arrived, a folder for each bundle.
  package var bundles: FilePath { root.appending("Bundles") }

  /// What workers are told, and what they answer.
  package var work: FilePath { root.appending("Work") }

  /// What the workers of a bundle are told, answer and keep for a while.
  package func work(_ id: String) -> FilePath { work.appending(id) }

  /// The file of an upload.
  package func upload(_ id: String) -> FilePath { uploads.appending(id) }

  /// The folder of a bundle.
  package func bundle(_ id: String) -> FilePath { bundles.appending(id) }

  /// The file of a bundle as it was received.
  package func received(_ id: String, encrypted isEncrypted: Bool) -> FilePath {
    bundle(id).appending(isEncrypted ? "bundle.lazaret.tar.gz.age" : "bundle.lazaret.tar.gz")
  }

  /// The bag, once it was unpacked.
  package func bag(_ id: String) -> FilePath { bundle(id).appending("bag") }

  /// Makes the folders.
  package func make(in fileSystem: FileSystem) throws(FileError) {
    for folder in [root, uploads, bundles, work] {
      try fileSystem.makeDirectory(folder, permissions: .ownerReadWriteExecute)
    }
  }

  /// Whether a text can be an identifier, and so a name of a file: hexadecimal digits and hyphens only.
  package static func isID(_ text: String) -> Bool {
    text.utf8.count == 36
      && text.utf8.allSatisfy { byte in
        (48...57).contains(byte) || (97...102).contains(byte) || byte == UInt8(ascii: "-")
      }
  }
}
