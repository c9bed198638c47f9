internal import Lazaret
internal import Platform
internal import SystemPackage

/// The receipt of a quarantined store in bundles without its files.
///
/// An allowlist: numbers, our codes, names of schema and model, versions and times, without file names, paths,
/// checksums and sentences.
struct SharedReceipt: Encodable {
  let receipt: Receipt

  var timeline: [JSON.Object] {
    receipt.history.filter { Self.kinds.contains($0.kind) }.map {
      ["date": Self.time($0.date), "kind": $0.kind.rawValue]
    }
  }

  private static let kinds: [Receipt.Moment.Kind] = [
    .quarantined, .salvaged, .salvageFailed, .installed, .replaced, .exported, .sent, .received, .released,
  ]

  func encode(to encoder: any Encoder) throws {
    let parts = StoreFileSet.Part.allCases.compactMap { part -> JSON.Object? in
      let files = receipt.files.filter { $0.part == part }
      return files.isEmpty ? nil : ["part": part, "files": files.count, "bytes": Self.sum(files.map(\.bytes))]
    }
    let exports = (receipt.exports ?? []).map { export -> JSON.Object in
      [
        "date": Self.time(export.date), "level": BundleLevel(rawValue: export.level), "bytes": export.bytes,
        "encrypted": export.isEncrypted,
      ]
    }
    try encoder.encode([
      "format": "lazaret-shared-receipt", "version": 1, "date": Self.time(receipt.date),
      "reason": receipt.reason.code, "error": receipt.error, "parts": parts,
      "model": receipt.model.map { model -> JSON.Object in
        ["version": model.version, "checksum": model.checksum, "compared": model.isCompared]
      }, "entities": receipt.entities, "versions": receipt.versions, "order": receipt.order,
      "released": receipt.released.flatMap { Self.time($0.date) }, "salvage": receipt.salvage.map(Self.salvage),
      "timeline": timeline, "exports": exports,
      "deliveries": (receipt.deliveries ?? []).compactMap { Self.time($0.date) },
    ])
  }

  /// Saturates, since receipts are untrusted.
  private static func sum(_ numbers: [Int64]) -> Int64 {
    numbers.reduce(0) { sum, number in
      let (total, isTooLarge) = sum.addingReportingOverflow(max(0, number))
      return isTooLarge ? .max : total
    }
  }

  private static func time(_ text: String) -> String? { Timestamp(text)?.rfc3339 }

  private static func salvage(_ salvage: Receipt.Salvage) -> JSON.Object {
    [
      "state": salvage.state, "date": time(salvage.date), "wanted": salvage.isWanted,
      "result": salvage.result.map(result), "others": salvage.others?.count ?? 0, "failure": salvage.failure?.code,
      "installed": salvage.installed.flatMap { time($0.date) },
    ]
  }

  private static func result(_ result: Receipt.Salvage.Result) -> JSON.Object {
    let losses = result.migrationLosses?.map { loss -> JSON.Object in
      ["entity": loss.entity, "property": loss.property, "count": loss.count]
    }
    return [
      "date": time(result.date), "bytes": result.bytes, "version": result.version, "usable": result.isUsable,
      "complete": result.isComplete, "entities": result.entities.map(account),
      "relationships": result.pairs?.map(account), "mayLackTables": result.mayLackTables,
      "valuesSetAside": result.valuesSetAside, "unplacedRows": result.unplacedRows, "migrationLosses": losses,
      "usedKit": result.evidence?.kit != nil, "usedBackup": result.evidence?.backup != nil,
      "deleted": result.evidence?.deleted, "library": result.evidence?.library,
    ]
  }

  /// The recovered records of an entity.
  private static func account(_ entity: Receipt.Salvage.Entity) -> JSON.Object {
    [
      "name": entity.name, "table": entity.table, "recovered": entity.recovered, "doubtful": entity.doubtful,
      "doubtfulReasons": entity.doubtfulReasons, "fromBackup": entity.fromBackup, "setAside": entity.setAside,
      "lost": entity.lost, "lostIsExact": entity.lostIsExact, "lostBasis": entity.lostBasis,
    ]
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
