import Foundation
import Salvage

/// The report of a salvage as it is kept beside the quarantined store: `….salvage.json`.
///
/// Versioned JSON; keys may be added, never changed.
struct SalvageRecord: Encodable {
  /// The account of an entity, or of a table that is no entity's.
  struct Entity: Encodable {
    var name: String
    var table: String
    var recovered: Int64
    var doubtful: Int64
    var rebuilt: Int64
    var lost: Int64
    var lostIsExact: Bool
    var keptApart: Int64
    var deleted: Int64
  }

  /// The states of the pages.
  struct Pages: Encodable {
    var pageSize: Int
    var total: Int
    var states: [String: Int]
    var map: String
  }

  /// One kind of repair.
  struct Repair: Encodable {
    var entity: String
    var property: String?
    var reason: String?
    var count: Int64
    var primaryKeys: [Int64]
  }

  /// How the store was made of the rows.
  struct Rebuild: Encodable {
    var version: String?
    var basis: String
    var referencesCut: [Repair]
    var setAside: [Repair]
    var defaulted: [Repair]
    var conflicts: [Repair]
    var corrected: [Repair]
    var migratedTo: String?
    var steps: [String]
    var migrationFailure: String?
  }

  var format = "lazaret-salvage-report"
  var version = 1
  var id: String
  var date: String
  var library = LibraryVersion.current
  var store: PathText
  var setAside: PathText?
  var complete: Bool
  var score: Double?
  var entities: [Entity]
  var unplacedRows: Int64
  var remarks: [String]
  var pages: Pages
  var rebuild: Rebuild?

  init(_ report: SalvageReport, of id: String, at date: Timestamp, store: PathText, setAside: PathText?) {
    self.id = id
    self.date = date.rfc3339
    self.store = store
    self.setAside = setAside
    complete = report.isComplete
    score = report.recoveredShare
    entities = report.entities.map {
      Entity(
        name: $0.name, table: $0.table, recovered: $0.recovered, doubtful: $0.doubtful, rebuilt: $0.rebuilt,
        lost: $0.lost, lostIsExact: $0.isLostExact, keptApart: $0.keptApart, deleted: $0.deleted)
    }
    unplacedRows = report.unplacedRows
    remarks = report.remarks
    var states: [String: Int] = [:]
    for (state, count) in report.pages.counts { states[state.rawValue] = count }
    pages = Pages(
      pageSize: report.pages.pageSize, total: report.pages.total, states: states, map: report.pages.map)
    rebuild = report.rebuild.map { rebuild in
      func repairs(_ list: [SalvageReport.Rebuild.Repair]) -> [Repair] {
        list.map {
          Repair(
            entity: $0.entity, property: $0.property, reason: $0.reason?.rawValue, count: $0.count,
            primaryKeys: $0.primaryKeys)
        }
      }
      return Rebuild(
        version: rebuild.version, basis: rebuild.basis.rawValue, referencesCut: repairs(rebuild.referencesCut),
        setAside: repairs(rebuild.setAside), defaulted: repairs(rebuild.defaulted),
        conflicts: repairs(rebuild.conflicts), corrected: repairs(rebuild.corrected), migratedTo: rebuild.migratedTo,
        steps: rebuild.steps, migrationFailure: rebuild.migrationFailure)
    }
  }

  /// The JSON text that is written, with a final newline.
  func json() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(self)) + [UInt8(ascii: "\n")]
  }
}

extension SalvageReport {
  /// The share of the store's records that was recovered, from 0 to 1; nil where there were none.
  var recoveredShare: Double? {
    let (recovered, lost) = records.reduce(into: (Int64(0), Int64(0))) { sums, entity in
      sums.0 += entity.recovered
      sums.1 += entity.lost
    }
    return recovered + lost > 0 ? Double(recovered) / Double(recovered + lost) : nil
  }

  /// The accounts of what holds records of the app's, and not what Core Data itself needs: its lists, pairs, and history.
  var records: [Entity] {
    guard isCoreData else { return entities }
    return entities.filter { entity in
      let name = entity.table.uppercased()
      let isOwn = name.hasPrefix("Z_") || ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains(name)
      return entity.name != entity.table || !isOwn
    }
  }
}
