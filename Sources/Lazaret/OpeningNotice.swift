import Migration
internal import PersistentStore
package import Platform
import Salvage
package import SystemPackage

/// Text for the app's user, with keys for translation.
package struct OpeningNotice: Sendable, Hashable, Codable {
  package struct Action: Sendable, Hashable, Codable {
    /// The translation key and identity.
    package var key: String

    var title: String

    package init(key: String, title: String) {
      self.key = key
      self.title = title
    }
  }

  /// The translation key.
  ///
  /// `lazaret.notice.damaged`, `.incompatible`, `.migration`, `.leftovers` or `.set-aside` with an empty store;
  /// `.salvage-later` with recoverable records; `.salvaged`, `.salvaged-unconfirmed`, `.salvaged-with-losses` or
  /// `.salvaged-nothing` with a salvaged store; `.migrated-without` if the app's version cannot hold some records;
  /// `.repaired` after adding missing parts, `.repaired-with-losses` with dangling references.
  package var key: String

  package var title: String

  /// The account in two or three sentences.
  package var message: String

  /// The possible actions, the usual choice first.
  package var actions: [Action]

  /// The support report of a failed migration.
  package var report: PathText?

  /// Offered for a quarantined store.
  static let sendReport = Action(key: "lazaret.action.send-report", title: "Send a Report to Support")

  package init(key: String, title: String, message: String, actions: [Action], report: PathText? = nil) {
    self.key = key
    self.title = title
    self.message = message
    self.actions = actions
    self.report = report
  }

  private static let usualActions = [
    Action(key: "lazaret.action.continue", title: "Continue"), sendReport,
    Action(key: "lazaret.action.contact-support", title: "Contact Support"),
  ]

  /// Returns the notice for the events of an opening, if they need one.
  ///
  /// Its text has no number and no database term: those are for the developer, in the events and the report.
  ///
  /// - Parameter report: the report of the migration failure that caused a quarantine.
  package static func about(_ events: [OpeningEvent], report: FilePath?) -> OpeningNotice? {
    // Other runs' quarantines are reported too.
    guard let reason = events.last(where: { $0.reason != nil })?.reason else {
      return leftOut(by: events) ?? repaired(by: events)
    }
    let salvage = events.last { $0.salvage != nil }?.salvage
    return setAside(reason, salvage, report: report.map { PathText($0) })
  }

  /// Returns the notice for a quarantine and the store installed instead.
  private static func setAside(_ reason: Receipt.Reason, _ salvage: OpeningSalvage?, report: PathText?) -> OpeningNotice
  {
    if let salvage, salvage.isInstalled { return salvaged(reason, salvage, report: report) }
    let key = key(for: reason.code)
    if salvage?.state == .pending {
      return OpeningNotice(
        key: "lazaret.notice.salvage-later", title: "Your data was set aside",
        message:
          "\(cause(of: reason.code)) It was not deleted: all of it was set aside, and you start with an empty one. Your data can be recovered from it later.",
        actions: [
          Action(key: "lazaret.action.continue", title: "Continue"),
          Action(key: "lazaret.action.recover", title: "Recover My Data"), sendReport,
          Action(key: "lazaret.action.contact-support", title: "Contact Support"),
        ], report: report)
    }
    let kept =
      switch key {
      case "leftovers": "They were not deleted: they were set aside, and you start with an empty file."
      case "empty": "It was not deleted: it was set aside, and you start with a new one."
      default: "It was not deleted: all of it was set aside, and you start with an empty one."
      }
    return OpeningNotice(
      key: "lazaret.notice.\(key)", title: key == "empty" ? "Your file was empty" : "Your data was set aside",
      message: "\(cause(of: reason.code)) \(kept) \(support)", actions: usualActions, report: report)
  }

  private static func salvaged(_ reason: Receipt.Reason, _ salvage: OpeningSalvage, report: PathText?) -> OpeningNotice
  {
    let isWhole = salvage.count.detailWords.isEmpty && salvage.doubtful == 0 && salvage.lacksDetails == false
    let (key, title, words): (String, String, String) =
      if salvage.isComplete {
        ("salvaged", "Your data was recovered", "All of your data was recovered from it. \(old)")
      } else if salvage.recovered == 0 {
        (
          "salvaged-nothing", "Your data was set aside",
          "None of your data was recovered. You start with an empty file. \(old) \(support)"
        )
      } else if isWhole {
        // No loss is known, so the text must not claim one.
        (
          "salvaged-unconfirmed", "Your data was recovered",
          "Your data was recovered. Please check that it is complete. \(old) \(support)"
        )
      } else {
        (
          "salvaged-with-losses", "Your data was recovered in part",
          "\(salvage.hasMost ? "Most" : "Part") of your data was recovered. Some entries may be missing or incomplete. \(old) \(support)"
        )
      }
    return OpeningNotice(
      key: "lazaret.notice.\(key)", title: title, message: "\(cause(of: reason.code)) \(words)", actions: usualActions,
      report: report)
  }

  private static let old = "The old file was kept as it was."

  private static let support = "Our support can look at it."

  /// Returns the notice for entities that a migration left out.
  private static func leftOut(by events: [OpeningEvent]) -> OpeningNotice? {
    guard events.contains(where: { $0.migration?.removedRows.values.contains { $0 > 0 } == true }) else { return nil }
    return OpeningNotice(
      key: "lazaret.notice.migrated-without", title: "Your data was updated",
      message: "This version of the app has no place for some of your entries. They were not deleted. \(old)",
      actions: usualActions)
  }

  /// The key of a repair without losses.
  static let repairedKey = "lazaret.notice.repaired"

  private static func repaired(by events: [OpeningEvent]) -> OpeningNotice? {
    guard let repair = events.lazy.compactMap(\.repair).first else { return nil }
    let added = "Parts of the file with your data were missing and were added."
    if repair.danglingReferences > 0 || repair.hasLostRecords {
      return OpeningNotice(
        key: "lazaret.notice.repaired-with-losses", title: "Your data was repaired in part",
        message: "\(added) Some entries may be missing or incomplete. \(old) \(support)", actions: usualActions)
    }
    return OpeningNotice(
      key: repairedKey, title: "Your data was repaired", message: "\(added) Nothing was removed. \(old)",
      actions: [
        Action(key: "lazaret.action.continue", title: "Continue"),
        Action(key: "lazaret.action.contact-support", title: "Contact Support"),
      ])
  }

  private static func cause(of code: String) -> String {
    switch key(for: code) {
    case "migration": "The file with your data could not be brought to this version of the app."
    case "repair": "The file with your data lacks parts that could not be added."
    case "incompatible": "The file with your data does not fit this version of the app."
    case "leftovers": "The file with your data was missing; only parts of it were found."
    case "set-aside": "The file with your data was set aside on request."
    case "empty": "The file with your data was empty."
    default: "The file with your data was damaged and could not be opened."
    }
  }

  /// Returns the stable word for a reason's code.
  static func key(for code: String) -> String {
    switch code {
    case VerdictReason.migrationFailedCode: "migration"
    case VerdictReason.repairFailedCode: "repair"
    case "other-model", "unknown-version", "not-core-data", "other-schema", VerdictReason.notMigratableCode:
      "incompatible"
    case QuarantineCase.leftoversCode: "leftovers"
    case QuarantineCase.requestCode: "set-aside"
    case "empty-file": "empty"
    default: "damaged"
    }
  }
}
