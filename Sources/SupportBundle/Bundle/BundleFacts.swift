public import Platform

/// What every bundle says about its store, at whatever level: `data/facts.json`.
///
/// No byte of the user's is in it: numbers, names of tables, columns and versions, and states.
public struct BundleFacts: Sendable, Hashable, Codable {
  /// The path of the file, below `data/`.
  public static let name = "facts.json"

  /// The version of this form: 1.
  public var formatVersion = 1

  /// How much of the store is in the bundle.
  public var level: BundleLevel

  /// When the bundle was made, in RFC 3339.
  public var date: String

  /// The identifier of the app, such as `com.example.Garage`; nil where it is not known.
  public var app: String?

  /// What the store is called, without any folder.
  public var store: String

  /// The name that the store has in quarantine; nil where it is in its place.
  public var quarantineID: String?

  /// The word for what was found, such as `damaged`.
  public var verdict: String

  /// The code of the reason why it was quarantined, or of what was found.
  public var reason: String

  /// The code of the likeliest cause; nil where none was found.
  public var cause: String?

  /// How many pages are in each state, by the state's word.
  public var pageStates: [String: Int64]

  /// The tables, by entity where one is known, with damaged pages; sorted.
  public var damagedTables: [String]

  /// The size of a page in bytes; nil where nothing tells.
  public var pageSize: Int?

  /// The size of the store's files together, in bytes.
  public var bytes: Int64

  /// The name of the model's version; nil where it could not be told.
  public var modelVersion: String?

  /// The checksum over the entities' hashes; nil where it is not known.
  public var modelChecksum: String?

  /// The versions of everything that had a part in it, the app's among them.
  public var versions: SoftwareVersions

  /// The path, below `data/`, of the store's main file; nil where the level has none.
  public var storePath: String?

  /// Facts.
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
