import StoreCoordination

/// A restore as `backup restore --json` prints it.
struct RestoreJSON: Encodable {
  struct LostBlock: Encodable {
    var file: String
    var block: Int
  }

  var backup: String
  var chain: [String]
  var store: PathText
  var bytes: Int64
  var values: Int
  var complete: Bool
  var lostBlocks: [LostBlock]
  var lostValues: [String]
  var quarantined: QuarantinedStoreJSON?
  var backupBefore: String?
  var passedOver: [PassedOverJSON]

  init(
    _ report: RestoreReport, quarantined: QuarantinedStore?, before: StoredBackup?, _ choice: BackupChoice,
    in home: ChosenHome
  ) {
    passedOver = choice.passedOver.map { PassedOverJSON($0) }
    backupBefore = before?.id.description
    backup = report.id.description
    chain = report.chain.map(\.description)
    store = PathText(report.path)
    bytes = report.bytes
    values = report.values
    complete = report.isComplete
    lostBlocks = report.lostBlocks.map { LostBlock(file: $0.file, block: $0.block) }
    lostValues = report.lostValues
    self.quarantined = quarantined.map {
      QuarantinedStoreJSON($0, undo: $0.undo(home: home.pathBesidesStore, replacing: true))
    }
  }

  /// The same in words.
  static func text(_ report: RestoreReport, quarantined: QuarantinedStore?, before: StoredBackup?) -> String {
    var lines = "Backup \(report.id) is restored at \(printable(report.path.string)): \(readableSize(report.bytes))"
    lines += report.values > 0 ? ", \(counted(Int64(report.values), "large value"))\n" : "\n"
    if let quarantined { lines += "  What was there is in quarantine as \(quarantined.id).\n" }
    if let before { lines += "  It was backed up before as \(before.id).\n" }
    if !report.lostBlocks.isEmpty {
      lines += "  \(counted(Int64(report.lostBlocks.count), "block")) of the backup lost\n"
    }
    if !report.isContentRight { lines += "  What is left was salvaged; look at it with: lazaret inspect\n" }
    for name in report.lostValues { lines += "  The large value \(printable(name)) is lost\n" }
    return lines
  }
}

/// A newer backup that was not restored, as `backup restore --json` prints it.
struct PassedOverJSON: Encodable {
  var id: String
  var code: String
  var words: String

  init(_ passed: BackupChoice.PassedOver) {
    id = passed.id.description
    code = passed.reason.rawValue
    words = passed.words
  }

  /// The newer backups that were passed over, a line for each.
  static func text(_ choice: BackupChoice) -> String {
    choice.passedOver.map { "  Passed over \($0.id): it \(printable($0.words)).\n" }.joined()
  }
}

/// A preview as `backup restore --preview --json` prints it.
struct PreviewJSON: Encodable {
  struct Entity: Encodable {
    var name: String
    var table: String
    var added: Int64
    var changed: Int64
    var lost: Int64
    var unchanged: Int64
  }

  struct Pairs: Encodable {
    var table: String
    var added: Int64
    var lost: Int64
  }

  var backup: String
  var store: PathText
  var present: String
  var harmless: Bool
  var entities: [Entity]
  var pairs: [Pairs]
  var remarks: [String]

  init(_ preview: RestorePreview, _ id: BackupIdentifier, _ path: FilePath) {
    backup = id.description
    store = PathText(path)
    present = preview.present.rawValue
    harmless = preview.isHarmless
    entities = preview.entities.map {
      Entity(
        name: $0.name, table: $0.table, added: $0.added, changed: $0.changed, lost: $0.lost, unchanged: $0.unchanged)
    }
    pairs = preview.pairs.map { Pairs(table: $0.table, added: $0.added, lost: $0.lost) }
    remarks = preview.remarks
  }

  /// The same in words.
  static func text(_ preview: RestorePreview, _ id: BackupIdentifier, _ path: FilePath) -> String {
    var lines = "Restoring \(id) over \(printable(path.string)) would change:\n"
    switch preview.present {
    case .sound: break
    case .damaged: lines += "  The store is damaged; compared is what could be salvaged of it\n"
    case .missing: lines += "  There is no store now\n"
    }
    var table = TextTable(["", "added", "changed", "lost", "unchanged"], numericColumns: [1, 2, 3, 4])
    for entity in preview.entities {
      table.append([
        printable(entity.name), "\(entity.added)", "\(entity.changed)", "\(entity.lost)", "\(entity.unchanged)",
      ])
    }
    for pairs in preview.pairs {
      table.append(["pairs of \(printable(pairs.table))", "\(pairs.added)", "", "\(pairs.lost)", ""])
    }
    lines += table.text()
    for remark in preview.remarks { lines += "  \(remark)\n" }
    return lines
  }
}

/// An extraction as `backup restore --entity --json` prints it.
struct ExtractionJSON: Encodable {
  struct Entity: Encodable {
    var name: String
    var records: Int64
  }

  struct Cut: Encodable {
    var entity: String
    var relationship: String
    var count: Int64
  }

  var backup: String
  var store: PathText
  var entities: [Entity]
  var referencesCut: [Cut]
  var missingKeys: [Int64]
  var values: Int

  init(_ report: ExtractionReport) {
    backup = report.id.description
    store = PathText(report.path)
    entities = report.entities.map { Entity(name: $0.name, records: $0.records) }
    referencesCut = report.cut.map { Cut(entity: $0.entity, relationship: $0.relationship, count: $0.count) }
    missingKeys = report.missing
    values = report.values
  }

  /// The same in words.
  static func text(_ report: ExtractionReport) -> String {
    var lines = "Records of backup \(report.id) are in \(printable(report.path.string)):\n"
    for entity in report.entities { lines += "  \(printable(entity.name)): \(counted(entity.records, "record"))\n" }
    for cut in report.cut {
      lines += "  \(printable(cut.entity)).\(printable(cut.relationship)): "
      lines += "\(counted(cut.count, "reference")) to records that were left out cut\n"
    }
    if !report.missing.isEmpty {
      lines += "  Not there: \(report.missing.map(String.init).joined(separator: ", "))\n"
    }
    return lines
  }
}
