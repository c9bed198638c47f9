/// Words for the app's user, ready to show, and keys to translate them by.
package struct Notice: Sendable, Hashable, Codable {
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
  /// - Parameter report: that of a migration whose failure had the store quarantined, in this run or by another process.
  package static func about(_ events: [OpeningEvent], report: FilePath?) -> Notice? {
    // The store's owner is told of its quarantine also where it was an interrupted run's, or another process's.
    guard let reason = events.last(where: { $0.reason != nil })?.reason else {
      return leftOut(by: events) ?? repaired(by: events)
    }
    let salvage = events.last { $0.salvage != nil }?.salvage
    let records = events.last { $0.records != nil }?.records
    var notice = setAside(reason, salvage, records: records, report: report.map { PathText($0) })
    notice.undo = events.last { $0.undo != nil }?.undo
    return notice
  }

  /// The notice for a store that lies in quarantine for a reason, and for what is in its place.
  ///
  /// - Parameters:
  ///   - salvage: what has become of its salvage; nil where none was asked for.
  ///   - records: how many records a sound store held; nil where it was damaged, or they were not counted.
  private static func setAside(
    _ reason: Receipt.Reason, _ salvage: OpeningSalvage?, records: Int64?, report: PathText?
  ) -> Notice {
    if let salvage, salvage.isInstalled { return salvaged(reason, salvage, report: report) }
    let key = key(for: reason.code)
    let held =
      records.map { $0 > 0 ? " Its \(counted($0, "record")) \($0 == 1 ? "is" : "are") in quarantine." : "" } ?? ""
    if salvage?.state == .pending {
      return Notice(
        key: "lazaret.notice.salvage-later", title: "Your data was set aside",
        message:
          "\(cause(of: reason.code)) It was not deleted: all of it was set aside, and you start with an empty one.\(held) Your data can be recovered from it later.",
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
    return Notice(
      key: "lazaret.notice.\(key)", title: key == "empty" ? "Your file was empty" : "Your data was set aside",
      message: "\(cause(of: reason.code)) \(kept)\(held) Our support can look at what was set aside.",
      actions: usualActions, report: report)
  }

  private static func salvaged(_ reason: Receipt.Reason, _ salvage: OpeningSalvage, report: PathText?) -> Notice {
    let kept = "The old file was kept as it was."
    if salvage.isComplete {
      return Notice(
        key: "lazaret.notice.salvaged", title: "Your data was recovered",
        message: "\(cause(of: reason.code)) All of your data was recovered from it. \(kept)",
        actions: usualActions, report: report)
    }
    if salvage.recovered == 0 {
      return Notice(
        key: "lazaret.notice.salvaged-nothing", title: "Your data was set aside",
        message: "\(cause(of: reason.code)) \(salvage.count.words) You start with an empty file. \(kept) \(support)",
        actions: usualActions, report: report)
    }
    let isWhole = salvage.count.detailWords.isEmpty && salvage.doubtful == 0
    if isWhole, salvage.lacksDetails == false {
      // Nothing is known to be missing, so that the words must not say it.
      return Notice(
        key: "lazaret.notice.salvaged-unconfirmed", title: "Your data was recovered",
        message:
          "\(cause(of: reason.code)) \(salvage.count.words) It could not be confirmed that this is all of it. \(kept) \(support)",
        actions: usualActions, report: report)
    }
    let details = isWhole ? " Details of some may be missing." : ""
    return Notice(
      key: "lazaret.notice.salvaged-with-losses", title: "Your data was recovered in part",
      message: "\(cause(of: reason.code)) \(salvage.count.words)\(details) \(kept) \(support)",
      actions: usualActions, report: report)
  }

  private static let support = "Our support can look at it."

  /// The notice for records that a migration has left out with their entities; nil where there are none.
  private static func leftOut(by events: [OpeningEvent]) -> Notice? {
    let rows = events.compactMap(\.migration).flatMap(\.removedRows.values).reduce(0, +)
    guard rows > 0 else { return nil }
    return Notice(
      key: "lazaret.notice.migrated-without", title: "Your data was updated",
      message:
        "This version of the app has no place for \(counted(rows, "record")) of the file with your data. They were not deleted: the old file was kept as it was, and stays until the app releases it.",
      actions: usualActions)
  }

  /// The key of the notice that parts of the file were added, and nothing was lost.
  static let repairedKey = "lazaret.notice.repaired"

  /// The notice for a store that was repaired; nil where none was.
  private static func repaired(by events: [OpeningEvent]) -> Notice? {
    guard let repair = events.lazy.compactMap(\.repair).first else { return nil }
    let missing = repair.danglingReferences
    if missing > 0 || repair.hasLostRecords {
      let references =
        missing > 0 ? " \(counted(missing, "reference")) in it \(missing == 1 ? "leads" : "lead") to no record." : ""
      return Notice(
        key: "lazaret.notice.repaired-with-losses", title: "Your data was repaired in part",
        message:
          "Parts of the file with your data were missing and were added (\(repair.words)). Some of your data may be missing.\(references) The old file was kept as it was. \(support)",
        actions: usualActions)
    }
    return Notice(
      key: repairedKey, title: "Your data was repaired",
      message:
        "Parts of the file with your data were missing and were added (\(repair.words)). Nothing was removed, and the old file was kept as it was.",
      actions: [
        Action(key: "lazaret.action.continue", title: "Continue"),
        Action(key: "lazaret.action.contact-support", title: "Contact Support"),
      ])
  }

  /// What was wrong, in a sentence.
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
