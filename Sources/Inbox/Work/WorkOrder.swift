package import Platform
package import SystemPackage

/// A worker's job and paths.
///
/// Its file is readable by this user only, and names the secret key's file, never the key.
package struct WorkOrder: Sendable, Hashable, Codable {
  package var kind: InboxJob.Kind

  package var home: PathText

  package var bundle: String

  /// The sender's name, for the store's receipt.
  package var sender: String

  /// The bundle's arrival, in RFC 3339.
  package var date: String

  package var isEncrypted: Bool

  /// The file of secret keys.
  package var identity: PathText?

  package var models: [PathText]

  /// The model versions, oldest first; nil for natural order.
  package var versionOrder: [String]?

  /// The quarantined store's name, for a salvage.
  package var quarantineID: String?

  /// The most unpacked bytes.
  package var unpackedBytes: Int64

  /// The most unpacked bytes per packed byte.
  package var unpackedRatio: Int64

  /// The most files.
  package var unpackedEntries: Int

  package var resources: WorkLimits

  package var result: PathText

  package init(
    kind: InboxJob.Kind, home: PathText, bundle: String, sender: String, date: String, isEncrypted: Bool,
    identity: PathText? = nil, models: [PathText] = [], versionOrder: [String]? = nil, quarantineID: String? = nil,
    unpackedBytes: Int64, unpackedRatio: Int64, unpackedEntries: Int, resources: WorkLimits, result: PathText
  ) {
    self.kind = kind
    self.home = home
    self.bundle = bundle
    self.sender = sender
    self.date = date
    self.isEncrypted = isEncrypted
    self.identity = identity
    self.models = models
    self.versionOrder = versionOrder
    self.quarantineID = quarantineID
    self.unpackedBytes = unpackedBytes
    self.unpackedRatio = unpackedRatio
    self.unpackedEntries = unpackedEntries
    self.resources = resources
    self.result = result
  }

  /// Readable files: models, and the key of an encrypted bundle.
  package var readable: [FilePath] { (models + [identity].compactMap(\.self)).compactMap(\.path) }

  /// Fully accessible folders: the bundle's and the work folder; nil for an invalid order.
  package var writable: [FilePath]? {
    guard let home = home.path, InboxFolders.isID(bundle) else { return nil }
    let folders = InboxFolders(home: home)
    return [folders.bundle(bundle), folders.work(bundle)]
  }

  package var temporary: FilePath? { writable?.last?.appending("tmp") }

  var unpacking: UnpackingLimits {
    UnpackingLimits(bytes: unpackedBytes, ratio: unpackedRatio, entries: unpackedEntries)
  }
}

package struct WorkLimits: Sendable, Hashable, Codable {
  /// The bytes of address space.
  package var memory: UInt64

  package var processorSeconds: UInt64

  /// The bytes of one written file.
  package var fileBytes: UInt64

  package var openFiles: UInt64

  /// The seconds until it is killed.
  package var seconds: Int

  package init(
    memory: UInt64 = 1 << 30, processorSeconds: UInt64 = 900, fileBytes: UInt64 = 16 << 30, openFiles: UInt64 = 256,
    seconds: Int = 1800
  ) {
    self.memory = memory
    self.processorSeconds = processorSeconds
    self.fileBytes = fileBytes
    self.openFiles = openFiles
    self.seconds = seconds
  }
}
