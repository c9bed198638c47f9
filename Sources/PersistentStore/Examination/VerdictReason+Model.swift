import ManagedObjectModel
import Platform

extension VerdictReason {
  static let looksSound = VerdictReason(
    "no-model-given", "Nothing wrong was found. It was compared with no model.", hint: modelHint)

  static let soundAsFarAsChecked = "In what was checked nothing wrong was found. It was compared with no model."

  private static let modelHint = "Whether the app can open it is told where the app's model is given."

  static let emptyDatabase = VerdictReason("no-tables", "It is a SQLite database without any table.", hint: modelHint)

  static let nothingToDo = "Nothing needs to be done."

  static let nothingToDoAsFarAsSeen =
    "Nothing needs to be done, as far as its schema, its bookkeeping and some of its pages show; not every page and record was looked at."

  static let nothingToDoUncounted =
    "Nothing needs to be done, as far as its schema, its bookkeeping and its pages show; the records were not counted."

  static let nothingToDoUncompared = "Nothing needs to be done, as far as what was checked shows."

  package static let repairRecords =
    "Its records contradict its model. A repair of the records puts references and records right on a copy; the original is kept."

  static let restoreFiles =
    "Files of large values that its records refer to are missing. Restore them from a backup; no repair makes them again."

  /// For unchecked references of Core Data records.
  static let nothingToDoUnlessRecords =
    "Nothing needs to be done, as far as its schema, its bookkeeping, its pages and the numbers of its records show; what they refer to was not looked at."

  static func isCurrent(_ version: String, current: String) -> VerdictReason {
    VerdictReason(
      "current-version",
      version == current
        ? "The store is of the current model version, \(quotedName(version))."
        : "The store is of model version \(quotedName(version)), which stores data just as the current one, \(quotedName(current)).",
      hint: nothingToDo)
  }

  static func hasSchema(_ name: String) -> VerdictReason {
    VerdictReason(
      "has-schema", "The store has every table, column, index, trigger and view of the schema \(quotedName(name)).",
      hint: nothingToDo)
  }

  static func olderVersion(_ version: String, current: String) -> VerdictReason {
    VerdictReason(
      "older-version",
      "The store was written with version \(quotedName(version)) of the model; the app's is \(quotedName(current)).",
      hint: "It has to be migrated before the app can open it; opening it with the app's model does that.",
      coreData: 134100)
  }

  static func unknownOlderVersion(current: String) -> VerdictReason {
    VerdictReason(
      "older-unknown-version",
      "The store was written with a version of the model that is not among the app's, but has nothing that \(quotedName(current)) or an earlier one lacks; it carries its own model.",
      hint: "It can be migrated from the model it carries.", coreData: 134100)
  }

  static func newerVersion(_ version: String, current: String, lacking: [String]) -> VerdictReason {
    let surplus = lacking.isEmpty ? "" : "; the app's lacks \(Examination.list(lacking))"
    return VerdictReason(
      "newer-version",
      "The store was written with version \(quotedName(version)) of the model, which is newer than the app's, \(quotedName(current))\(surplus).",
      hint: "Update the app; the store is left as it is.", coreData: 134100)
  }

  /// The code for a version that the given order omits and that has more than the app's.
  package static let unlistedVersionCode = "unlisted-version"

  package static let listVersion =
    "Name that version where it belongs in the order, or in the lock file; the store is left as it is."

  static func unlistedVersion(_ version: String, current: String, lacking: [String]) -> VerdictReason {
    VerdictReason(
      unlistedVersionCode,
      "The store was written with version \(quotedName(version)) of the model, which is not among the versions whose order was given, so that nothing says whether it is older or newer than the app's, \(quotedName(current)); the app's lacks \(Examination.list(lacking)).",
      hint: listVersion, coreData: 134100)
  }

  static func newerModel(_ surplus: [String], current: String) -> VerdictReason {
    VerdictReason(
      "newer-model",
      "The store was written with a model that has something the app's, \(quotedName(current)), lacks: \(Examination.list(surplus)).",
      hint: "Update the app; the store is left as it is.", coreData: 134100)
  }

  static func mergedModel(_ others: [String], of version: String) -> VerdictReason {
    VerdictReason(
      "newer-model",
      "The store has every entity of version \(quotedName(version)) and \(counted(Int64(others.count), "entity", "entities")) more: \(Examination.list(others.sorted())). Another model is merged in, or the store is of a newer version.",
      hint: "Give the other model as well, or update the app; the store is left as it is.", coreData: 134100)
  }

  static func unreadableVersion(_ version: String, _ error: ModelError) -> VerdictReason {
    VerdictReason(
      "unreadable-version",
      "The store is of none of the model's versions that can be read, and version \(quotedName(version)) cannot be read: \(error.detail).",
      hint: "\(error.hint) The store is left as it is.", coreData: 134130)
  }

  /// Codes of sound stores unrelated to the app's model.
  static let foreignStoreCodes: Set = ["other-model", "other-schema", "not-core-data"]

  private static let foreignStoreHint =
    "It is most likely another app's store. Check the path and the model; it is as it was."

  static func otherModel(_ entities: [String], sharing names: [String]) -> VerdictReason {
    let shared =
      names.isEmpty
      ? "no entity in common with the app's model"
      : "nothing in common with the app's model but \(counted(Int64(names.count), "name")) of \(names.count == 1 ? "an entity" : "entities") (\(Examination.list(names.sorted())))"
    return VerdictReason(
      "other-model", "The store has \(shared); it holds \(Examination.list(entities.sorted())).",
      hint: foreignStoreHint, coreData: 134100)
  }

  static func unknownVersion(_ changed: [String], current: String) -> VerdictReason {
    VerdictReason(
      "unknown-version",
      "The store was written with a version of the model that is not among the app's, and carries no model of its own; it differs from \(quotedName(current)) in \(Examination.list(changed)).",
      hint: "Add the missing model version to the app's models.", coreData: 134130)
  }

  static func notCoreData(isEmpty: Bool, model: String) -> VerdictReason {
    VerdictReason(
      "not-core-data",
      isEmpty
        ? "It is a SQLite database without any table, not a Core Data store of the model \(quotedName(model))."
        : "It is a SQLite database without Core Data's tables, not a store of the model \(quotedName(model)).",
      hint: isEmpty
        ? "Check that it is the right store; a plain SQLite store needs a schema in SQL as its model."
        : foreignStoreHint,
      coreData: 134020)
  }

  static func lacksTables(_ missing: [String], schema: String) -> VerdictReason {
    VerdictReason(
      "lacks-tables",
      "The store lacks what the schema \(quotedName(schema)) has: \(Examination.list(missing)). Nothing else wrong was found; the app's own migrator runs next.",
      hint: "Nothing is changed by opening it; the app's migrator brings it up to the schema.")
  }

  static func otherSchema(_ tables: [String], schema: String) -> VerdictReason {
    VerdictReason(
      "other-schema",
      "The store has no table of the schema \(quotedName(schema)); it has \(Examination.list(tables.filter { !$0.lowercased().hasPrefix("sqlite_") }.sorted())).",
      hint: foreignStoreHint)
  }
}

extension Examination {
  package mutating func tellContradictions() { tellOfRecords(VerdictReason.repairRecords) }

  package mutating func tellMissingFiles() { tellOfRecords(VerdictReason.restoreFiles) }

  package mutating func tellCleanRecords() {
    if verdict == .compatible, reason.hint == VerdictReason.nothingToDoUnlessRecords {
      reason.hint = VerdictReason.nothingToDo
    }
  }

  private mutating func tellOfRecords(_ hint: String) {
    guard verdict == .compatible else { return }
    if reason.code == VerdictReason.looksSound.code {
      reason.words = "Its pages are sound. It was compared with no model."
    }
    reason.hint = hint
  }
}

/// Returns a printable, shortened name.
func printableName(_ name: String) -> String {
  let text = printable(name)
  return text.count > 80 ? text.prefix(79) + "…" : text
}

private func quotedName(_ name: String) -> String { "\"\(printableName(name))\"" }
