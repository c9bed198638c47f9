public import Platform

/// What is written down of a migration that failed, to be sent to those who can help.
///
/// Versioned JSON; keys may be added, never changed. It holds names, numbers and primary keys, but no value of a record,
/// and of paths only file names.
public struct MigrationReport: Sendable, Hashable, Codable {
  /// A file of the store.
  public struct File: Sendable, Hashable, Codable {
    /// Which part of the set it is.
    public var part: StoreFileSet.Part

    /// Its size in bytes.
    public var bytes: Int64
  }

  /// One step of the way.
  public struct Step: Sendable, Hashable, Codable {
    /// How far it came.
    public enum State: String, Sendable, Hashable, Codable {
      case waiting

      /// It was begun and did not end.
      case begun

      /// It was finished and verified.
      case finished
    }

    /// Such as `V1 → V2`.
    public var name: String

    /// The custom mapping, by its name or its kind; nil for an inferred one.
    public var mapping: String?

    /// How far it came.
    public var state: State

    /// How long it took in this run, in seconds; nil where an earlier run finished it, or where it was not begun.
    public var seconds: Double?

    /// What it did, where it was finished.
    public var account: StepAccount?
  }

  /// What stood in the way.
  public struct Failure: Sendable, Hashable, Codable {
    /// The error's stable word.
    public var code: String

    /// What was being done, as an infinitive phrase.
    public var operation: String

    /// What went wrong, in one sentence without a full stop.
    public var detail: String

    /// What can be done next.
    public var hint: String

    /// Core Data's number for it, where it has one.
    public var coreDataCode: Int?

    /// The step that it is about, where it is about one.
    public var step: String?

    /// The entity that it is about, where it is about one.
    public var entity: String?

    /// The property that it is about, where it is about one.
    public var property: String?

    /// Whether the surroundings are at fault and not the store or the model.
    public var isEnvironmental: Bool

    /// Why no mapping can be inferred, where that is the failure; the first fifty reasons.
    public var refusals: [Refusal]
  }

  /// One reason why no mapping can be inferred.
  public struct Refusal: Sendable, Hashable, Codable {
    /// What stands in the way.
    public var kind: MigrationRefusal.Kind

    /// The entity it is about.
    public var entity: String

    /// The property it is about, where it is about one.
    public var property: String?

    /// What exactly stands against what.
    public var detail: String
  }

  /// The versions of everything that had a part in it.
  public struct Versions: Sendable, Hashable, Codable {
    /// The app's own, where its makers gave one.
    public var app: String?

    /// This library's version.
    public var library: String

    /// The SQLite that this process ran with.
    public var sqlite: String

    /// The operating system in words.
    public var operatingSystem: String
  }

  /// What kind of file this is.
  public var format = "lazaret-migration-report"

  /// The version of its format.
  public var version = 1

  /// When it failed, in RFC 3339.
  public var date: String

  /// The store's file name.
  public var store: String

  /// The store's files, external ones left out.
  public var files: [File]

  /// The bytes that were free beside the store; nil where the system did not tell.
  public var freeBytes: Int64?

  /// The bytes that the migration needs; nil where it did not get far enough to tell.
  public var neededBytes: Int64?

  /// The app's model.
  public var model: String

  /// The versions of the model, oldest first.
  public var modelVersions: [String]

  /// The version that the store is of, where it is one of the app's.
  public var from: String?

  /// The version that it was to become; nil where no way was found.
  public var to: String?

  /// The steps of the way; empty where no way was found.
  public var steps: [Step]

  /// What went wrong.
  public var failure: Failure

  /// How long it took, in seconds.
  public var seconds: Double

  /// The most memory that the process has had, in bytes.
  public var peakMemory: Int64?

  /// The versions of everything that had a part in it.
  public var versions: Versions
}

extension MigrationReport.Failure {
  private static let limit = 2_000

  /// - Parameter folder: the folder of the store, which a report does not tell.
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
