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

  package init(key: String, title: String, message: String, actions: [Action], report: PathText? = nil) {
    self.key = key
    self.title = title
    self.message = message
    self.actions = actions
    self.report = report
  }

  /// Composes a notice of the catalogue's English words.
  private init(
    _ name: String, cause: String? = nil, hasMost: Bool = false,
    actions: [String] = ["continue", "send-report", "contact-support"], report: PathText? = nil
  ) {
    let words = NoticeWords(.english)
    let key = "lazaret.notice.\(name)"
    self.init(
      key: key, title: words.text("\(key).title") ?? "",
      message: words.message(of: key, cause: cause, hasMost: hasMost) ?? "",
      actions: actions.map { "lazaret.action.\($0)" }.map { Action(key: $0, title: words.text($0) ?? "") },
      report: report)
  }

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
    let cause = key(for: reason.code)
    if let salvage, salvage.isInstalled { return salvaged(cause, salvage, report: report) }
    guard salvage?.state == .pending else { return OpeningNotice(cause, cause: cause, report: report) }
    return OpeningNotice(
      "salvage-later", cause: cause, actions: ["continue", "recover", "send-report", "contact-support"], report: report)
  }

  private static func salvaged(_ cause: String, _ salvage: OpeningSalvage, report: PathText?) -> OpeningNotice {
    let isWhole = salvage.count.detailWords.isEmpty && salvage.doubtful == 0 && salvage.lacksDetails == false
    let name =
      if salvage.isComplete {
        "salvaged"
      } else if salvage.recovered == 0 {
        "salvaged-nothing"
      } else if isWhole {
        // No loss is known, so the text must not claim one.
        "salvaged-unconfirmed"
      } else {
        "salvaged-with-losses"
      }
    return OpeningNotice(name, cause: cause, hasMost: salvage.hasMost, report: report)
  }

  /// Returns the notice for entities that a migration left out.
  private static func leftOut(by events: [OpeningEvent]) -> OpeningNotice? {
    guard events.contains(where: { $0.migration?.removedRows.values.contains { $0 > 0 } == true }) else { return nil }
    return OpeningNotice("migrated-without")
  }

  /// The key of a repair without losses.
  static let repairedKey = "lazaret.notice.repaired"

  private static func repaired(by events: [OpeningEvent]) -> OpeningNotice? {
    guard let repair = events.lazy.compactMap(\.repair).first else { return nil }
    let hasLosses = repair.danglingReferences > 0 || repair.hasLostRecords
    return hasLosses
      ? OpeningNotice("repaired-with-losses") : OpeningNotice("repaired", actions: ["continue", "contact-support"])
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
