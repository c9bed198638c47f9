package import Platform
package import SystemPackage

/// What a worker is told: one job, and where everything is.
///
/// Written to a file that only this user can read. The secret key is never in it, only the path of its file.
package struct WorkOrder: Sendable, Hashable, Codable {
  /// What is to be done.
  package var kind: InboxJob.Kind

  /// The home.
  package var home: PathText

  /// The identifier of the bundle.
  package var bundle: String

  /// The sender's name, for the receipt of the store.
  package var sender: String

  /// When the bundle arrived, in RFC 3339.
  package var date: String

  /// Whether it is encrypted.
  package var isEncrypted: Bool

  /// The file with the secret keys; nil for none.
  package var identity: PathText?

  /// The files of the app's models.
  package var models: [PathText]

  /// The names of a model's versions, oldest first; nil for their natural order.
  package var versionOrder: [String]?

  /// The name of the store in quarantine, for its salvage.
  package var quarantineID: String?

  /// The most bytes that are unpacked.
  package var unpackedBytes: Int64

  /// The most bytes for each packed one.
  package var unpackedRatio: Int64

  /// The most files.
  package var unpackedEntries: Int

  /// What the process may use.
  package var resources: WorkLimits

  /// Where the result goes.
  package var result: PathText

  /// An order.
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

  /// What a worker of this order may read: the models, and the key where the bundle is encrypted.
  package var readable: [FilePath] { (models + [identity].compactMap(\.self)).compactMap(\.path) }

  /// The folders in which a worker of this order may do everything: the bundle's, and the one that it works in; nil
  /// where the order makes no sense.
  package var writable: [FilePath]? {
    guard let home = home.path, InboxFolders.isID(bundle) else { return nil }
    let folders = InboxFolders(home: home)
    return [folders.bundle(bundle), folders.work(bundle)]
  }

  /// Where a worker of this order keeps what is for a while only.
  package var temporary: FilePath? { writable?.last?.appending("tmp") }

  var unpacking: UnpackingLimits {
    UnpackingLimits(bytes: unpackedBytes, ratio: unpackedRatio, entries: unpackedEntries)
  }
}

/// What a worker process may use.
package struct WorkLimits: Sendable, Hashable, Codable {
  /// The most bytes of its address space.
  package var memory: UInt64

  /// The most seconds of processor time.
  package var processorSeconds: UInt64

  /// The most bytes of a file that it writes.
  package var fileBytes: UInt64

  /// The most files that it has open.
  package var openFiles: UInt64

  /// The most seconds in all, after which it is killed.
  package var seconds: Int

  /// Limits.
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
