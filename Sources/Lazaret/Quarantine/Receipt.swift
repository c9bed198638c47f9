import Foundation
internal import Migration
package import Platform
package import SystemPackage

/// What is written beside a quarantined store: what it was, where it was, why it was set aside, and how to prove that it
/// is still the same.
///
/// Versioned JSON; keys may be added, never changed.
package struct Receipt: Sendable, Hashable, Codable {
  /// Why a store was quarantined.
  package struct Reason: Sendable, Hashable, Codable {
    /// A stable, machine-readable word, such as `not-sqlite`.
    package var code: String

    /// The reason in plain words.
    package var words: String

    /// A reason by its code and words.
    package init(code: String, words: String) {
      self.code = code
      self.words = words
    }
  }

  /// The error numbers that SQLite and Core Data would have reported.
  package struct ErrorCodes: Sendable, Hashable, Codable {
    /// The code in Core Data's part of `NSCocoaErrorDomain`, such as 134100.
    package var coreData: Int?

    /// SQLite's result code, such as 11 (`SQLITE_CORRUPT`) or 26 (`SQLITE_NOTADB`).
    package var sqlite: Int?

    /// The numbers, as far as there are any.
    package init(coreData: Int? = nil, sqlite: Int? = nil) {
      self.coreData = coreData
      self.sqlite = sqlite
    }
  }

  /// One file of the quarantined set.
  package struct File: Sendable, Hashable, Codable {
    /// Which part of the set it is.
    package var part: StoreFileSet.Part

    /// The path now, relative to the folder of the receipt.
    package var name: PathText

    /// The path it had.
    package var originalPath: PathText

    /// Its size in bytes.
    package var bytes: Int64

    /// The SHA-256 of the content in hexadecimal digits.
    package var sha256: String
  }

  /// The model that the store was written with, as far as it could be told.
  package struct Model: Sendable, Hashable, Codable {
    /// The name of the version in the app's models, where it is one of them.
    package var version: String?

    /// The identifiers in the store's metadata.
    package var identifiers: [String]

    /// The checksum over the entities' hashes (`NSStoreModelVersionChecksumKey`).
    package var checksum: String?

    /// Whether the store was compared with the app's versions; nil in receipts of earlier versions of this software.
    package var isCompared: Bool?

    private enum CodingKeys: String, CodingKey {
      case version
      case identifiers
      case checksum
      case isCompared = "compared"
    }

    /// What is known of the model.
    package init(
      version: String? = nil, identifiers: [String] = [], checksum: String? = nil, isCompared: Bool? = nil
    ) {
      self.version = version
      self.identifiers = identifiers
      self.checksum = checksum
      self.isCompared = isCompared
    }

    /// The version in words: its name, or why there is none.
    package var words: String {
      if let version { return printable(version) }
      return switch isCompared {
      case true?: "none of the app's versions"
      case false?: "not compared with a model"
      case nil: "no version known"
      }
    }
  }

  /// The versions of everything that had a part in a quarantine.
  package typealias Versions = SoftwareVersions

  /// Where a released store went, and when.
  package struct Release: Sendable, Hashable, Codable {
    /// When, in RFC 3339.
    package var date: String

    /// Where it was put.
    package var path: PathText

    /// The number of the change at the place it came from, by which its lineage is told; nil where none was counted.
    package var order: Int?

    /// A place and a time, in RFC 3339.
    package init(date: String, path: PathText, order: Int? = nil) {
      self.date = date
      self.path = path
      self.order = order
    }
  }

  /// The name of the format: always `lazaret-quarantine-receipt`.
  package var format: String

  /// The version of the format: 1.
  package var version: Int

  /// What the store is called in quarantine: its file name without extension.
  package var id: String

  /// When it was quarantined, in RFC 3339.
  package var date: String

  /// Why it was quarantined.
  package var reason: Reason

  /// The numbers that SQLite and Core Data would have reported.
  package var error: ErrorCodes

  /// The path that the store had.
  package var originalPath: PathText

  /// The files of the set, the main file first.
  package var files: [File]

  /// The model it was written with; nil where it could not be told.
  package var model: Model?

  /// The records that could be counted; nil where the store could not be read so far.
  package var entities: [EntityCount]?

  /// The versions of everything that had a part in it.
  package var versions: Versions

  /// Set when the store was put back.
  package var released: Release?

  /// What has become of its salvage; nil where none was asked for.
  package var salvage: Salvage?

  /// What has happened to the store, oldest first; nil in receipts of earlier versions of this software.
  package var timeline: [Moment]?

  /// The bundles that were made of it, oldest first; nil for none.
  package var exports: [Export]?

  /// The bundles of it that were sent, oldest first; nil for none.
  package var deliveries: [Delivery]?

  /// The generation of the store, and where it comes from; nil in receipts of earlier versions of this software.
  package var lineage: StoreLineage?

  /// The generation of whatever is at the place after it; nil in receipts of earlier versions of this software.
  package var successor: StoreLineage?

  /// The number of the change at the place, counted from 1; nil in receipts of earlier versions of this software.
  package var order: Int?

  /// The size of all files together, in bytes.
  ///
  /// A receipt is not to be trusted: a sum beyond the largest number is that number.
  package var totalBytes: Int64 {
    files.reduce(0) { sum, file in
      let (total, isTooLarge) = sum.addingReportingOverflow(max(0, file.bytes))
      return isTooLarge ? .max : total
    }
  }
}

extension Receipt {
  /// A bundle that was made of a quarantined store.
  package struct Export: Sendable, Hashable, Codable {
    /// When, in RFC 3339.
    package var date: String

    /// How much of the store is in it: a level of support bundles, such as `scrubbed`.
    package var level: String

    /// Where it was written.
    package var path: PathText

    /// Its size in bytes.
    package var bytes: Int64

    /// The SHA-256 of the file in hexadecimal digits.
    package var sha256: String

    /// Whether only the holders of certain keys can open it.
    package var isEncrypted: Bool

    private enum CodingKeys: String, CodingKey {
      case date
      case level
      case path
      case bytes
      case sha256
      case isEncrypted = "encrypted"
    }

    /// A bundle.
    package init(
      at date: Timestamp, level: String, path: PathText, bytes: Int64, sha256: String, isEncrypted: Bool
    ) {
      self.date = date.rfc3339
      self.level = level
      self.path = path
      self.bytes = bytes
      self.sha256 = sha256
      self.isEncrypted = isEncrypted
    }
  }

  /// A bundle that was sent: the receiver's receipt.
  package struct Delivery: Sendable, Hashable, Codable {
    /// When it was received, in RFC 3339.
    package var date: String

    /// Who received it: scheme, host and port, without any path or token.
    package var receiver: String

    /// What the receiver calls it.
    package var id: String

    /// The size of the bundle in bytes.
    package var bytes: Int64

    /// The SHA-256 of the bundle in hexadecimal digits.
    package var sha256: String

    /// A delivery.
    package init(at date: Timestamp, receiver: String, id: String, bytes: Int64, sha256: String) {
      self.date = date.rfc3339
      self.receiver = receiver
      self.id = id
      self.bytes = bytes
      self.sha256 = sha256
    }
  }

  /// The most exports, and the most deliveries, that are kept; of more, the latest are.
  private static let maximumBundles = 100

  /// Notes a bundle that was made, and adds it to the timeline.
  package mutating func add(_ export: Export, at date: Timestamp) {
    exports = ((exports ?? []) + [export]).suffix(Self.maximumBundles)
    add(Moment(.exported, at: date, words: "Level: \(export.level).", path: export.path))
  }

  /// Notes a bundle that was sent, and adds it to the timeline; one that is noted already is not noted again.
  package mutating func add(_ delivery: Delivery, at date: Timestamp) {
    let known = deliveries ?? []
    guard !known.contains(where: { $0.id == delivery.id && $0.receiver == delivery.receiver }) else { return }
    deliveries = (known + [delivery]).suffix(Self.maximumBundles)
    add(Moment(.sent, at: date, words: "To \(delivery.receiver), as \(delivery.id)."))
  }
}

extension Receipt {
  /// The receipt of a store that has just got its names in quarantine.
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
  /// - Throws: `receipt-unreadable` where it is not one, or is of a later version than this software knows.
  package init(at path: FilePath, in fileSystem: FileSystem) throws {
    let bytes = try fileSystem.contents(of: path, limit: 1 << 26)
    let receipt: Receipt
    do {
      receipt = try JSONDecoder().decode(Receipt.self, from: Data(bytes))
    } catch {
      throw QuarantineError(
        .receiptUnreadable, operation: "read the receipt", path: path,
        detail: "it is not a receipt of a quarantined store")
    }
    guard receipt.format == "lazaret-quarantine-receipt", receipt.version == 1 else {
      throw QuarantineError(
        .receiptUnreadable, operation: "read the receipt", path: path,
        detail: "it is of version \(receipt.version), and this software knows version 1",
        hint: "Use a newer version of this software.")
    }
    self = receipt
  }

  /// The receipt as the JSON text that is written, with a final newline.
  package func json() throws(FileError) -> [UInt8] { try JSON.bytes(of: self, to: "write the receipt") }
}

extension FilePath {
  /// The path from a folder on; the whole path where it does not lie in there.
  fileprivate func relative(to folder: FilePath) -> FilePath {
    var path = self
    return path.removePrefix(folder) ? path : self
  }
}

extension Receipt.Salvage {
  /// What the migration of a salvaged store left out, because the app's version has no place for it.
  package struct MigrationLoss: Sendable, Hashable, Codable {
    /// The entity, of the version that was migrated.
    package var entity: String

    /// The property; nil where it is about whole records.
    package var property: String?

    /// The values or records concerned; nil where that is not known.
    package var count: Int64?

    /// What it is, in one sentence without a full stop.
    package var text: String

    /// Something that a migration left out.
    package init(entity: String, property: String?, count: Int64?, text: String) {
      self.entity = entity
      self.property = property
      self.count = count
      self.text = text
    }
  }
}

extension Receipt {
  /// One thing that happened to a quarantined store.
  package struct Moment: Sendable, Hashable, Codable {
    /// What kind of thing: a word that later versions may add to.
    package struct Kind: RawRepresentable, Sendable, Hashable, Codable {
      /// The word.
      package var rawValue: String

      /// A kind by its word.
      package init(rawValue: String) { self.rawValue = rawValue }

      /// It was moved into quarantine.
      package static let quarantined = Kind(rawValue: "quarantined")

      /// A clean store was made of its records.
      package static let salvaged = Kind(rawValue: "salvaged")

      /// Its salvage gave nothing that an app could open.
      package static let salvageFailed = Kind(rawValue: "salvage-failed")

      /// A copy of the salvaged store was put into a store's place.
      package static let installed = Kind(rawValue: "installed")

      /// An empty store was put into its place.
      package static let replaced = Kind(rawValue: "replaced")

      /// It was exported for debugging.
      package static let exported = Kind(rawValue: "exported")

      /// A bundle of it was sent.
      package static let sent = Kind(rawValue: "sent")

      /// It came in with a bundle that was received.
      package static let received = Kind(rawValue: "received")

      /// It was put back.
      package static let released = Kind(rawValue: "released")

      /// Reads the word.
      package init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(String.self)
      }

      /// Writes the word.
      package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
      }
    }

    /// What kind of thing.
    package var kind: Kind

    /// When, in RFC 3339.
    package var date: String

    /// What happened, in words; nil where the kind says it all.
    package var words: String?

    /// The file or folder it is about; nil where there is none.
    package var path: PathText?

    /// A thing that happened.
    package init(_ kind: Kind, at date: Timestamp, words: String? = nil, path: PathText? = nil) {
      self.kind = kind
      self.date = date.rfc3339
      self.words = words
      self.path = path
    }
  }

  /// The most moments that are kept; of more, the first and the latest are.
  private static let maximumMoments = 500

  /// What has happened to the store, oldest first, as far as it is known.
  package var history: [Moment] {
    if let timeline { return timeline }
    var moments: [Moment] = []
    if let date = Timestamp(date) { moments.append(Moment(.quarantined, at: date, words: reason.words)) }
    if let released, let date = Timestamp(released.date) {
      moments.append(Moment(.released, at: date, path: released.path))
    }
    return moments
  }

  /// Adds a moment.
  package mutating func add(_ moment: Moment) {
    var moments = history
    moments.append(moment)
    if moments.count > Self.maximumMoments { moments.removeSubrange(1...(moments.count - Self.maximumMoments)) }
    timeline = moments
  }
}
