import StoreCoordination

/// A backup as the verbs print it.
struct BackupJSON: Encodable {
  struct Problem: Encodable {
    var code: String
    var words: String
    var file: String?

    init(_ problem: StoredBackup.Problem) {
      code = problem.code.rawValue
      words = problem.words
      file = problem.file
    }
  }

  struct Proof: Encodable {
    var result: String
    var depth: String
    var date: String
    var lastRestored: String?
    var problems: [BackupProof.Problem]
    var warnings: [BackupProof.Problem]?
  }

  /// What a migration noted of the records that it removed.
  struct OnlyHere: Encodable {
    var step: String?
    var entities: [OnlyHereNote.Entity]

    init(_ note: OnlyHereNote) {
      step = note.step
      entities = note.entities
    }
  }

  var id: String
  var store: String

  /// The path of the store from the home on; missing where it is not known.
  var path: PathText?
  var folder: PathText
  var state: String
  var date: String
  var bytes: Int64
  var kind: String?
  var reason: String?
  var tags: [String]?
  var parent: String?
  var depth: Int?
  var contentBytes: Int64?
  var ratio: Double?
  var modelVersion: String?
  var modelChecksum: String?
  var entities: [EntityCount]?
  var isSound: Bool?
  var check: BackupManifest.Check?
  var falls: [BackupManifest.Fall]?

  /// Whether a key is needed to know more of it; left out where not.
  var locked: Bool?
  var released: Bool?
  var lineage: StoreLineage?
  var exclusion: String?
  var proof: Proof?

  /// Where what is known of it was read: `own`, `copy`, `earlier` or `rebuilt`; missing where nothing is known.
  var manifest: String?

  /// Whether nothing speaks for what its manifest says until it is verified.
  var unverified: Bool?
  var onlyHere: OnlyHere?
  var problems: [Problem]
  var warnings: [Problem]

  /// - Parameter scope: that of the store that is asked about; nil where none is.
  init(_ backup: StoredBackup, in place: FolderPlace, of scope: EvidenceScope? = nil) {
    id = backup.id.description
    store = place.path.lastComponent?.string ?? ""
    path = place.owner?.path
    folder = PathText(place.path)
    state = backup.state
    date = backup.id.date.rfc3339
    bytes = backup.bytes
    problems = backup.problems.map(Problem.init)
    warnings = backup.warnings.map(Problem.init)
    released = backup.isReleased ? true : nil
    proof = backup.proof.map {
      Proof(
        result: $0.result.rawValue, depth: $0.depth.rawValue, date: $0.date, lastRestored: $0.lastRestored,
        problems: $0.problems, warnings: $0.warnings)
    }
    onlyHere = backup.onlyHere.map { OnlyHere($0) }
    exclusion = scope.flatMap { backup.exclusion(from: $0)?.rawValue }
    guard let manifest = backup.manifest else { return }
    self.manifest = manifest.kind == .original ? nil : backup.manifestSource.rawValue
    unverified = backup.isUnverified ? true : nil
    kind = manifest.kind.rawValue
    reason = manifest.reason.rawValue
    tags = manifest.tags
    parent = manifest.parent?.description
    depth = manifest.depth
    contentBytes = manifest.isLocked ? nil : manifest.contentBytes
    ratio = backup.ratio
    modelVersion = manifest.model?.version ?? manifest.model?.identifiers.first
    modelChecksum = manifest.model?.checksum
    entities = manifest.entities
    isSound = manifest.check.isSound
    check = manifest.check
    falls = manifest.isLocked ? nil : manifest.falls
    locked = manifest.isLocked ? true : nil
    lineage = manifest.lineage
  }
}

extension StoredBackup {
  /// What can be said of it in one word: `broken`, `apart`, `proven`, `failed`, `inconclusive` or `unproven`.
  var state: String {
    if !isWhole { return "broken" }
    if proof?.result == .failed { return "failed" }
    if isApart { return "apart" }
    // What a proof of an earlier version says is as good as the manifest that it trusted.
    if isUnverified { return "unproven" }
    return proof?.result.rawValue ?? "unproven"
  }

  /// The size of its files in parts of what it restores to; nil for what restores to nothing.
  var ratio: Double? {
    guard let manifest, manifest.contentBytes > 0 else { return nil }
    return (Double(manifest.totalBytes) / Double(manifest.contentBytes) * 1000).rounded() / 1000
  }
}

extension BackupManifest.Kind {
  /// The kind in words.
  func words(of manifest: BackupManifest) -> String {
    switch self {
    case .full: "full"
    case .delta: "changes since \(manifest.parent?.description ?? "?")"
    case .evidence: "evidence"
    case .original: "the original that a migration kept"
    }
  }
}
