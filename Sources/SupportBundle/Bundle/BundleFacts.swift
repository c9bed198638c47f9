public import Platform

/// The facts of a store in every bundle: `data/facts.json`.
///
/// They hold no user data: only numbers, states, and names of tables, columns and versions.
public struct BundleFacts: Sendable, Hashable, Codable {
  /// The path of the file, below `data/`.
  public static let name = "facts.json"

  /// The version of this format: 1.
  public var formatVersion = 1

  /// How much of the store is in the bundle.
  public var level: BundleLevel

  /// When the bundle was made, in RFC 3339.
  public var date: String

  /// The identifier of the app, such as `com.example.Garage`; nil if unknown.
  public var app: String?

  /// The name of the store, without folders.
  public var store: String

  /// The store's name in quarantine; nil for a live store.
  public var quarantineID: String?

  /// The finding in one word, such as `damaged`.
  public var verdict: String

  /// The code of the reason for the quarantine, or of the finding.
  public var reason: String

  /// The code of the likeliest cause, if any.
  public var cause: String?

  /// The number of pages by state.
  public var pageStates: [String: Int64]

  /// The tables with damaged pages, by entity if known; sorted.
  public var damagedTables: [String]

  /// The page size in bytes, if known.
  public var pageSize: Int?

  /// The size of all files of the store, in bytes.
  public var bytes: Int64

  /// The name of the model version, if known.
  public var modelVersion: String?

  /// The checksum over the entity hashes, if known.
  public var modelChecksum: String?

  /// The versions of the software involved, including the app.
  public var versions: SoftwareVersions

  /// The path of the store's main file below `data/`, if included.
  public var storePath: String?

  /// Creates facts.
  public init(
    level: BundleLevel, date: Timestamp, app: String?, store: String, quarantineID: String? = nil, verdict: String,
    reason: String, cause: String? = nil, pageStates: [String: Int64], damagedTables: [String], pageSize: Int?,
    bytes: Int64, modelVersion: String?, modelChecksum: String?, versions: SoftwareVersions, storePath: String? = nil
  ) {
    self.level = level
    self.date = date.rfc3339
    self.app = app
    self.store = store
    self.quarantineID = quarantineID
    self.verdict = verdict
    self.reason = reason
    self.cause = cause
    self.pageStates = pageStates
    self.damagedTables = damagedTables
    self.pageSize = pageSize
    self.bytes = bytes
    self.modelVersion = modelVersion
    self.modelChecksum = modelChecksum
    self.versions = versions
    self.storePath = storePath
  }
}

/// How much of a store leaves the machine with a bundle.
public enum BundleLevel: String, Sendable, Hashable, Codable, CaseIterable {
  /// Numbers, states, and names of tables and columns: no user data.
  case facts

  /// The facts, and the damaged, orphan and schema pages unchanged.
  case damagedPages = "damaged-pages"

  /// The facts, and the whole damaged store with replaced values, except those that the report lists.
  case scrubbed

  /// Everything, byte for byte.
  case full

  /// The description for the user who is asked for consent.
  public var words: String {
    switch self {
    case .facts: "only numbers, names of tables and columns, and what is damaged; none of your data"
    case .damagedPages: "the facts, and the damaged pages as they are; they can hold some of your data"
    case .scrubbed: "the facts, and the whole store with meaningless values of the same length in the place of its own"
    case .full: "everything, byte for byte, all your data included"
    }
  }
}
