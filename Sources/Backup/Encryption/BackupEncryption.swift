package import Platform
package import SystemPackage

/// The recipients of a backup.
package struct BackupEncryption: Sendable, Hashable {
  package var recipients: [AgeRecipient]

  /// The file of the key that allows a delta next; nil for full backups only.
  ///
  /// It opens only the newest backup's page hashes and manifest.
  package var deltaKeyFile: FilePath?

  package init(to recipients: [AgeRecipient], deltaKeyFile: FilePath? = nil) {
    self.recipients = recipients
    self.deltaKeyFile = deltaKeyFile
  }
}

/// The keys to read and write encrypted backups.
///
/// Its reflection is empty, so that no log holds a key.
final class BackupKeys: Sendable, CustomReflectable {
  let identities: [AgeIdentity]

  /// The recipients of new backups; nil for plain ones.
  let writing: Writing?

  struct Writing: Sendable {
    var recipients: [AgeRecipient]

    /// An extra recipient of page hashes and manifest, for a delta.
    var delta: AgeRecipient?
  }

  let files = SealedFiles()

  init(_ identities: [AgeIdentity], writing: Writing? = nil) {
    self.identities = identities
    self.writing = writing
  }

  var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The key of the newest backup's page hashes and manifest, stored outside the place.
struct DeltaKey {
  let file: FilePath
  let fileSystem: FileSystem

  private static let limit = 4096

  /// Returns the previous key; without it the next backup is full.
  func read() -> AgeIdentity? {
    guard let bytes = try? fileSystem.contents(of: file, limit: Self.limit) else { return nil }
    return try? AgeIdentity.identities(in: String(decoding: bytes, as: UTF8.self)).first
  }

  /// Replaces the previous key.
  func write(_ identity: AgeIdentity, of id: BackupIdentifier) {
    let text = "# opens the hashes of pages and the manifest of \(id), and nothing else\n\(identity.secretText)\n"
    do throws(FileError) {
      try fileSystem.makeDirectory(file.removingLastComponent())
      try fileSystem.writeAtomically(Array(text.utf8), to: file, replacing: true, permissions: .ownerReadWrite)
    } catch {
      // Without the key the next backup is full.
    }
  }
}

extension BackupError {
  static func locked(_ id: BackupIdentifier, _ operation: String) -> BackupError {
    BackupError(.locked, operation: operation, detail: "backup \(id) is encrypted, and no key that opens it was given")
  }
}
