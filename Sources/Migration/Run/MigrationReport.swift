internal import Foundation
public import Platform

/// The report of a failed migration, for support.
///
/// Versioned JSON; keys may be added, never changed. It has names, numbers and primary keys, but no record values, and
/// only file names of paths.
public struct MigrationReport: Sendable, Hashable, Codable {
  /// A file of the store.
  public struct File: Sendable, Hashable, Codable {
    /// The part of the set.
    public var part: StoreFileSet.Part

    /// The size in bytes.
    public var bytes: Int64
  }

  /// A step.
  public struct Step: Sendable, Hashable, Codable {
    /// The progress.
    public enum State: String, Sendable, Hashable, Codable {
      case waiting

      /// Begun, not ended.
      case begun

      /// Finished and verified.
      case finished
    }

    /// The name, such as `V1 → V2`.
    public var name: String

    /// The custom mapping's name or kind; nil if inferred.
    public var mapping: String?

    /// The progress.
    public var state: State

    /// The seconds in this run; nil if not run.
    public var seconds: Double?

    /// The account of a finished step.
    public var account: StepAccount?
  }

  /// The failure.
  public struct Failure: Sendable, Hashable, Codable {
    /// The error code.
    public var code: String

    /// The operation, as an infinitive phrase.
    public var operation: String

    /// The error as a sentence without a full stop.
    public var detail: String

    /// The next action.
    public var hint: String

    /// Core Data's error code.
    public var coreDataCode: Int?

    /// The step.
    public var step: String?

    /// The entity.
    public var entity: String?

    /// The property.
    public var property: String?

    /// Whether the environment is at fault.
    public var isEnvironmental: Bool

    /// The first fifty refusals.
    public var refusals: [Refusal]
  }

  /// A reason that no mapping can be inferred.
  public struct Refusal: Sendable, Hashable, Codable {
    /// The kind of obstacle.
    public var kind: MigrationRefusal.Kind

    /// The entity.
    public var entity: String

    /// The property.
    public var property: String?

    /// The conflict.
    public var detail: String
  }

  /// The versions involved.
  public struct Versions: Sendable, Hashable, Codable {
    /// The app's version, if given.
    public var app: String?

    /// The library's version.
    public var library: String

    /// The process's SQLite version.
    public var sqlite: String

    /// The operating system.
    public var operatingSystem: String
  }

  /// The file kind.
  public var format = "lazaret-migration-report"

  /// The format version.
  public var version = 1

  /// The time of failure in RFC 3339.
  public var date: String

  /// The store's file name.
  public var store: String

  /// The store's files, without external ones.
  public var files: [File]

  /// The free bytes next to the store, if known.
  public var freeBytes: Int64?

  /// The needed bytes; nil if not yet known.
  public var neededBytes: Int64?

  /// The app's model.
  public var model: String

  /// The model versions, oldest first.
  public var modelVersions: [String]

  /// The store's version, if one of the app's.
  public var from: String?

  /// The target version; nil without a path.
  public var to: String?

  /// The steps; empty without a path.
  public var steps: [Step]

  /// The failure.
  public var failure: Failure

  /// The duration in seconds.
  public var seconds: Double

  /// The peak memory in bytes.
  public var peakMemory: Int64?

  /// The versions involved.
  public var versions: Versions
}

extension MigrationReport.Failure {
  private static let limit = 2_000

  /// - Parameter folder: The store's folder, which the report hides.
  init(_ error: MigrationError, hiding folder: String) {
    func plain(_ text: String) -> String {
      let hidden = folder.count > 1 ? text.replacing(folder + "/", with: "") : text
      return String(printable(hidden).prefix(Self.limit))
    }
    code = error.code
    operation = plain(error.operation)
    detail = plain(error.detail)
    hint = plain(error.hint)
    coreDataCode = error.coreDataCode
    step = error.step.map(plain)
    entity = error.entityName.map(plain)
    property = error.propertyName.map(plain)
    isEnvironmental = error.isEnvironmental
    refusals = error.refusals.prefix(50).map {
      MigrationReport.Refusal(
        kind: $0.kind, entity: plain($0.entityName), property: $0.property.map { plain($0.description) },
        detail: plain($0.detail))
    }
  }
}

/// The treatment of an entity's records.
public enum EntityWay: String, Sendable, Hashable, Codable, CaseIterable {
  /// The entity is new, with an empty table or none.
  case added

  /// Unchanged, byte for byte.
  case unchanged

  /// Unchanged; the entity or properties are renamed.
  case renamed

  /// Kept; new columns are added, with defaults filled in.
  case inPlace = "in-place"

  /// Rewritten.
  case rebuilt

  case custom

  case removed
}

/// The counts of a migration step.
public struct StepAccount: Sendable, Hashable, Codable {
  /// The records of a destination entity.
  public struct EntityRows: Sendable, Hashable, Codable {
    /// The destination entity.
    public var entity: String

    /// Their source entity; nil if new.
    public var source: String?

    /// The count.
    public var rows: Int
  }

  /// The step, such as `V1 → V2`.
  public var step: String

  /// The method.
  public var way: MigrationWay

  /// The destination entities' records, by number.
  public var entities: [EntityRows] = []

  /// The records deleted with their source entity.
  public var removedRows: [String: Int] = [:]

  /// The losses with record counts.
  public var losses: [MigrationPlan.Finding] = []

  /// The records a custom mapping left out, by source entity.
  public var filteredRows: [String: Int] = [:]

  /// The removed entities' changes left out of persistent history.
  public var removedChanges = 0

  /// The app's indexes and triggers left behind.
  public var leftBehind: [String] = []

  /// The repair, if the step is one.
  public var repair: RepairAccount?
}

/// The method of a step.
public enum MigrationWay: String, Sendable, Hashable, Codable {
  /// Adds and renames columns in a copy.
  case inPlace = "in-place"

  /// Fills a new store from the old one.
  case rebuild

  /// Adds missing model parts to a copy.
  case repair
}

/// The metrics of a migration, a line of `migrations.jsonl`.
public struct MigrationMetrics: Sendable, Hashable, Codable {
  /// The end in RFC 3339.
  public var date: String

  /// The store's file name.
  public var store: String

  /// The previous version; nil if the app has none of that name.
  public var from: String?

  /// The present version.
  public var to: String

  /// The number of steps, with those of earlier runs.
  public var steps: Int

  /// The steps an earlier run finished.
  public var resumedSteps: Int

  /// The seconds of this run.
  public var seconds: Double

  /// The records of the last step.
  public var rows: Int

  /// The peak memory in bytes, if known.
  public var peakMemory: Int64?

  /// The size before, without external files, in bytes.
  public var bytesBefore: Int64

  /// The size after, without external files, in bytes.
  public var bytesAfter: Int64

  /// The metrics on one line.
  public var words: String {
    let memory = peakMemory.map { ", \(readableSize($0)) of memory" } ?? ""
    let time = String(format: "%.3f", seconds)
    return "\(from ?? "the store's model") → \(to) in \(counted(steps, "step")): \(counted(rows, "row")), \(time) s"
      + "\(memory), \(counted(bytesBefore, "byte")) before, \(grouped(bytesAfter)) after"
  }

  /// The peak memory in bytes, if known.
  static func processPeakMemory() -> Int64? {
    // Linux only.
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return line?.split(separator: " ").compactMap { Int64($0) }.first.map { $0 * 1024 }
  }
}

extension StepAccount {
  /// The records of all destination entities.
  public var rows: Int { repair?.rows ?? entities.reduce(0) { $0 + $1.rows } }
}
