internal import Lazaret
internal import Platform
internal import SystemPackage

/// The receipt of a quarantined store in bundles without its files.
///
/// An allowlist: numbers, our codes, names of schema and model, versions and times, without file names, paths,
/// checksums and sentences.
struct SharedReceipt: Encodable {
  struct Part: Encodable {
    var part: StoreFileSet.Part
    var files: Int
    var bytes: Int64
  }

  struct Moment: Encodable {
    var date: String?
    var kind: String
  }

  struct Export: Encodable {
    var date: String?
    var level: String?
    var bytes: Int64
    var encrypted: Bool
  }

  struct Loss: Encodable {
    var entity: String
    var property: String?
    var count: Int64?
  }

  /// The recovered records of an entity.
  struct Account: Encodable {
    var name: String
    var table: String
    var recovered: Int64
    var doubtful: Int64
    var doubtfulReasons: [String: Int64]?
    var fromBackup: Int64?
    var setAside: Int64?
    var lost: Int64
    var lostIsExact: Bool
    var lostBasis: String?

    init(_ entity: Receipt.Salvage.Entity) {
      name = entity.name
      table = entity.table
      recovered = entity.recovered
      doubtful = entity.doubtful
      doubtfulReasons = entity.doubtfulReasons
      fromBackup = entity.fromBackup
      setAside = entity.setAside
      lost = entity.lost
      lostIsExact = entity.lostIsExact
      lostBasis = entity.lostBasis
    }
  }

  struct Result: Encodable {
    var date: String?
    var bytes: Int64
    var version: String?
    var usable: Bool
    var complete: Bool
    var entities: [Account]
    var relationships: [Account]?
    var mayLackTables: Bool?
    var valuesSetAside: Int64?
    var unplacedRows: Int64?
    var migrationLosses: [Loss]?
    var usedKit: Bool
    var usedBackup: Bool
    var deleted: Bool?
    var library: String?
  }

  struct Salvage: Encodable {
    var state: Receipt.Salvage.State
    var date: String?
    var wanted: Bool
    var result: Result?
    var others: Int
    var failure: String?
    var installed: String?
  }

  struct Model: Encodable {
    var version: String?
    var checksum: String?
    var compared: Bool?
  }

  let format = "lazaret-shared-receipt"
  let version = 1
  let date: String?
  let reason: String
  let error: Receipt.ErrorCodes
  let parts: [Part]
  let model: Model?
  let entities: [EntityCount]?
  let versions: SoftwareVersions
  let order: Int?
  let released: String?
  let salvage: Salvage?
  let timeline: [Moment]
  let exports: [Export]
  let deliveries: [String]

  private static let kinds: [Receipt.Moment.Kind] = [
    .quarantined, .salvaged, .salvageFailed, .installed, .replaced, .exported, .sent, .received, .released,
  ]

  init(_ receipt: Receipt) {
    date = Self.time(receipt.date)
    reason = receipt.reason.code
    error = receipt.error
    parts = StoreFileSet.Part.allCases.compactMap { part in
      let files = receipt.files.filter { $0.part == part }
      return files.isEmpty
        ? nil : Part(part: part, files: files.count, bytes: Self.sum(files.map(\.bytes)))
    }
    model = receipt.model.map { Model(version: $0.version, checksum: $0.checksum, compared: $0.isCompared) }
    entities = receipt.entities
    versions = receipt.versions
    order = receipt.order
    released = receipt.released.flatMap { Self.time($0.date) }
    salvage = receipt.salvage.map(Self.salvage)
    timeline = receipt.history.filter { Self.kinds.contains($0.kind) }.map {
      Moment(date: Self.time($0.date), kind: $0.kind.rawValue)
    }
    exports = (receipt.exports ?? []).map { export in
      Export(
        date: Self.time(export.date), level: BundleLevel(rawValue: export.level)?.rawValue, bytes: export.bytes,
        encrypted: export.isEncrypted)
    }
    deliveries = (receipt.deliveries ?? []).compactMap { Self.time($0.date) }
  }

  /// Saturates, since receipts are untrusted.
  private static func sum(_ numbers: [Int64]) -> Int64 {
    numbers.reduce(0) { sum, number in
      let (total, isTooLarge) = sum.addingReportingOverflow(max(0, number))
      return isTooLarge ? .max : total
    }
  }

  private static func time(_ text: String) -> String? { Timestamp(text)?.rfc3339 }

  private static func salvage(_ salvage: Receipt.Salvage) -> Salvage {
    Salvage(
      state: salvage.state, date: time(salvage.date), wanted: salvage.isWanted, result: salvage.result.map(result),
      others: salvage.others?.count ?? 0, failure: salvage.failure?.code,
      installed: salvage.installed.flatMap { time($0.date) })
  }

  private static func result(_ result: Receipt.Salvage.Result) -> Result {
    Result(
      date: time(result.date), bytes: result.bytes, version: result.version, usable: result.isUsable,
      complete: result.isComplete, entities: result.entities.map(Account.init),
      relationships: result.pairs?.map(Account.init),
      mayLackTables: result.mayLackTables, valuesSetAside: result.valuesSetAside,
      unplacedRows: result.unplacedRows,
      migrationLosses: result.migrationLosses?.map { Loss(entity: $0.entity, property: $0.property, count: $0.count) },
      usedKit: result.evidence?.kit != nil, usedBackup: result.evidence?.backup != nil,
      deleted: result.evidence?.deleted, library: result.evidence?.library)
  }
}

extension Receipt {
  /// The receipt without free texts, to find the lines that do not depend on them.
  var withoutTexts: Receipt {
    let blank = PathText(FilePath(""))
    var receipt = self
    receipt.reason.words = ""
    receipt.originalPath = blank
    for index in receipt.files.indices {
      receipt.files[index].name = blank
      receipt.files[index].originalPath = blank
      receipt.files[index].sha256 = ""
    }
    receipt.timeline = history.map { moment in
      var moment = moment
      moment.words = nil
      moment.path = nil
      return moment
    }
    for index in (exports ?? []).indices {
      receipt.exports?[index].path = blank
      receipt.exports?[index].sha256 = ""
    }
    for index in (deliveries ?? []).indices {
      receipt.deliveries?[index].receiver = ""
      receipt.deliveries?[index].id = ""
      receipt.deliveries?[index].sha256 = ""
    }
    receipt.salvage?.failure?.words = ""
    receipt.salvage?.result?.name = blank
    receipt.salvage?.result?.report = blank
    receipt.salvage?.result?.setAside = nil
    receipt.salvage?.result?.sha256 = ""
    return receipt
  }
}
