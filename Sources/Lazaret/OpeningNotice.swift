import Migration
internal import PersistentStore
package import Platform
import Salvage
package import SystemPackage

/// Words for the app's user, ready to show, and keys to translate them by.
package struct OpeningNotice: Sendable, Hashable, Codable {
  /// A choice that the app may offer.
  package struct Action: Sendable, Hashable, Codable {
    /// The key to translate the title by; also what tells the actions apart.
    package var key: String

    /// The words on the button.
    package var title: String

    /// A choice.
    package init(key: String, title: String) {
      self.key = key
      self.title = title
    }
  }

  /// The key to translate title and message by: `lazaret.notice.damaged`, `.incompatible`, `.migration`, `.leftovers` or
  /// `.set-aside` where an empty store is in the place, `.salvage-later` where the records can be recovered yet, `.salvaged`,
  /// `.salvaged-unconfirmed`, `.salvaged-with-losses` or `.salvaged-nothing` where what was salvaged is; `.migrated-without` where the app's version
  /// has no place for some records; `.repaired` where parts of the file were missing and were added,
  /// `.repaired-with-losses` where some of the data then leads to records that are not there.
  package var key: String

  /// The heading of an alert.
  package var title: String

  /// What happened to the user's data, in two or three sentences.
  package var message: String

  /// What the app may offer, the usual choice first.
  package var actions: [Action]

  /// The report of a migration that failed, for the support; nil where there is none.
  package var report: PathText?

  /// The command that puts the store in quarantine back in its place, for the support; nil where there is none.
  package var undo: String?

  /// The choice to send a report to support, which the app offers where a store lies in quarantine.
  package static let sendReport = Action(key: "lazaret.action.send-report", title: "Send a Report to Support")

  /// Words with choices.
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

  /// What an opening's user is told of what was done; nil where there is nothing to tell.
  ///
  /// The words have no number and no term of databases: those are for the developer, in the events and the report.
  ///
  /// - Parameter report: that of a migration whose failure had the store quarantined, in this run or by another process.
  package static func about(_ events: [OpeningEvent], report: FilePath?) -> OpeningNotice? {
    // The store's owner is told of its quarantine also where it was an interrupted run's, or another process's.
    guard let reason = events.last(where: { $0.reason != nil })?.reason else {
      return leftOut(by: events) ?? repaired(by: events)
    }
    let salvage = events.last { $0.salvage != nil }?.salvage
    var notice = setAside(reason, salvage, report: report.map { PathText($0) })
    notice.undo = events.last { $0.undo != nil }?.undo
    return notice
  }

  /// The notice for a store that lies in quarantine for a reason, and for what is in its place.
  ///
  /// - Parameter salvage: what has become of its salvage; nil where none was asked for.
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
        // Nothing is known to be missing, so that the words must not say it.
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

  /// The notice for records that a migration has left out with their entities; nil where there are none.
  private static func leftOut(by events: [OpeningEvent]) -> OpeningNotice? {
    guard events.contains(where: { $0.migration?.removedRows.values.contains { $0 > 0 } == true }) else { return nil }
    return OpeningNotice(
      key: "lazaret.notice.migrated-without", title: "Your data was updated",
      message: "This version of the app has no place for some of your entries. They were not deleted. \(old)",
      actions: usualActions)
  }

  /// The key of the notice that parts of the file were added, and nothing was lost.
  static let repairedKey = "lazaret.notice.repaired"

  /// The notice for a store that was repaired; nil where none was.
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

  /// What was wrong, in a stable word, by the code of the reason.
  package static func key(for code: String) -> String {
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
