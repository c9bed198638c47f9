package import StoreFiles

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
