internal import Migration
package import Platform
internal import SupportBundle
package import SystemPackage

/// A worker's job and paths.
///
/// Its file is readable by this user only, and names the secret key's file, never the key.
package struct WorkOrder: Sendable, Hashable, Codable {
  var kind: InboxJob.Kind

  var home: PathText

  var bundle: String

  /// The sender's name, for the store's receipt.
  var sender: String

  /// The bundle's arrival, in RFC 3339.
  var date: String

  var isEncrypted: Bool

  /// The file of secret keys.
  var identity: PathText?

  var models: [PathText]

  /// The model versions, oldest first; nil for natural order.
  var versionOrder: [String]?

  /// The quarantined store's name, for a salvage.
  var quarantineID: String?

  /// The most unpacked bytes.
  var unpackedBytes: Int64

  /// The most unpacked bytes per packed byte.
  var unpackedRatio: Int64

  /// The most files.
  var unpackedEntries: Int

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

/// A worker's answer: bounded data, since it has read hostile bytes.
package struct WorkResult: Sendable, Hashable, Codable {
  package struct Opened: Sendable, Hashable, Codable {
    /// The share of a store in it.
    var level: String

    var app: String?

    var store: String

    /// The files below `data/`, limited.
    var files: [InboxBundle.File]

    /// The number of all files.
    var fileCount: Int

    var facts: BundleFacts?

    var account: BundleAccount?

    var quarantineID: String?

    /// Whether it obeys the limits of an uncompromised worker.
    var isPlausible: Bool {
      let texts = [level, app, store, quarantineID].compactMap(\.self)
      let isName = quarantineID.map { name in
        !name.isEmpty && name.utf8.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: "-") }
      }
      return texts.allSatisfy { $0.utf8.count <= 1 << 20 } && isName != false
        && files.count <= InboxBundle.maximumFiles && files.allSatisfy { $0.name.utf8.count <= 4096 && $0.bytes >= 0 }
        && (account?.entities.count ?? 0) <= BundleAccount.maximumEntities
        && (account?.runs.count ?? 0) <= BundleAccount.maximumRuns
    }
  }

  package struct Failure: Sendable, Hashable, Codable {
    package var code: String

    /// The message as a sentence.
    var words: String

    /// Whether a retry may succeed.
    var isEnvironmental: Bool

    init(_ error: any Error) {
      switch error {
      // A worker's limits are ours: exceeding them is the bundle's fault and would recur.
      case let error as any ReportableError where error.code == FileError.Kind.outOfMemory.rawValue:
        code = InboxError.Kind.memory.rawValue
        words = "It needed more memory than it may have."
        isEnvironmental = false
      case let error as any ReportableError:
        code = error.code
        words = sentence(String(printable(error.detail).prefix(500)))
        isEnvironmental = error.isEnvironmental && error.code != FileError.Kind.tooLarge.rawValue
      default:
        code = "unforeseen-error"
        words = "An error of the kind \(printable("\(type(of: error))")) came up."
        isEnvironmental = false
      }
    }
  }

  package struct Salvaged: Sendable, Hashable, Codable {
    /// Another version's result, if any.
    var before: SalvageCount?

    var after: SalvageCount

    /// Whether it obeys the limits of an uncompromised worker.
    var isPlausible: Bool { before?.isPlausible != false && after.isPlausible }
  }

  /// The result of a `salvage` job.
  var salvaged: Salvaged?

  /// The result of an `open` job.
  var opened: Opened?

  package var failure: Failure?

  package var isolation: WorkIsolation?

  static let lengthLimit = 8 << 20
}

/// A runner of orders in isolation.
package protocol WorkRunner: Sendable {
  /// Runs an order and waits for its end.
  ///
  /// - Parameters:
  ///   - beat: called regularly meanwhile.
  ///   - isCancelled: polled to stop early.
  /// - Returns: nil if cancelled.
  func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult?
}

/// Runs the work in this process, without protection: for tests only.
package struct WorkInProcess: WorkRunner {
  private let surroundings: Surroundings

  package init(surroundings: Surroundings) { self.surroundings = surroundings }

  package func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult? {
    BundleWork(order, surroundings: surroundings).run()
  }
}

/// Error codes that blame the environment of a store in place, but the content of a bundle.
enum ContentFault {
  /// File kinds, migration leftovers, model versions.
  static let codes = Set(
    [FileErrorKind.isDirectory, .notRegularFile, .danglingLink, .notDownloaded, .journalUnreadable, .placeTaken].map(
      \.rawValue) + [MigrationError.Kind.newerModel, .backwards].map(\.rawValue))
}
