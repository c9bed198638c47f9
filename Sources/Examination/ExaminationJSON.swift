internal import PersistentStore
internal import SQLiteFormat
internal import StoreFiles
package import SystemPackage

/// An examination as `inspect --json` prints it.
///
/// Keys may be added, never changed.
package struct ExaminationJSON: Encodable {
  private let examination: Examination
  private let path: FilePath

  /// An examination of the store at a path.
  package init(examination: Examination, path: FilePath) {
    self.examination = examination
    self.path = path
  }

  private enum Key: String, CodingKey {
    case path
    case verdict
    case reason
    case kind
    case modelVersion
    case versionIdentifiers
    case storeUUID
    case entities
    case drift
    case health
  }

  /// Writes the keys of the contract.
  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(PathText(path), forKey: .path)
    try values.encode(examination.verdict, forKey: .verdict)
    try values.encode(ReasonJSON(examination.reason), forKey: .reason)
    try values.encode(examination.kind, forKey: .kind)
    // Present even where there is none, so that a program can rely on the key.
    try values.encode(examination.modelVersion, forKey: .modelVersion)
    try values.encodeIfPresent(examination.metadata?.versionIdentifiers, forKey: .versionIdentifiers)
    try values.encodeIfPresent(examination.metadata?.uuid, forKey: .storeUUID)
    try values.encode(examination.entities.map { EntityJSON($0) }, forKey: .entities)
    try values.encodeIfPresent(examination.drift.map { DriftJSON($0) }, forKey: .drift)
    try values.encode(HealthJSON(examination.health), forKey: .health)
  }
}

/// The reason of a verdict.
package struct ReasonJSON: Encodable {
  var code: String
  var words: String
  var hint: String
  var coreDataCode: Int?
  var sqliteCode: Int?

  /// The reason as JSON.
  package init(_ reason: VerdictReason) {
    code = reason.code
    words = reason.words
    hint = reason.hint
    coreDataCode = reason.coreDataCode
    sqliteCode = reason.sqliteCode
  }
}

/// The records of an entity; `rows` is null where they were not counted.
struct EntityJSON: Encodable {
  let count: EntityCount

  init(_ count: EntityCount) { self.count = count }

  private enum Key: String, CodingKey {
    case name
    case table
    case rows
  }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(count.name, forKey: .name)
    try values.encode(count.table, forKey: .table)
    try values.encode(count.rows, forKey: .rows)
  }
}

/// The physical state of a store.
struct HealthJSON: Encodable {
  struct Note: Encodable {
    var code: String
    var severity: String
    var words: String
    var count: Int
    var pages: [UInt32]
  }

  struct File: Encodable {
    var part: String
    var path: PathText
    var bytes: Int64
  }

  struct WriteAheadLog: Encodable {
    var frames: Int
    var committedFrames: Int
    var pages: Int
    var databasePages: UInt32?
  }

  var check: String
  var damaged: Bool
  var notes: [Note]
  var files: [File]
  var fileKind: String?
  var pageSize: Int?
  var pageCount: UInt32?
  var encoding: String?
  var writtenBySQLite: String?
  var wal: WriteAheadLog?
  var journal: String?

  init(_ health: Health) {
    check = health.depth.rawValue
    damaged = health.isDamaged
    notes = health.notes.map {
      Note(code: $0.code, severity: $0.severity.rawValue, words: $0.words, count: $0.count, pages: $0.pages)
    }
    files = health.files.map { File(part: $0.part.rawValue, path: PathText($0.path), bytes: $0.status.size) }
    fileKind = health.fileKind?.rawValue
    pageSize = health.pageSize
    pageCount = health.pageCount
    encoding = health.encoding?.jsonName
    writtenBySQLite = health.writtenBySQLite
    wal = health.log.map { log in
      WriteAheadLog(
        frames: log.frames, committedFrames: log.committedFrames, pages: log.pages, databasePages: log.databasePages)
    }
    journal = health.journal?.rawValue
  }
}

extension TextEncoding {
  /// The name that SQLite uses.
  fileprivate var jsonName: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }
}
