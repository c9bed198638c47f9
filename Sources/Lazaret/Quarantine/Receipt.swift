import Foundation
internal import ManagedObjectModel
internal import PersistentStore
package import Platform
package import SystemPackage

/// The record beside a quarantined store, with digests that prove it unchanged.
///
/// Versioned JSON; keys may be added, never changed. Earlier versions wrote fewer members.
package struct Receipt: Sendable, Hashable, Codable {
  package struct Reason: Sendable, Hashable, Codable {
    /// A stable word, such as `not-sqlite`.
    package var code: String

    package var words: String

    package init(code: String, words: String) {
      self.code = code
      self.words = words
    }
  }

  /// The errors that SQLite and Core Data would have reported.
  package struct ErrorCodes: Sendable, Hashable, Codable {
    /// A Core Data code of `NSCocoaErrorDomain`, such as 134100.
    package var coreData: Int?

    /// SQLite's result code, such as 11 (`SQLITE_CORRUPT`) or 26 (`SQLITE_NOTADB`).
    package var sqlite: Int?

    package init(coreData: Int? = nil, sqlite: Int? = nil) {
      self.coreData = coreData
      self.sqlite = sqlite
    }
  }

  package struct File: Sendable, Hashable, Codable {
    package var part: StoreFileSet.Part

    /// Relative to the receipt's folder.
    package var name: PathText

    package var originalPath: PathText

    package var bytes: Int64

    package var sha256: String
  }

  package struct Model: Sendable, Hashable, Codable {
    /// The name in the app's models.
    package var version: String?

    /// From the store's metadata.
    package var identifiers: [String]

    /// The checksum over the entities' hashes (`NSStoreModelVersionChecksumKey`).
    package var checksum: String?

    /// Whether the store was compared with the app's versions.
    package var isCompared: Bool?

    private enum CodingKeys: String, CodingKey {
      case version, identifiers, checksum
      case isCompared = "compared"
    }

    package init(version: String? = nil, identifiers: [String] = [], checksum: String? = nil, isCompared: Bool? = nil) {
      self.version = version
      self.identifiers = identifiers
      self.checksum = checksum
      self.isCompared = isCompared
    }

    /// The version's name, or the reason for its absence.
    package var words: String {
      if let version { return printable(version) }
      return switch isCompared {
      case true?: "none of the app's versions"
      case false?: "not compared with a model"
      case nil: "no version known"
      }
    }
  }

  package typealias Versions = SoftwareVersions

  package struct Release: Sendable, Hashable, Codable {
    /// RFC 3339.
    package var date: String

    package var path: PathText

    /// The number of the change at the original place, which orders its lineage.
    var order: Int?

    init(date: String, path: PathText, order: Int? = nil) {
      self.date = date
      self.path = path
      self.order = order
    }
  }

  /// Always `lazaret-quarantine-receipt`.
  var format: String

  /// Always 1.
  package var version: Int

  /// The file name without extension.
  package var id: String

  /// RFC 3339.
  package var date: String

  package var reason: Reason

  package var error: ErrorCodes

  package var originalPath: PathText

  /// The main file first.
  package var files: [File]

  /// The store's own model, if known.
  package var model: Model?

  /// The numbers of records; nil if unreadable.
  package var entities: [EntityCount]?

  package var versions: Versions

  package var released: Release?

  /// Nil if not requested.
  package var salvage: Salvage?

  /// Oldest first.
  package var timeline: [Moment]?

  /// The bundles made, oldest first.
  package var exports: [Export]?

  /// The bundles sent, oldest first.
  package var deliveries: [Delivery]?

  /// The store's generation and origin.
  package var lineage: StoreLineage?

  /// The generation of the next store at the place.
  package var successor: StoreLineage?

  /// The number of the change at the place, from 1.
  package var order: Int?

  /// The total size; receipts are untrusted, so an overflow becomes the largest number.
  package var totalBytes: Int64 {
    files.reduce(0) { sum, file in
      let (total, isTooLarge) = sum.addingReportingOverflow(max(0, file.bytes))
      return isTooLarge ? .max : total
    }
  }
}

extension Receipt {
  package struct Export: Sendable, Hashable, Codable {
    /// RFC 3339.
    package var date: String

    /// A support bundle's level, such as `scrubbed`.
    package var level: String

    package var path: PathText

    package var bytes: Int64

    package var sha256: String

    package var isEncrypted: Bool

    private enum CodingKeys: String, CodingKey {
      case date, level, path, bytes, sha256
      case isEncrypted = "encrypted"
    }

    package init(at date: Timestamp, level: String, path: PathText, bytes: Int64, sha256: String, isEncrypted: Bool) {
      self.date = date.rfc3339
      self.level = level
      self.path = path
      self.bytes = bytes
      self.sha256 = sha256
      self.isEncrypted = isEncrypted
    }
  }

  /// The receiver's receipt of a bundle.
  package struct Delivery: Sendable, Hashable, Codable {
    /// RFC 3339.
    package var date: String

    /// Scheme, host and port, without a path or token.
    package var receiver: String

    /// The receiver's name for the bundle.
    package var id: String

    var bytes: Int64

    package var sha256: String

    package init(at date: Timestamp, receiver: String, id: String, bytes: Int64, sha256: String) {
      self.date = date.rfc3339
      self.receiver = receiver
      self.id = id
      self.bytes = bytes
      self.sha256 = sha256
    }
  }

  /// The exports, and the deliveries, kept; the latest stay.
  private static let maximumBundles = 100

  package mutating func add(_ export: Export, at date: Timestamp) {
    exports = ((exports ?? []) + [export]).suffix(Self.maximumBundles)
    add(Moment(.exported, at: date, words: "Level: \(export.level).", path: export.path))
  }

  /// Adds a sent bundle, also to the timeline, unless noted already.
  package mutating func add(_ delivery: Delivery, at date: Timestamp) {
    let known = deliveries ?? []
    guard !known.contains(where: { $0.id == delivery.id && $0.receiver == delivery.receiver }) else { return }
    deliveries = (known + [delivery]).suffix(Self.maximumBundles)
    add(Moment(.sent, at: date, words: "To \(delivery.receiver), as \(delivery.id)."))
  }
}

extension Receipt {
  init(
    _ relocation: Relocation, of store: QuarantineCase, id: String, date: Timestamp, folder: FilePath,
    _ succession: QuarantineFolder.Succession
  ) {
    self.init(
      format: "lazaret-quarantine-receipt", version: 1, id: id, date: date.rfc3339, reason: store.reason,
      error: store.error, originalPath: relocation.source,
      files: relocation.steps.reversed().map { step in
        File(
          part: step.part, name: step.destination.path.map { PathText($0.relative(to: folder)) } ?? step.destination,
          originalPath: step.source, bytes: step.copiedBytes ?? step.bytes, sha256: step.sha256 ?? "")
      },
      model: store.model, entities: store.entities, versions: store.versions, salvage: store.salvage,
      timeline: [Moment(.quarantined, at: date, words: store.reason.words, path: relocation.source)])
    lineage = succession.lineage
    successor = succession.successor
    order = succession.order
  }

  /// Reads a receipt.
  ///
  /// - Throws: `receipt-unreadable` for another format or a later version.
  package init(at path: FilePath, in fileSystem: FileSystem) throws {
    let bytes = try fileSystem.contents(of: path, limit: 1 << 26)
    let receipt: Receipt
    do {
      receipt = try JSONDecoder().decode(Receipt.self, from: Data(bytes))
    } catch {
      throw LazaretError(
        .receiptUnreadable, operation: "read the receipt", path: path,
        detail: "it is not a receipt of a quarantined store")
    }
    guard receipt.format == "lazaret-quarantine-receipt", receipt.version == 1 else {
      throw LazaretError(
        .receiptUnreadable, operation: "read the receipt", path: path,
        detail: "it is of version \(receipt.version), and this software knows version 1",
        hint: "Use a newer version of this software.")
    }
    self = receipt
  }

  /// Returns JSON with a final newline.
  package func json() throws(FileError) -> [UInt8] { try JSON.bytes(of: self, to: "write the receipt") }
}

extension FilePath {
  fileprivate func relative(to folder: FilePath) -> FilePath {
    var path = self
    return path.removePrefix(folder) ? path : self
  }
}

extension Receipt.Salvage {
  /// A loss of a salvaged store's migration to a version that cannot hold the data.
  package struct MigrationLoss: Sendable, Hashable, Codable {
    package var entity: String

    /// Nil for whole records.
    package var property: String?

    /// The values or records, if known.
    package var count: Int64?

    /// One sentence without a full stop.
    package var text: String
  }
}

extension Receipt {
  package struct Moment: Sendable, Hashable, Codable {
    /// Later versions may add words.
    package struct Kind: RawRepresentable, Sendable, Hashable, Codable {
      package var rawValue: String

      package init(rawValue: String) { self.rawValue = rawValue }

      package static let quarantined = Kind(rawValue: "quarantined")

      package static let salvaged = Kind(rawValue: "salvaged")

      package static let salvageFailed = Kind(rawValue: "salvage-failed")

      package static let installed = Kind(rawValue: "installed")

      /// An empty store was installed.
      package static let replaced = Kind(rawValue: "replaced")

      package static let exported = Kind(rawValue: "exported")

      package static let sent = Kind(rawValue: "sent")

      /// It came in a received bundle.
      package static let received = Kind(rawValue: "received")

      package static let released = Kind(rawValue: "released")
    }

    package var kind: Kind

    /// RFC 3339.
    package var date: String

    /// Nil if the kind suffices.
    package var words: String?

    package var path: PathText?

    package init(_ kind: Kind, at date: Timestamp, words: String? = nil, path: PathText? = nil) {
      self.kind = kind
      self.date = date.rfc3339
      self.words = words
      self.path = path
    }
  }

  /// The entries kept: the first, and the latest.
  private static let maximumMoments = 500

  /// The known history, oldest first.
  package var history: [Moment] {
    if let timeline { return timeline }
    var moments: [Moment] = []
    if let date = Timestamp(date) { moments.append(Moment(.quarantined, at: date, words: reason.words)) }
    if let released, let date = Timestamp(released.date) {
      moments.append(Moment(.released, at: date, path: released.path))
    }
    return moments
  }

  package mutating func add(_ moment: Moment) {
    var moments = history
    moments.append(moment)
    if moments.count > Self.maximumMoments { moments.removeSubrange(1...(moments.count - Self.maximumMoments)) }
    timeline = moments
  }
}

/// The receipt's content except names, times and digests.
package struct QuarantineCase: Sendable, Hashable, Codable {
  package var reason: Receipt.Reason

  /// The errors that SQLite and Core Data would have reported.
  var error: Receipt.ErrorCodes

  /// The store's own model.
  var model: Receipt.Model?

  /// The numbers of records; nil if unreadable.
  package var entities: [EntityCount]?

  var versions: Receipt.Versions

  /// The requested salvage.
  var salvage: Receipt.Salvage?

  /// The backup that takes the place.
  var makesRoomFor: StoreLineage.Restored?

  package init(
    reason: Receipt.Reason, error: Receipt.ErrorCodes = .init(), model: Receipt.Model? = nil,
    entities: [EntityCount]? = nil, versions: Receipt.Versions
  ) {
    self.reason = reason
    self.error = error
    self.model = model
    self.entities = entities
    self.versions = versions
  }
}

extension QuarantineCase {
  package static let requestCode = "by-request"

  /// The code of a place without a main file.
  static let leftoversCode = "no-store-but-leftovers"

  /// Creates the case from an examination.
  init(_ examination: Examination, appVersion: String?) {
    let metadata = examination.metadata
    var reason = Receipt.Reason(code: examination.reason.code, words: examination.reason.words)
    if examination.verdict == .missing, reason.code != Self.leftoversCode {
      // An examination does not count this part as a leftover, because it cannot harm a new store.
      reason = .init(
        code: Self.leftoversCode,
        words: "There was no store at this path, but the folder with the large values of one was left over.")
    }
    self.init(
      reason: reason, error: .init(coreData: examination.reason.coreDataCode, sqlite: examination.reason.sqliteCode),
      model: metadata.map {
        .init(
          version: examination.modelVersion, identifiers: $0.versionIdentifiers,
          checksum: $0.versionHashes.isEmpty ? nil : ManagedObjectModel.versionChecksum(of: $0.versionHashes),
          isCompared: examination.isComparedWithModel)
      },
      entities: examination.entities.isEmpty ? nil : examination.entities,
      versions: .init(
        app: appVersion, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
        storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem))
  }
}
