package import Platform
package import SystemPackage

/// To whom a backup is encrypted.
package struct BackupEncryption: Sendable, Hashable {
  /// The public keys; the holder of any of their secret keys can read the backup.
  package var recipients: [AgeRecipient]

  /// Where the key is kept that lets the next backup be a delta; nil where every backup is to be whole.
  ///
  /// It opens the hashes of the newest backup's pages, and its manifest, and nothing else.
  package var deltaKeyFile: FilePath?

  /// Encryption to public keys.
  package init(to recipients: [AgeRecipient], deltaKeyFile: FilePath? = nil) {
    self.recipients = recipients
    self.deltaKeyFile = deltaKeyFile
  }
}

/// The keys with which the encrypted backups of a place are read, and to which new ones are written.
///
/// It prints as nothing, so that no log ever holds it.
final class BackupKeys: Sendable, CustomReflectable {
  let identities: [AgeIdentity]

  /// To whom new backups are written; nil where they are not encrypted.
  let writing: Writing?

  /// What is needed to write encrypted backups.
  struct Writing: Sendable {
    /// To whom all files are encrypted.
    var recipients: [AgeRecipient]

    /// To whom the hashes of pages and the manifest are encrypted besides; nil where no delta is to follow.
    var delta: AgeRecipient?
  }

  /// The files that were opened, or written, by section and name.
  let files = SealedFiles()

  init(_ identities: [AgeIdentity], writing: Writing? = nil) {
    self.identities = identities
    self.writing = writing
  }

  /// Nothing, so that no dump shows a key.
  var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The key that opens the newest backup's hashes of pages and manifest, in a file outside of the place.
///
/// Each backup has a new one, and the one before is forgotten with it.
struct DeltaKey {
  let file: FilePath
  let fileSystem: FileSystem

  private static let limit = 4096

  /// The key of the backup before; nil where there is none, or none that can be read: the next backup is whole then.
  func read() -> AgeIdentity? {
    guard let bytes = try? fileSystem.contents(of: file, limit: Self.limit) else { return nil }
    return try? AgeIdentity.identities(in: String(decoding: bytes, as: UTF8.self)).first
  }

  /// Keeps the key of a backup that is there, in the place of the one before.
  func write(_ identity: AgeIdentity, of id: BackupIdentifier) {
    let text = "# opens the hashes of pages and the manifest of \(id), and nothing else\n\(identity.secretText)\n"
    do throws(FileError) {
      try fileSystem.makeDirectory(file.removingLastComponent())
      try fileSystem.writeAtomically(Array(text.utf8), to: file, replacing: true, permissions: .ownerReadWrite)
    } catch {
      // The backup is whole and there; without the key the next one is a full one.
    }
  }
}

extension BackupError {
  /// A backup whose key was not given.
  static func locked(_ id: BackupIdentifier, _ operation: String) -> BackupError {
    BackupError(.locked, operation: operation, detail: "backup \(id) is encrypted, and no key that opens it was given")
  }
}
